"""Joining, cutting, moving and reshaping: operators/layout.json (see operator_saved.py)."""

import operator_saved
from operator_saved import Case, module_of

IMAGE = "[batch, 4, 6, 6]"


def cases():
    import torch
    from torch import nn

    class Branches(nn.Module):
        """`function` of two convolutions' results, which no variable holds."""

        def __init__(self, function):
            super().__init__()
            self.a, self.b = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(4, 8, 1)
            self.function = function

        def forward(self, x):
            return self.function(self.a(x), self.b(x))

    def network(first, steps, channels):
        return nn.Sequential(first, *map(module_of, steps), nn.Conv2d(channels, 2, 1))

    a = "conv2d: {name: a, from: x, channels: 8, kernel: 3, padding: 1}"
    b = "conv2d: {name: b, from: x, channels: 8, kernel: 1}"
    last = "conv2d: {channels: 2, kernel: 1}"

    def of_two(name, layers, function, channels, *steps, **settings):
        return Case(name, {"x": IMAGE}, [a, b, *layers, last],
                    lambda: network(Branches(function), steps, channels), **settings)

    def of_one(name, layers, *steps, channels=8, **settings):
        return Case(name, {"x": IMAGE}, [a, *layers, last],
                    lambda: network(nn.Conv2d(4, 8, 3, padding=1), steps, channels), **settings)

    yield of_two("concat", ["concat: {from: [a, b]}"], lambda x, y: torch.cat([x, y], 1), 16)
    yield of_two("concat of the last axis", ["concat: {from: [a, b], axis: -1}"],
                 lambda x, y: torch.cat([x, y], -1), 8)
    yield of_one("concat of one tensor twice", ["concat: {from: [a, a]}"],
                 lambda x: torch.cat([x, x], 1), channels=16)
    yield of_two("stack", ["stack: {from: [a, b], axis: 2}", "flatten: {start: 1, end: 2}"],
                 lambda x, y: torch.stack([x, y], 2), 16, lambda x: x.flatten(1, 2))
    yield of_one("stack of one tensor twice", ["stack: {from: [a, a], axis: 1}",
                                               "flatten: {start: 1, end: 2}"],
                 lambda x: torch.stack([x, x], 1), lambda x: x.flatten(1, 2), channels=16)
    yield of_one("split in parts", ["split: {parts: 2, axis: 1, name: s}",
                                    "mul: {from: [s.0, s.1]}"],
                 lambda x: x.chunk(2, 1), lambda x: torch.mul(*x), channels=4)
    yield of_one("split by sizes", ["split: {sizes: [2, 6], axis: 1, name: s}",
                                    "concat: {from: [s.1, s.0]}"],
                 lambda x: x.split([2, 6], 1), lambda x: torch.cat(x[::-1], 1))
    yield of_one("split, one part unused", ["split: {sizes: [2, 6], axis: 1, name: s}",
                                            "relu: {from: s.1}"],
                 lambda x: x.split([2, 6], 1)[1], torch.relu, channels=6)
    yield of_one("slice", ["slice: {axis: 1, start: 2, length: 4}", "relu"],
                 lambda x: x[:, 2:6], torch.relu, channels=4)
    yield of_one("slice from the end", ["slice: {axis: 2, start: -2}", "relu"],
                 lambda x: x[:, :, -2:], torch.relu)
    yield of_one("slice with a step", ["slice: {axis: 2, step: 2}",
                                       "slice: {axis: 3, start: 1, step: 2}", "relu"],
                 lambda x: x[:, :, 0::2], lambda x: x[:, :, :, 1::2], torch.relu)
    yield of_one("slice with a step that does not divide", ["slice: {axis: 1, start: 1, step: 3}",
                                                            "relu"],
                 lambda x: x[:, 1::3], torch.relu, channels=3)
    yield of_one("slice, inference", ["slice: {axis: 1, length: 4}", "relu"],
                 lambda x: x[:, :4], torch.relu, channels=4, mode="inference")

    def merge(x):
        """Swin's patch merging, with the channels last."""
        parts = [x[..., 0::2, 0::2, :], x[..., 1::2, 0::2, :], x[..., 0::2, 1::2, :],
                 x[..., 1::2, 1::2, :]]
        return torch.cat(parts, -1)

    yield of_one("patch merging", [
        "transpose: {axes: [0, 2, 3, 1], name: t}",
        *[f"slice: {{from: t, axis: 1, start: {row}, step: 2, name: r{row}{column}}}\n"
          for row, column in ((0, 0), (1, 0), (0, 1), (1, 1))],
        *[f"slice: {{from: r{row}{column}, axis: 2, start: {column}, step: 2, "
          f"name: p{row}{column}}}" for row, column in ((0, 0), (1, 0), (0, 1), (1, 1))],
        "concat: {from: [p00, p10, p01, p11], axis: -1}", "reshape: {shape: [batch, 32, 3, 3]}"],
        lambda x: x.permute(0, 2, 3, 1), merge, lambda x: x.view(-1, 32, 3, 3), channels=32)
    yield of_one("reshape", ["reshape: {shape: [batch, 16, 3, 6]}"],
                 lambda x: x.reshape(-1, 16, 3, 6), channels=16)
    yield of_one("channel shuffle", ["reshape: {shape: [batch, 2, 4, 6, 6]}",
                                     "transpose: {axes: [0, 2, 1, 3, 4]}",
                                     "reshape: {shape: [batch, 8, 6, 6]}"],
                 lambda x: x.view(-1, 2, 4, 6, 6).transpose(1, 2),
                 lambda x: x.reshape(-1, 8, 6, 6))
    yield of_one("flatten", ["flatten", "reshape: {shape: [batch, 8, 6, 6]}"],
                 lambda x: x.flatten(1).reshape(-1, 8, 6, 6))
    yield Case("transpose", {"x": IMAGE}, [a, "transpose: {axes: [0, 3, 2, 1]}", "sigmoid"],
               lambda: nn.Sequential(nn.Conv2d(4, 8, 3, padding=1),
                                     module_of(lambda x: x.permute(0, 3, 2, 1)), nn.Sigmoid()))
    yield of_one("roll along one axis", ["roll: {shifts: [2], axes: [2]}"],
                 lambda x: x.roll(2, 2))
    yield of_one("identity", ["identity"], lambda x: x)
    yield of_one("cast to the same format", ["cast: {dtype: float32}"], lambda x: x.float())
    yield of_one("cast to float16 and back", ["cast: {dtype: float16}", "cast: {dtype: float32}"],
                 lambda x: x.half(), lambda x: x.float())
    yield of_one("a constant made in the step", [
        "constant: {shape: [8, 1, 1], value: 2, name: c}", "mul: {from: [a, c]}"],
        lambda x: x * torch.full((8, 1, 1), 2.0, device="cuda"))

    class Buffered(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("value", torch.ones(8, 1, 1))

        def forward(self, x):
            return x + self.value

    yield Case("a constant kept as a buffer", {"x": IMAGE},
               [a, "constant: {shape: [8, 1, 1], value: 1, buffer: true, name: c}",
                "add: {from: [a, c]}", last],
               lambda: nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), Buffered(),
                                     nn.Conv2d(8, 2, 1)))


if __name__ == "__main__":
    operator_saved.main("layout", cases)
