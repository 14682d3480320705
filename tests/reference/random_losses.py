"""Random ends of a network: the loss, and the layer that it wants before it."""

import dataclasses
from typing import Callable


@dataclasses.dataclass(frozen=True)
class Ending:
    """As operator_saved.Case has them."""

    target: object
    loss: Callable
    loss_layer: str


def written(sizes):
    return "[" + ", ".join(["batch", *map(str, sizes)]) + "]"


def weighted(b, name, settings, function):
    """The loss, one time in four multiplied by a number."""
    loss, weight = function, b.one_of(1, 1, 1, 0.5)
    if weight != 1:
        settings = {**settings, "weight": weight}
        loss = lambda y, t: function(y, t) * weight
    layer = name
    if settings:
        layer += ": {" + ", ".join(f"{k}: {v}" for k, v in settings.items()) + "}"
    return layer, loss


def probabilities(b, name, axis):
    import torch
    import torch.nn.functional as functional

    if name == "sigmoid":
        b.add(name, {}, lambda: torch.sigmoid, b.shape)
    else:
        b.add(name, {"axis": axis}, lambda: lambda x: functional.log_softmax(x, axis), b.shape)


def ending(b):
    import torch.nn.functional as functional

    name = b.one_of("mse", "mse", "mse", "l1", "bce", "bce_with_logits", "kl_div",
                    "cross_entropy", "cross_entropy", "nll")
    if name == "bce" and b.autocast:  # which PyTorch refuses
        name = "bce_with_logits"
    settings, target = {}, written(b.shape)
    functions = {"mse": functional.mse_loss, "l1": functional.l1_loss,
                 "bce": functional.binary_cross_entropy, "nll": functional.nll_loss,
                 "bce_with_logits": functional.binary_cross_entropy_with_logits}
    function = functions.get(name)
    if name == "bce":
        probabilities(b, "sigmoid", None)
    elif name == "kl_div":
        probabilities(b, "log_softmax", len(b.shape))
        reduction = b.one_of("mean", "batchmean")
        settings = {"reduction": reduction}
        function = lambda y, t: functional.kl_div(y, t, reduction=reduction)
    elif name in ("nll", "cross_entropy"):
        target = (written(b.shape[1:]), "int64")
        if name == "nll":
            probabilities(b, "log_softmax", 1)
        else:
            smoothing = b.one_of(0, 0, 0.1)
            settings = {"label_smoothing": smoothing} if smoothing else {}
            function = lambda y, t: functional.cross_entropy(y, t, label_smoothing=smoothing)
    layer, loss = weighted(b, name, settings, function)
    return Ending(target, loss, layer)
