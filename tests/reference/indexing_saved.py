"""Elements by index, masks and what they select, repetition, windows as columns:
operators/indexing.json (see operator_saved.py)."""

import math

import operator_saved
from operator_saved import Case, module_of

IMAGE = "[batch, 4, 6, 5]"
FIRST = "conv2d: {name: first, channels: 8, kernel: 3, padding: 1}"
LAST = "conv2d: {channels: 2, kernel: 1}"
INT = "int64"


def cases():
    import torch
    import torch.nn.functional as functional
    from torch import nn

    class Between(nn.Module):
        """`function` of a convolution's result and of further inputs, between convolutions."""

        def __init__(self, function, channels):
            super().__init__()
            self.first, self.last = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(channels, 2, 1)
            self.function = function

        def forward(self, x, *more):
            return self.last(self.function(self.first(x), *more))

    def between(name, layers, function, more=None, channels=8, **settings):
        layers = layers if isinstance(layers, list) else [layers]
        return Case(name, {"x": IMAGE, **(more or {})}, [FIRST, *layers, LAST],
                    lambda: Between(function, channels), **settings)

    class Two(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.a, self.b = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(4, 8, 1)
            self.last, self.function = nn.Conv2d(8, 2, 1), function

        def forward(self, x, *more):
            return self.last(self.function(self.a(x), self.b(x), *more))

    def of_two(name, layer, function, more=None, **settings):
        return Case(name, {"x": IMAGE, **(more or {})}, [
            "conv2d: {name: a, from: x, channels: 8, kernel: 3, padding: 1}",
            "conv2d: {name: b, from: x, channels: 8, kernel: 1}",
            *(layer if isinstance(layer, list) else [layer]), LAST],
            lambda: Two(function), **settings)

    def assigned(channels, count=8):
        def function(a, b):
            a[:, channels] = b[:, :count]
            return a

        return function

    def corner(a, b):
        a[:, :, 1:3, 1:] = b[:, :, :2, :4]
        return a

    def rows_written(a, c):
        a[:, :, 1:3] = c
        return a

    places = {"i": ("[3]", INT)}
    for mode in ("train", "inference"):
        word = "" if mode == "train" else ", inference"
        yield between(f"index_select of channels{word}", "index_select: {from: [first, i], axis: 1}",
                      lambda x, i: x.index_select(1, i), places, channels=3, mode=mode)
        yield between(f"index of channels{word}", "index: {from: [first, i], axis: 1}",
                      lambda x, i: x[:, i], places, channels=3, mode=mode)
        yield between(f"gather{word}", "gather: {from: [first, i], axis: 1}",
                      lambda x, i: x.gather(1, i), {"i": ("[batch, 3, 6, 5]", INT)}, channels=3,
                      mode=mode)
        yield between(f"masked_fill{word}", "masked_fill: {from: [first, m], value: -.inf}",
                      lambda x, m: x.masked_fill(m, -math.inf), {"m": (IMAGE.replace("4", "8"),
                                                                     "bool")}, mode=mode)
        yield of_two(f"where{word}", "where: {from: [m, a, b]}",
                     lambda a, b, m: torch.where(m, a, b), {"m": ("[batch, 8, 6, 5]", "bool")},
                     mode=mode)
        yield between(f"repeat{word}", "tile: {repeats: [1, 2, 1, 3]}",
                      lambda x: x.repeat(1, 2, 1, 3), channels=16, mode=mode)
        yield between(f"repeat_interleave{word}", "repeat_interleave: {repeats: 2, axis: 1}",
                      lambda x: x.repeat_interleave(2, 1), channels=16, mode=mode)
    yield between("index_select of the last axis", "index_select: {from: [first, i], axis: -1}",
                  lambda x, i: x.index_select(-1, i), places)
    yield between("index of the last axis", "index: {from: [first, i], axis: -1}",
                  lambda x, i: x[..., i], places)
    yield between("index of rows and columns", ["index: {from: [first, i, j], axis: 2}",
                                                "reshape: {shape: [batch, 8, 3, 1]}"],
                  lambda x, i, j: x[:, :, i, j].reshape(-1, 8, 3, 1),
                  {**places, "j": ("[3]", INT)})
    yield between("index by a matrix", ["index: {from: [first, i], axis: 1}",
                                        "reshape: {shape: [batch, 6, 6, 5]}"],
                  lambda x, i: x[:, i].reshape(-1, 6, 6, 5), {"i": ("[2, 3]", INT)}, channels=6)
    yield between("index of a permuted tensor", ["transpose: {axes: [0, 2, 3, 1]}",
                                                 "index: {axis: 3, from: [transpose_1, i]}",
                                                 "transpose: {axes: [0, 3, 1, 2]}"],
                  lambda x, i: x.permute(0, 2, 3, 1)[..., i].permute(0, 3, 1, 2), places, channels=3)
    yield between("masked_fill by a broadcast mask", "masked_fill: {from: [first, m], value: 0}",
                  lambda x, m: x.masked_fill(m, 0), {"m": ("[batch, 1, 6, 5]", "bool")})
    yield of_two("where of a broadcast mask", "where: {from: [m, a, b]}",
                 lambda a, b, m: torch.where(m, a, b), {"m": ("[6, 5]", "bool")})
    yield between("where with a number", ["constant: {name: n, shape: [], value: 0.5}",
                                          "where: {from: [m, first, n]}"],
                  lambda x, m: torch.where(m, x, torch.full((), 0.5, device="cuda")),
                  {"m": ("[batch, 8, 6, 5]", "bool")})
    yield between("tile adds an axis in front", ["tile: {repeats: [1, 1, 1, 1, 2]}",
                                                 "reshape: {shape: [batch, 8, 6, 10]}"],
                  lambda x: x.repeat(1, 1, 1, 1, 2).reshape(-1, 8, 6, 10))
    yield between("repeat_interleave of the last axis", "repeat_interleave: {repeats: 3, axis: -1}",
                  lambda x: x.repeat_interleave(3, -1))
    yield between("unfold", ["unfold: {kernel: 3, padding: 1}",
                             "reshape: {shape: [batch, 72, 6, 5]}"],
                  lambda x: functional.unfold(x, 3, padding=1).reshape(-1, 72, 6, 5), channels=72)
    yield between("unfold with a stride", ["unfold: {kernel: [2, 1], stride: [2, 1], dilation: 1}",
                                           "reshape: {shape: [batch, 16, 3, 5]}"],
                  lambda x: functional.unfold(x, (2, 1), stride=(2, 1)).reshape(-1, 16, 3, 5),
                  channels=16)
    yield between("fold", ["reshape: {shape: [batch, 8, 30]}",
                           "fold: {size: [12, 5], kernel: [2, 1], stride: [2, 1]}"],
                  lambda x: functional.fold(x.reshape(-1, 8, 30), (12, 5), (2, 1), stride=(2, 1)),
                  channels=4)
    yield of_two("index_add", "index_add: {from: [a, i, b], axis: 1}",
                 lambda a, b, i: a.index_add(1, i, b), {"i": ("[8]", INT)})
    yield of_two("scatter_add", "scatter_add: {from: [a, i, b], axis: 1}",
                 lambda a, b, i: a.scatter_add(1, i, b), {"i": ("[batch, 8, 6, 5]", INT)})
    yield of_two("index_add, inference", "index_add: {from: [a, i, b], axis: 1}",
                 lambda a, b, i: a.index_add(1, i, b), {"i": ("[8]", INT)}, mode="inference")
    for mode in ("train", "inference"):
        word = "" if mode == "train" else ", inference"
        elements = {"i": ("[batch, 8, 6, 5]", INT)}
        yield of_two(f"scatter{word}", "scatter: {from: [a, i, b], axis: 1}",
                     lambda a, b, i: a.scatter(1, i, b), elements, mode=mode)
        yield between(f"scatter of a number{word}",
                      "scatter: {from: [first, i], axis: 1, value: 0.5}",
                      lambda x, i: x.scatter(1, i, 0.5), {"i": ("[batch, 3, 6, 5]", INT)},
                      mode=mode)
        yield of_two(f"a whole tensor written over another{word}",
                     "slice_scatter: {from: [a, b], in_place: true}", assigned(slice(None)),
                     mode=mode)
        yield of_two(f"channels written over those of another{word}", [
            "slice: {name: part, from: b, axis: 1, length: 3}",
            "slice_scatter: {from: [a, part], start: [0, 2, 0, 0], in_place: true}"],
            assigned(slice(2, 5), 3), mode=mode)
        yield of_two(f"channels written over those of a copy{word}", [
            "slice: {name: part, from: b, axis: 1, length: 3}",
            "slice_scatter: {from: [a, part], start: [0, 2, 0, 0]}"],
            lambda a, b: assigned(slice(2, 5), 3)(a.clone(), b), mode=mode)
    yield between("scatter into a permuted tensor", "scatter: {from: [first, i], axis: 1}",
                  lambda x, i: x.scatter(1, i, 0), {"i": ("[batch, 3, 6, 5]", INT)}, layout="nhwc")
    yield of_two("a part of an image written over another's", [
        "slice: {name: rows, from: b, axis: 2, length: 2}",
        "slice: {name: part, from: rows, axis: 3, length: 4}",
        "slice_scatter: {from: [a, part], start: [0, 0, 1, 1], in_place: true}"], corner)
    yield of_two("an input written into a part", [
        "slice_scatter: {from: [a, c], start: [0, 0, 1, 0], in_place: true}",
        "add: {from: [slice_scatter_1, b]}"],
        lambda a, b, c: rows_written(a, c) + b, {"c": "[batch, 8, 2, 5]"})
    for name in ("tril", "triu"):
        yield between(name, f"{name}: {{diagonal: 1}}",
                      lambda x, f=getattr(torch, name): f(x, 1))
    yield between("masked by a comparison", ["compare: {name: m, operation: gt, value: 0.5}",
                                             "masked_fill: {from: [first, m], value: 0}"],
                  lambda x: x.masked_fill(x > 0.5, 0))
    yield between("masked by two comparisons", [
        "compare: {name: m, from: first, operation: gt, value: 0.5}",
        "compare: {name: n, from: first, operation: lt, value: 0.7}",
        "logical: {name: both, from: [m, n], operation: and}",
        "masked_fill: {from: [first, both], value: 0}"],
        lambda x: x.masked_fill(torch.logical_and(x > 0.5, x < 0.7), 0))


if __name__ == "__main__":
    operator_saved.main("indexing", cases)
