"""Extrema, variances, norms and what else goes along axes: operators/reduction.json (see
operator_saved.py)."""

import math

import operator_saved
from operator_saved import Case, module_of

IMAGE = "[batch, 4, 6, 5]"
FIRST = "conv2d: {name: first, channels: 8, kernel: 3, padding: 1}"
LAST = "conv2d: {channels: 2, kernel: 1}"


def cases():
    import torch
    import torch.nn.functional as functional
    from torch import nn

    def between(name, layers, *functions, channels=8, **settings):
        """What is under test between two convolutions, so that its input needs a gradient."""
        return Case(name, {"x": IMAGE}, [FIRST, *layers, LAST],
                    lambda: nn.Sequential(nn.Conv2d(4, 8, 3, padding=1),
                                          *map(module_of, functions),
                                          nn.Conv2d(channels, 2, 1)), **settings)

    back = "reshape: {shape: [batch, 8, 1, 1]}"

    def image(x):
        return x.reshape(-1, 8, 1, 1)

    forms = {
        "amax": (torch.amax, ""), "amin": (torch.amin, ""), "var": (torch.var, ""),
        "std": (torch.std, ""),
        "var without correction": (lambda x, axes, keepdim: x.var(axes, correction=0,
                                                                  keepdim=keepdim),
                                   ", correction: 0"),
        **{f"norm of p {p}": (lambda x, axes, keepdim, p=p: torch.linalg.vector_norm(
            x, p, axes, keepdim), f", p: {'.inf' if math.isinf(p) else p}")
           for p in (1, 2, 3, 1.5, 0.5, math.inf, -1, -2.5)},
        "norm of p -inf": (lambda x, axes, keepdim: torch.linalg.vector_norm(
            x, -math.inf, axes, keepdim), ", p: -.inf"),
    }
    for name, (function, more) in forms.items():
        row = name.split()[0]
        yield between(f"{name} keeps axes", [f"{row}: {{axes: [2, 3], keep: true{more}}}"],
                      lambda x, f=function: f(x, (2, 3), keepdim=True))
        yield between(name, [f"{row}: {{axes: [2, 3]{more}}}", back],
                      lambda x, f=function: f(x, (2, 3), keepdim=False), image)
        yield between(f"{name} over channels, of a sigmoid",
                      ["sigmoid", f"{row}: {{axes: [1], keep: true{more}}}"],
                      torch.sigmoid, lambda x, f=function: f(x, (1,), keepdim=True), channels=1)
        yield between(f"{name}, inference", [f"{row}: {{axes: [2, 3], keep: true{more}}}"],
                      lambda x, f=function: f(x, (2, 3), keepdim=True), mode="inference")
        yield between(f"{name} under amp-bf16", [f"{row}: {{axes: [2, 3], keep: true{more}}}"],
                      lambda x, f=function: f(x, (2, 3), keepdim=True), precision="amp-bf16")

    # The number of elements that are not 0 has no gradient: what it was counted of has another use.
    for mode in ("train", "inference"):
        yield between(f"norm of p 0, {mode}", [
            "norm: {name: count, p: 0, axes: [2, 3], keep: true}", "mul: {from: [first, count]}"],
            lambda x: x * torch.linalg.vector_norm(x, 0, (2, 3), keepdim=True), mode=mode)

    yield between("normalize", ["norm: {name: length, axes: [1], keep: true}",
                                "clamp: {name: bounded, minimum: 1.0e-12}",
                                "expand: {name: wide, shape: [batch, 8, 6, 5]}",
                                "div: {from: [first, wide]}"],
                  lambda x: functional.normalize(x, dim=1))

    for name, function in (("max", torch.max), ("min", torch.min)):
        yield between(f"{name} keeps its axis", [f"{name}: {{name: m, axis: 1, keep: true}}",
                                                 "mul: {from: [first, m.0]}"],
                      lambda x, f=function: x * f(x, 1, keepdim=True)[0])
        yield between(f"{name} of the last axis", [
            f"{name}: {{name: m, axis: -1}}", "reshape: {from: m.0, shape: [batch, 8, 6, 1]}"],
            lambda x, f=function: f(x, -1)[0].reshape(-1, 8, 6, 1))
        yield between(f"{name}, inference", [
            f"{name}: {{name: m, axis: 1, keep: true}}", "mul: {from: [first, m.0]}"],
            lambda x, f=function: x * f(x, 1, keepdim=True)[0], mode="inference")

    class Chosen(nn.Module):
        """Rows of a table by the place of the largest channel."""

        def __init__(self, function):
            super().__init__()
            self.first, self.table = nn.Conv2d(4, 8, 3, padding=1), nn.Embedding(8, 3)
            self.function = function

        def forward(self, x):
            return self.table(self.function(self.first(x), 1))

    for name in ("argmax", "argmin"):
        yield Case(name, {"x": IMAGE}, [FIRST, f"{name}: {{axis: 1}}",
                                        "embedding: {count: 8, features: 3}"],
                   lambda f=getattr(torch, name): Chosen(f))

    yield between("cumsum", ["cumsum: {axis: 1}"], lambda x: x.cumsum(1))
    yield between("cumsum of a sigmoid along the last axis", ["sigmoid", "cumsum: {axis: -1}"],
                  torch.sigmoid, lambda x: x.cumsum(-1))
    yield between("cumsum, inference", ["cumsum: {axis: 1}"], lambda x: x.cumsum(1),
                  mode="inference")
    yield between("cumsum under amp-bf16", ["cumsum: {axis: 1}"], lambda x: x.cumsum(1),
                  precision="amp-bf16")
    yield between("topk", ["topk: {name: t, count: 3, axis: 1}", "identity: {from: t.0}"],
                  lambda x: x.topk(3, 1)[0], channels=3)
    yield between("topk of the smallest", [
        "topk: {name: t, count: 2, axis: -1, largest: false}", "identity: {from: t.0}"],
        lambda x: x.topk(2, -1, largest=False)[0])
    yield between("topk, inference", ["topk: {name: t, count: 3, axis: 1}",
                                      "identity: {from: t.0}"],
                  lambda x: x.topk(3, 1)[0], channels=3, mode="inference")
    yield between("sort", ["sort: {name: t, axis: 1}", "identity: {from: t.0}"],
                  lambda x: x.sort(1)[0])
    yield between("sort, falling, of a permuted tensor", [
        "transpose: {axes: [0, 2, 3, 1]}", "sort: {name: t, axis: 1, descending: true}",
        "transpose: {from: t.0, axes: [0, 3, 1, 2]}"],
        lambda x: x.permute(0, 2, 3, 1), lambda x: x.sort(1, descending=True)[0],
        lambda x: x.permute(0, 3, 1, 2))
    yield between("sort, inference", ["sort: {name: t}", "identity: {from: t.0}"],
                  lambda x: x.sort()[0], mode="inference")
    yield between("sort under amp-fp16", ["sort: {name: t, axis: 2}", "identity: {from: t.0}"],
                  lambda x: x.sort(2)[0], precision="amp-fp16")
    yield between("places of a sort, by which its input is gathered", [
        "argsort: {name: t, axis: 1, descending: true}", "gather: {from: [first, t], axis: 1}"],
        lambda x: x.gather(1, x.argsort(1, descending=True)))


if __name__ == "__main__":
    operator_saved.main("reduction", cases)
