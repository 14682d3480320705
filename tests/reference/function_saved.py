"""Further functions of single elements, of two and of three tensors: operators/function.json (see
operator_saved.py)."""

import math

import operator_saved
from operator_saved import Case, module_of

IMAGE = "[batch, 4, 6, 5]"


def cases():
    import torch
    import torch.nn.functional as functional
    from torch import nn

    def between(name, layer, function, **settings):
        """The operator under test between two convolutions, so that its input needs a gradient."""
        return Case(name, {"x": IMAGE}, ["conv2d: {channels: 8, kernel: 3, padding: 1}", layer,
                                         "conv2d: {channels: 2, kernel: 1}"],
                    lambda: nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), module_of(function),
                                          nn.Conv2d(8, 2, 1)), **settings)

    plain = {
        "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "abs": torch.abs, "sin": torch.sin,
        "cos": torch.cos, "erf": torch.erf, "log1p": torch.log1p, "expm1": torch.expm1,
        "selu": functional.selu, "celu": functional.celu, "hardtanh": functional.hardtanh,
        "log_sigmoid": functional.logsigmoid,
    }
    steps = {name: getattr(torch, name) for name in ("sign", "floor", "ceil", "round", "trunc")}
    for name, function in steps.items():
        yield between(name, name, function)
        yield between(f"{name}, inference", name, function, mode="inference")
        yield between(f"{name} under amp-bf16", name, function, precision="amp-bf16")
        yield between(f"{name} of a permuted tensor", name, function, layout="nhwc")
    overwriting = {
        "selu": torch.selu_, "celu": lambda x: functional.celu(x, inplace=True),
        "hardtanh": functional.hardtanh_,
    }
    for name, function in plain.items():
        yield between(name, name, function)
        yield between(f"{name}, inference", name, function, mode="inference")
        yield between(f"{name} under amp-bf16", name, function, precision="amp-bf16")
    for name, function in overwriting.items():
        yield between(f"{name} in place", f"{name}: {{in_place: true}}", function)
        yield between(f"{name} in place, inference", f"{name}: {{in_place: true}}", function,
                      mode="inference")
    yield between("celu of alpha 0.5", "celu: {alpha: 0.5}", lambda x: functional.celu(x, 0.5))
    yield between("clamp from below", "clamp: {minimum: 0}", lambda x: x.clamp(min=0))
    yield between("clamp from above", "clamp: {maximum: 1}", lambda x: x.clamp(max=1))
    yield between("clamp_min", "clamp: {minimum: 0}", lambda x: x.clamp_min(0))
    yield between("padding with -inf", "pad: {before: [1, 1], after: [1, 1], value: -.inf}",
                  lambda x: functional.pad(x, (1, 1, 1, 1), value=-math.inf))
    yield between("abs of a permuted tensor", "abs", torch.abs, layout="nhwc")

    class WeightAlone(nn.GroupNorm):
        """timm's GroupNorm without a bias."""

        def __init__(self):
            super().__init__(2, 8)
            self.register_parameter("bias", None)

    for mode in ("train", "inference"):
        yield Case(f"group_norm without bias, {mode}", {"x": IMAGE},
                   ["conv2d: {channels: 8, kernel: 3, padding: 1}",
                    "group_norm: {groups: 2, bias: false}", "conv2d: {channels: 2, kernel: 1}"],
                   lambda: nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), WeightAlone(),
                                         nn.Conv2d(8, 2, 1)), mode=mode)

    class Several(nn.Module):
        """`function` of convolutions' results, those in `small` averaged over the image."""

        def __init__(self, function, count, small=()):
            super().__init__()
            self.convolutions = nn.ModuleList(nn.Conv2d(4, 8, 1) for _ in range(count))
            self.last, self.function, self.small = nn.Conv2d(8, 2, 1), function, small

        def forward(self, x):
            return self.last(self.function(*[
                conv(x).mean((2, 3), keepdim=True) if i in self.small else conv(x)
                for i, conv in enumerate(self.convolutions)]))

    def of_several(name, layer, function, count, small=(), **settings):
        layers = []
        for i in range(count):
            made = "ab"[i:i + 1] or "c"
            layers.append(f"conv2d: {{name: {made}, from: x, channels: 8, kernel: 1}}")
            if i in small:
                layers[-1] = layers[-1].replace(f"name: {made}", f"name: {made}_whole")
                layers.append(f"mean: {{name: {made}, axes: [2, 3], keep: true}}")
        return Case(name, {"x": IMAGE}, [*layers, layer, "conv2d: {channels: 2, kernel: 1}"],
                    lambda: Several(function, count, small), **settings)

    for name, function in (("maximum", torch.maximum), ("minimum", torch.minimum)):
        layer = f"{name}: {{from: [a, b]}}"
        yield of_several(name, layer, function, 2)
        yield of_several(f"{name}, second broadcast", layer, function, 2, small=(1,))
        yield of_several(f"{name}, first broadcast", layer, function, 2, small=(0,))
        yield of_several(f"{name}, inference", layer, function, 2, mode="inference")
    for name, function in (("addcmul", torch.addcmul), ("addcdiv", torch.addcdiv)):
        layer = f"{name}: {{from: [a, b, c]}}"
        yield of_several(name, layer, function, 3)
        yield of_several(f"{name} of value 0.5", f"{name}: {{from: [a, b, c], value: 0.5}}",
                         lambda a, b, c, f=function: f(a, b, c, value=0.5), 3)
        yield of_several(f"{name}, last broadcast", layer, function, 3, small=(2,))
        yield of_several(f"{name}, first broadcast", layer, function, 3, small=(0,))
        yield of_several(f"{name}, inference", layer, function, 3, mode="inference")


if __name__ == "__main__":
    operator_saved.main("function", cases)
