"""Functions of one or more tensors, element by element, that the catalogue calls as ATen does."""

from __future__ import annotations

from ..capture import Operation, Value
from ..layers import Conversion, Number, Operand, Unsupported, rule
from .arithmetic import in_place, is_number


@rule("rsqrt", "reciprocal", "abs", "sin", "cos", "erf", "log1p", "expm1", "sign", "floor", "ceil",
      "trunc", "log_sigmoid")
def function(c: Conversion, op: Operation, self: Value) -> None:
    c.emit(op.name, [self], op.outputs)


@rule("round")
def rounded(c: Conversion, op: Operation, self: Value, decimals: int = 0) -> None:
    if decimals:
        raise Unsupported("aten.round to decimals")
    c.emit(op.name, [self], op.outputs)


@rule("selu", "selu_")
def selu(c: Conversion, op: Operation, self: Value) -> None:
    c.emit("selu", [self], op.outputs, {"in_place": in_place(op)})


@rule("celu", "celu_")
def celu(c: Conversion, op: Operation, self: Value, alpha: Number) -> None:
    c.emit("celu", [self], op.outputs, {"alpha": alpha, "in_place": in_place(op)})


@rule("maximum", "minimum")
def larger(c: Conversion, op: Operation, self: Value, other: Value) -> None:
    c.emit(op.name, [self, other], op.outputs)


@rule("addcmul", "addcdiv")
def combined(c: Conversion, op: Operation, self: Value, tensor1: Value, tensor2: Value,
             value: Number) -> None:
    c.emit(op.name, [self, tensor1, tensor2], op.outputs, {"value": value})


@rule("clamp_min", "clamp_max")
def one_sided(c: Conversion, op: Operation, self: Value, min: Number | None = None,
              max: Number | None = None) -> None:
    bound = max if min is None else min
    if not is_number(bound):
        raise Unsupported(f"aten.{op.name} of one bound")
    c.emit("clamp", [self], op.outputs, {"maximum" if min is None else "minimum": bound})


@rule("eq", "ne", "lt", "le", "gt", "ge")
def compare(c: Conversion, op: Operation, self: Value, other: Operand) -> None:
    if isinstance(other, Value):
        c.emit("compare", [self, other], op.outputs, {"operation": op.name})
    else:
        c.emit("compare", [self], op.outputs, {"operation": op.name, "value": other})


@rule("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "__and__", "__or__")
def logical(c: Conversion, op: Operation, self: Value, other: Operand) -> None:
    if op.outputs[0].dtype != "bool" or not isinstance(other, Value):
        raise Unsupported(f"aten.{op.name}")
    word = op.name.strip("_").rpartition("_")[2]
    c.emit("logical", [self, other], op.outputs, {"operation": word})


@rule("logical_not", "bitwise_not")
def negation(c: Conversion, op: Operation, self: Value) -> None:
    if op.outputs[0].dtype != "bool":
        raise Unsupported(f"aten.{op.name}")
    c.emit("logical", [self], op.outputs, {"operation": "not"})


@rule("where")
def where(c: Conversion, op: Operation, condition: Value, self: Operand, other: Operand) -> None:
    if not isinstance(self, Value) or not isinstance(other, Value):
        raise Unsupported("aten.where with a number")
    c.emit("where", [condition, self, other], op.outputs)


@rule("masked_fill")
def masked_fill(c: Conversion, op: Operation, self: Value, mask: Value, value: Operand) -> None:
    if not is_number(value):
        raise Unsupported("aten.masked_fill with a tensor")
    c.emit("masked_fill", [self, mask], op.outputs, {"value": value})
