"""Sums, products and reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from ..capture import Operation, Value, same_memory_format
from ..layers import Conversion, Number, Operand, Unsupported, rule
from .losses import sum_of_losses, weighted_loss

if TYPE_CHECKING:
    from collections.abc import Sequence


def in_place(op: Operation) -> bool:
    return op.name.endswith("_")


def is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def binary(c: Conversion, op: Operation, name: str, a: Any, b: Any) -> None:
    """A binary layer; a parameter or a constant may be either side. A sum that is not in place
    reads first what was made last: left out, it stands for that (optional.py). Where the two lie in
    memory in different orders PyTorch's order is kept, since the result lies as the first does."""
    if name == "add" and not in_place(op) and made_by(c, b) > made_by(c, a) and same_memory_format(
            c.real(a), c.real(b)):
        a, b = b, a
    c.emit(name, [a, b], op.outputs, {"in_place": True} if in_place(op) else {})


def made_by(c: Conversion, value: Value) -> int:
    """The number of the layer that made the value; -1 for parameters, constants and inputs."""
    value = c.real(value)
    if c.is_constant(value) or value.kind != "result":
        return -1
    return c.order.get(value, -1)


def scaled(c: Conversion, op: Operation, value: Value, factor: Number, offset: Number = 0) -> None:
    c.emit("scale", [value], op.outputs,
           {"factor": factor, "offset": offset, "in_place": in_place(op)})


@rule("add", "add_")
def add(c: Conversion, op: Operation, self: Value, other: Operand, alpha: Number = 1) -> None:
    if sum_of_losses(c, op, self, other):
        return
    if is_number(other):
        scaled(c, op, self, 1, other * alpha)
    elif alpha != 1:
        raise Unsupported("aten.add with alpha")
    else:
        binary(c, op, "add", self, other)


@rule("sub", "sub_")
def subtract(c: Conversion, op: Operation, self: Value, other: Operand, alpha: Number = 1) -> None:
    if is_number(other):
        scaled(c, op, self, 1, -other * alpha)
    elif alpha != 1 or in_place(op):
        raise Unsupported("aten.sub with alpha or in place")
    else:
        c.emit("sub", [self, other], op.outputs)


@rule("rsub")
def reversed_subtract(c: Conversion, op: Operation, self: Value, other: Operand,
                      alpha: Number = 1) -> None:
    if is_number(other) and alpha == 1:
        scaled(c, op, self, -1, other)
    else:
        raise Unsupported("aten.rsub")


@rule("neg", "neg_")
def negate(c: Conversion, op: Operation, self: Value) -> None:
    scaled(c, op, self, -1)


@rule("mul", "mul_")
def multiply(c: Conversion, op: Operation, self: Value, other: Operand) -> None:
    if is_number(other) and weighted_loss(c, op, self, other):
        return
    if is_number(other):
        scaled(c, op, self, other)
        return
    for value, factor in ((self, other), (other, self)):
        if is_weight(c, value, factor):
            if in_place(op) and factor is self:
                break
            c.emit("scale", [value], op.outputs,
                   {"learned": True, "shape": list(c.real(factor).shape), "in_place": in_place(op)},
                   [("weight", factor)], c.real(factor).name.rpartition(".")[2])
            return
    binary(c, op, "mul", self, other)


def is_weight(c: Conversion, value: Operand, factor: Operand) -> bool:
    """Whether `factor` is a parameter of which this is the only use, and `value` is neither."""
    factor = c.real(factor)
    return (factor.kind == "parameter" and c.real(value).kind == "result" and
            not c.is_constant(value) and len(factor.readers) == 1)


@rule("div", "div_")
def divide(c: Conversion, op: Operation, self: Value, other: Operand,
           rounding_mode: str | None = None) -> None:
    if rounding_mode:
        raise Unsupported("aten.div that rounds")
    if is_number(other):
        scaled(c, op, self, 1 / other)
    else:
        binary(c, op, "div", self, other)


def listed(dim: int | Sequence[int] | None) -> list[int]:
    """The axes as a list; none: all."""
    return [] if dim is None else [dim] if isinstance(dim, int) else list(dim)


@rule("mean", "sum")
def reduction(c: Conversion, op: Operation, self: Value, dim: int | Sequence[int] | None = None,
              keepdim: bool = False, dtype: Any = None) -> None:
    if op.overload not in ("", "default", "dim", "dim_IntList"):
        raise Unsupported(f"aten.{op.name}.{op.overload}")
    c.emit(op.name, [self], op.outputs, {"axes": listed(dim), "keep": keepdim})


@rule("to", "_to_copy", "type", "type_as", "float", "double", "half", "bfloat16")
def cast(c: Conversion, op: Operation, **arguments: Any) -> None:
    value = next(v for v in arguments.values() if isinstance(v, Value))
    if op.outputs[0].dtype == c.real(value).dtype:
        c.same(op.outputs[0], c.real(value))
    else:
        c.emit("cast", [value], op.outputs, {"dtype": op.outputs[0].dtype})
