"""Activations and element-by-element functions: operators/activation.json (see operator_saved.py)."""

import operator_saved
from operator_saved import Case, module_of

IMAGE = "[batch, 4, 6, 5]"


def cases():
    import torch
    import torch.nn.functional as functional
    from torch import nn

    def between(name, layer, function=None, build=None, channels=8, **settings):
        """The operator under test, a function or what builds a module, between two convolutions,
        so that its input needs a gradient."""
        def network():
            made = build() if build else module_of(function)
            return nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), made, nn.Conv2d(channels, 2, 1))

        return Case(name, {"x": IMAGE}, ["conv2d: {channels: 8, kernel: 3, padding: 1}", layer,
                                         "conv2d: {channels: 2, kernel: 1}"], network, **settings)

    plain = {
        "relu": functional.relu, "relu6": functional.relu6, "leaky_relu": functional.leaky_relu,
        "elu": functional.elu, "silu": functional.silu, "mish": functional.mish,
        "hardswish": functional.hardswish, "hardsigmoid": functional.hardsigmoid,
        "sigmoid": torch.sigmoid, "tanh": torch.tanh, "softplus": functional.softplus,
        "gelu": functional.gelu, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt,
    }
    overwriting = {
        "relu": torch.relu_, "relu6": lambda x: functional.relu6(x, inplace=True),
        "leaky_relu": functional.leaky_relu_, "elu": functional.elu_,
        "silu": lambda x: functional.silu(x, inplace=True),
        "mish": lambda x: functional.mish(x, inplace=True),
        "hardswish": lambda x: functional.hardswish(x, inplace=True),
        "hardsigmoid": lambda x: functional.hardsigmoid(x, inplace=True),
        "sigmoid": torch.sigmoid_, "tanh": torch.tanh_,
    }
    for name, function in plain.items():
        yield between(name, name, function)
        yield between(f"{name}, inference", name, function, mode="inference")
    for name, function in overwriting.items():
        yield between(f"{name} in place", f"{name}: {{in_place: true}}", function)
        yield between(f"{name} in place, inference", f"{name}: {{in_place: true}}", function,
                      mode="inference")
    yield between("gelu tanh", "gelu: {approximate: tanh}",
                  lambda x: functional.gelu(x, approximate="tanh"))
    yield between("pow 2", "pow: {exponent: 2}", lambda x: x ** 2)
    yield between("pow 0.5", "pow: {exponent: 0.5}", lambda x: x ** 0.5)
    yield between("clamp", "clamp: {minimum: -1, maximum: 1}", lambda x: x.clamp(-1, 1))
    yield between("prelu, one slope", "prelu", build=nn.PReLU)
    yield between("prelu, one a channel", "prelu: {parameters: 8}", build=lambda: nn.PReLU(8))
    yield between("prelu, frozen", "prelu: {frozen: true}",
                  build=lambda: nn.PReLU().requires_grad_(False))
    yield between("glu", "glu: {axis: 1}", lambda x: functional.glu(x, 1), channels=4)
    yield between("glu of the last axis but one", "glu: {axis: -2}",
                  lambda x: functional.glu(x, -2))

    def halves(x):
        gate, up = x.chunk(2, 1)
        return functional.silu(gate) * up

    yield between("swiglu of one tensor", "swiglu: {axis: 1}", halves, channels=4)
    # The activations' results are permuted as their inputs are.
    for name in ("gelu", "silu", "tanh"):
        yield Case(f"{name} of a permuted tensor", {"x": IMAGE},
                   ["conv2d: {channels: 8, kernel: 3, padding: 1}", "transpose: {axes: [0, 2, 3, 1]}",
                    name, "transpose: {axes: [0, 3, 1, 2]}", "conv2d: {channels: 2, kernel: 1}"],
                   lambda function=plain[name]: nn.Sequential(
                       nn.Conv2d(4, 8, 3, padding=1),
                       module_of(lambda x: function(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)),
                       nn.Conv2d(8, 2, 1)))

    class Gated(nn.Module):
        """transformers' LlamaMLP."""

        def __init__(self):
            super().__init__()
            self.gate, self.up = nn.Linear(8, 12, bias=False), nn.Linear(8, 12, bias=False)
            self.down = nn.Linear(12, 8, bias=False)

        def forward(self, x):
            return self.down(functional.silu(self.gate(x)) * self.up(x))

    mlp = ["linear: {name: gate, from: x, features: 12, bias: false}",
           "linear: {name: up, from: x, features: 12, bias: false}"]
    down = "linear: {features: 8, bias: false}"
    yield Case("swiglu", {"x": "[batch, 5, 8]"}, [*mlp, "swiglu: {from: [gate, up]}", down], Gated)
    yield Case("silu and mul", {"x": "[batch, 5, 8]"},
               [*mlp, "silu: {from: gate}", "mul: {from: [silu_1, up]}", down], Gated)
    yield Case("swiglu, inference", {"x": "[batch, 5, 8]"},
               [*mlp, "swiglu: {from: [gate, up]}", down], Gated, mode="inference")


if __name__ == "__main__":
    operator_saved.main("activation", cases)
