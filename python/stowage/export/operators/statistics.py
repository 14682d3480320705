"""Norms, extremes and spreads along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..layers import Conversion, Number, Unsupported, rule
from .arithmetic import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..capture import Operation, Value


@rule("linalg_vector_norm", "norm")
def norm(c: Conversion, op: Operation, self: Value, ord: Number | None = None,
         p: Number | None = None, dim: int | Sequence[int] | None = None, keepdim: bool = False,
         dtype: Any = None) -> None:
    power = ord if p is None else p
    c.emit("norm", [self], op.outputs,
           {"p": 2 if power is None else power, "axes": listed(dim), "keep": keepdim})


@rule("amax", "amin")
def extreme(c: Conversion, op: Operation, self: Value, dim: int | Sequence[int] | None,
            keepdim: bool) -> None:
    c.emit(op.name, [self], op.outputs, {"axes": listed(dim), "keep": keepdim})


@rule("max", "min")
def extreme_or_larger(c: Conversion, op: Operation, self: Value, other: Value | None = None,
                      dim: int | None = None, keepdim: bool = False) -> None:
    if op.overload == "dim":
        c.emit(op.name, [self], op.outputs, {"axis": dim, "keep": keepdim})
    elif op.overload == "other":
        c.emit("maximum" if op.name == "max" else "minimum", [self, other], op.outputs)
    else:
        raise Unsupported(f"aten.{op.name} of all elements")


@rule("argmax", "argmin")
def place_of_extreme(c: Conversion, op: Operation, self: Value, dim: int | None,
                     keepdim: bool) -> None:
    if dim is None:
        raise Unsupported(f"aten.{op.name} of all elements")
    c.emit(op.name, [self], op.outputs, {"axis": dim, "keep": keepdim})


@rule("var", "std")
def spread(c: Conversion, op: Operation, self: Value, dim: int | Sequence[int] | None = None,
           correction: Number | None = None, unbiased: bool = True, keepdim: bool = False) -> None:
    if correction is None:
        correction = 1 if unbiased else 0
    c.emit(op.name, [self], op.outputs,
           {"axes": listed(dim), "correction": correction, "keep": keepdim})


@rule("cumsum")
def cumsum(c: Conversion, op: Operation, self: Value, dim: int, dtype: Any = None) -> None:
    c.emit("cumsum", [self], op.outputs, {"axis": dim})


@rule("topk")
def topk(c: Conversion, op: Operation, self: Value, k: int, dim: int, largest: bool,
         sorted: bool) -> None:
    c.emit("topk", [self], op.outputs, {"count": k, "axis": dim, "largest": largest})


@rule("sort")
def sort(c: Conversion, op: Operation, self: Value, dim: int = -1, descending: bool = False,
         stable: bool | None = None) -> None:
    c.emit("sort", [self], op.outputs, {"axis": dim, "descending": descending})


@rule("argsort")
def argsort(c: Conversion, op: Operation, self: Value, dim: int = -1, descending: bool = False,
            stable: bool | None = None) -> None:
    c.emit("argsort", [self], op.outputs, {"axis": dim, "descending": descending})
