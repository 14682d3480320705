"""Losses, and sums of several: operators/loss.json (see operator_saved.py)."""

import operator_saved
from operator_saved import Case

INPUT = "[batch, 12]"
CLASSES = ("[batch]", "int64")


def cases():
    import torch
    import torch.nn.functional as functional
    from torch import nn

    def one(name, layer, loss, layers=(), modules=(), target="[batch, 10]", **settings):
        return Case(name, {"x": INPUT}, ["linear: {features: 10}", *layers],
                    lambda: nn.Sequential(nn.Linear(12, 10), *modules), target=target, loss=loss,
                    loss_layer=layer, batch=16, **settings)

    yield one("cross_entropy", "cross_entropy", functional.cross_entropy, target=CLASSES)
    yield one("cross_entropy, smoothed", "cross_entropy: {label_smoothing: 0.1}",
              lambda y, t: functional.cross_entropy(y, t, label_smoothing=0.1), target=CLASSES)
    yield one("cross_entropy, weighted", "cross_entropy: {weight: 0.5}",
              lambda y, t: functional.cross_entropy(y, t) * 0.5, target=CLASSES)
    yield one("nll", "nll", functional.nll_loss, ["log_softmax"], [nn.LogSoftmax(-1)],
              target=CLASSES)
    yield one("mse", "mse", functional.mse_loss)
    yield one("mse, weighted", "mse: {weight: 2}", lambda y, t: functional.mse_loss(y, t) * 2.0)
    yield one("l1", "l1", functional.l1_loss)
    yield one("bce", "bce", functional.binary_cross_entropy, ["sigmoid"], [nn.Sigmoid()])
    yield one("bce_with_logits", "bce_with_logits", functional.binary_cross_entropy_with_logits)
    yield one("kl_div", "kl_div", functional.kl_div, ["log_softmax"], [nn.LogSoftmax(-1)])


if __name__ == "__main__":
    operator_saved.main("loss", cases)
