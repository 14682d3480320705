"""Norms, extremes and spreads along axes."""

from ..layers import Unsupported, rule
from .arithmetic import is_number


def listed(dim):
    return [] if dim is None else [dim] if is_number(dim) else list(dim)


@rule("linalg_vector_norm", "norm")
def norm(c, op, self, ord=None, p=None, dim=None, keepdim=False, dtype=None):
    power = ord if p is None else p
    c.emit("norm", [self], op.outputs,
           {"p": 2 if power is None else power, "axes": listed(dim), "keep": keepdim})


@rule("amax", "amin")
def extreme(c, op, self, dim, keepdim):
    c.emit(op.name, [self], op.outputs, {"axes": listed(dim), "keep": keepdim})


@rule("max", "min")
def extreme_or_larger(c, op, self, other=None, dim=None, keepdim=False):
    if op.overload == "dim":
        c.emit(op.name, [self], op.outputs, {"axis": dim, "keep": keepdim})
    elif op.overload == "other":
        c.emit("maximum" if op.name == "max" else "minimum", [self, other], op.outputs)
    else:
        raise Unsupported(f"aten.{op.name} of all elements")


@rule("argmax", "argmin")
def place_of_extreme(c, op, self, dim, keepdim):
    if dim is None:
        raise Unsupported(f"aten.{op.name} of all elements")
    c.emit(op.name, [self], op.outputs, {"axis": dim, "keep": keepdim})


@rule("var", "std")
def spread(c, op, self, dim=None, correction=None, unbiased=True, keepdim=False):
    if correction is None:
        correction = 1 if unbiased else 0
    c.emit(op.name, [self], op.outputs,
           {"axes": listed(dim), "correction": correction, "keep": keepdim})


@rule("cumsum")
def cumsum(c, op, self, dim, dtype=None):
    c.emit("cumsum", [self], op.outputs, {"axis": dim})


@rule("topk")
def topk(c, op, self, k, dim, largest, sorted):
    c.emit("topk", [self], op.outputs, {"count": k, "axis": dim, "largest": largest})


@rule("sort")
def sort(c, op, self, dim=-1, descending=False, stable=None):
    c.emit("sort", [self], op.outputs, {"axis": dim, "descending": descending})


@rule("argsort")
def argsort(c, op, self, dim=-1, descending=False, stable=None):
    c.emit("argsort", [self], op.outputs, {"axis": dim, "descending": descending})
