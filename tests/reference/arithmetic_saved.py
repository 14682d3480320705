"""Arithmetic of tensors, reductions and dropout: operators/arithmetic.json (see
operator_saved.py)."""

import operator_saved
from operator_saved import Case, module_of

IMAGE = "[batch, 4, 6, 5]"


def cases():
    import torch
    import torch.nn.functional as functional
    from torch import nn

    def between(name, layers, *functions, build=None, channels=8, **settings):
        """What is under test between two convolutions, so that its input needs a gradient."""
        def network():
            made = [build()] if build else map(module_of, functions)
            return nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), *made, nn.Conv2d(channels, 2, 1))

        return Case(name, {"x": IMAGE}, [
            "conv2d: {name: first, channels: 8, kernel: 3, padding: 1}", *layers,
            "conv2d: {channels: 2, kernel: 1}"], network, **settings)

    class Two(nn.Module):
        """`function` of two convolutions' results, the second reduced by `shrink`."""

        def __init__(self, function, shrink=None):
            super().__init__()
            self.a, self.b = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(4, 8, 1)
            self.last, self.function = nn.Conv2d(8, 2, 1), function
            self.shrink = shrink or (lambda x: x)

        def forward(self, x):
            return self.last(self.function(self.a(x), self.shrink(self.b(x))))

    class WithInput(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.a, self.last, self.function = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 2, 1), function

        def forward(self, x):
            return self.last(self.function(self.a(x), x))

    a = "conv2d: {name: a, from: x, channels: 8, kernel: 3, padding: 1}"
    b = "conv2d: {name: b, from: x, channels: 8, kernel: 1}"
    pooled = "mean: {name: c, axes: [2, 3], keep: true}"
    last = "conv2d: {channels: 2, kernel: 1}"
    functions = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}
    overwriting = {"add": torch.Tensor.add_, "sub": torch.Tensor.sub_, "mul": torch.Tensor.mul_,
                   "div": torch.Tensor.div_}

    def mean(x):
        return x.mean((2, 3), keepdim=True)

    for name, function in functions.items():
        yield Case(name, {"x": IMAGE}, [a, b, f"{name}: {{from: [a, b]}}", last],
                   lambda f=function: Two(f))
        yield Case(f"{name}, second broadcast", {"x": IMAGE},
                   [a, b, pooled, f"{name}: {{from: [a, c]}}", last],
                   lambda f=function: Two(f, mean))
        yield Case(f"{name}, first broadcast", {"x": IMAGE},
                   [a, b, pooled, f"{name}: {{from: [c, a]}}", last],
                   lambda f=function: Two(lambda x, y: f(y, x), mean))
        yield Case(f"{name}, inference", {"x": IMAGE}, [a, b, f"{name}: {{from: [a, b]}}", last],
                   lambda f=function: Two(f), mode="inference")
        yield Case(f"{name} in place", {"x": IMAGE},
                   [a, b, f"{name}: {{from: [a, b], in_place: true}}", last],
                   lambda f=overwriting[name]: Two(f))
        yield between(f"{name} of one tensor", [f"{name}: {{from: [first, first]}}"],
                      lambda x, f=function: f(x, x))
        yield Case(f"{name} with an input", {"x": IMAGE},
                   [f"conv2d: {{name: a, channels: 4, kernel: 1}}", f"{name}: {{from: [a, x]}}",
                    last], lambda f=function: WithInput(f))
        yield Case(f"{name} of an input", {"x": IMAGE},
                   [f"conv2d: {{name: a, channels: 4, kernel: 1}}", f"{name}: {{from: [x, a]}}",
                    last], lambda f=function: WithInput(lambda x, y: f(y, x)))

    yield between("scale by a number", ["scale: {factor: 0.5}"], lambda x: x * 0.5)
    yield between("scale in place", ["scale: {factor: 0.5, in_place: true}"],
                  lambda x: x.mul_(0.5))
    yield between("plus a number", ["scale: {offset: 1}"], lambda x: x + 1)
    yield between("from a number", ["scale: {factor: -1, offset: 1}"], lambda x: 1 - x)
    yield between("times and plus numbers", ["scale: {factor: 0.5, offset: 1}"],
                  lambda x: 0.5 * x, lambda x: x + 1)
    yield between("scale, inference", ["scale: {factor: 0.5, offset: 1}"], lambda x: 0.5 * x,
                  lambda x: x + 1, mode="inference")

    class LayerScale(nn.Module):
        def __init__(self, shape):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(shape))

        def forward(self, x):
            return self.weight * x

    yield between("a learned factor a channel", ["scale: {learned: true, shape: [8, 1, 1]}"],
                  build=lambda: LayerScale((8, 1, 1)))
    yield between("a learned factor", ["scale: {learned: true}"], build=lambda: LayerScale(()))
    yield between("a learned factor, frozen", ["scale: {learned: true, shape: [8, 1, 1], "
                                               "frozen: true}"],
                  build=lambda: LayerScale((8, 1, 1)).requires_grad_(False))
    yield Case("a learned factor of an input", {"x": IMAGE},
               ["scale: {learned: true, shape: [4, 1, 1]}", last],
               lambda: nn.Sequential(LayerScale((4, 1, 1)), nn.Conv2d(4, 2, 1)))

    for name, keep in (("mean", True), ("sum", True), ("mean", False), ("sum", False)):
        function = getattr(torch, name)
        layers = ["sigmoid", f"{name}: {{axes: [2, 3], keep: {str(keep).lower()}}}"]
        if not keep:
            layers.append("reshape: {shape: [batch, 8, 1, 1]}")
        yield between(f"{name}{' keeps axes' if keep else ''}", layers,
                      torch.sigmoid, lambda x, f=function, k=keep: f(x, (2, 3), keepdim=k),
                      lambda x: x.reshape(-1, 8, 1, 1))
    yield between("mean of the last axis", ["mean: {axes: [-1], keep: true}"],
                  lambda x: x.mean(-1, keepdim=True))
    yield between("sum, inference", ["sum: {axes: [1], keep: true}"],
                  lambda x: x.sum(1, keepdim=True), channels=1, mode="inference")
    yield between("sum to an activation", ["tanh", "sum: {axes: [2, 3], keep: true}", "sigmoid"],
                  torch.tanh, lambda x: x.sum((2, 3), keepdim=True), torch.sigmoid)
    yield between("expand", ["mean: {axes: [2, 3], keep: true}",
                             "expand: {shape: [-1, -1, 6, 5]}", "relu"],
                  lambda x: x.mean((2, 3), keepdim=True), lambda x: x.expand(-1, -1, 6, 5),
                  torch.relu)

    class SqueezeExcite(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.up = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)

        def forward(self, x):
            s = x.mean((2, 3), keepdim=True)
            s = self.up(functional.silu(self.down(s), inplace=True))
            return x * torch.sigmoid(s)

    yield between("squeeze and excite", [
        "mean: {axes: [2, 3], keep: true}", "conv2d: {channels: 2, kernel: 1}",
        "silu: {in_place: true}", "conv2d: {channels: 8, kernel: 1}", "sigmoid: {name: gate}",
        "mul: {from: [first, gate]}"], build=SqueezeExcite)

    for mode in ("train", "inference"):
        word = "" if mode == "train" else ", inference"
        yield between(f"dropout{word}", ["dropout: {p: 0.5}"], build=lambda: nn.Dropout(0.5),
                      mode=mode)
        yield between(f"dropout in place{word}", ["dropout: {p: 0.5, in_place: true}"],
                      build=lambda: nn.Dropout(0.5, inplace=True), mode=mode)
        yield between(f"dropout2d{word}", ["feature_dropout: {p: 0.5}"],
                      build=lambda: nn.Dropout2d(0.5), mode=mode)
        yield between(f"dropout2d in place{word}", ["feature_dropout: {p: 0.5, in_place: true}"],
                      build=lambda: nn.Dropout2d(0.5, inplace=True), mode=mode)

    from timm.layers import DropPath
    from torchvision.ops import StochasticDepth

    class Transformers(nn.Module):
        """transformers' drop_path, as in its ConvNeXt and Swin."""

        def forward(self, x):
            shape = (x.shape[0],) + (1,) * (x.ndim - 1)
            noise = torch.empty(shape, dtype=x.dtype, device=x.device)
            return x.div(0.8) * noise

    yield between("drop_path of torchvision", ["drop_path: {p: 0.2}"],
                  build=lambda: StochasticDepth(0.2, "row"))
    yield between("drop_path of timm", ["drop_path: {p: 0.2, as: timm}"],
                  build=lambda: DropPath(0.2))
    yield between("drop_path of transformers", ["drop_path: {p: 0.2, as: transformers}"],
                  build=Transformers)
    yield between("drop_path, inference", ["drop_path: {p: 0.2}"],
                  build=lambda: StochasticDepth(0.2, "row"), mode="inference")
    yield between("drop_path, never", ["drop_path: {p: 0}"],
                  build=lambda: StochasticDepth(0.0, "row"))


if __name__ == "__main__":
    operator_saved.main("arithmetic", cases)
