"""Activations, dropouts and other operations on one tensor, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..layers import Conversion, Number, Operand, Unsupported, rule

if TYPE_CHECKING:
    from ..capture import Operation, Value

PLAIN = ("relu", "silu", "mish", "hardswish", "hardsigmoid", "sigmoid", "tanh")


@rule(*PLAIN, *(name + "_" for name in PLAIN))
def activation(c: Conversion, op: Operation, self: Value) -> None:
    name = op.name.rstrip("_")
    c.emit(name, [self], op.outputs, {"in_place": op.name.endswith("_")})


@rule("sqrt", "exp", "log")
def function(c: Conversion, op: Operation, self: Value) -> None:
    c.emit(op.name, [self], op.outputs)


@rule("relu6", "relu6_")
def relu6(c: Conversion, op: Operation, self: Value) -> None:
    c.emit("relu6", [self], op.outputs, {"in_place": op.name.endswith("_")})


@rule("hardtanh", "hardtanh_")
def hardtanh(c: Conversion, op: Operation, self: Value, min_val: Number, max_val: Number) -> None:
    if (min_val, max_val) == (0, 6):
        relu6(c, op, self)
        return
    c.emit("hardtanh", [self], op.outputs,
           {"minimum": min_val, "maximum": max_val, "in_place": op.name.endswith("_")})


@rule("leaky_relu", "leaky_relu_")
def leaky_relu(c: Conversion, op: Operation, self: Value, negative_slope: float) -> None:
    c.emit("leaky_relu", [self], op.outputs,
           {"negative_slope": negative_slope, "in_place": op.name.endswith("_")})


@rule("prelu")
def prelu(c: Conversion, op: Operation, self: Value, weight: Value) -> None:
    c.emit("prelu", [self], op.outputs, {"parameters": c.parameter(weight).shape[0]},
           [("weight", weight)])


@rule("elu", "elu_")
def elu(c: Conversion, op: Operation, self: Value, alpha: Number, scale: Number,
        input_scale: Number) -> None:
    if scale != 1 or input_scale != 1:
        raise Unsupported("aten.elu with a scale")
    c.emit("elu", [self], op.outputs, {"alpha": alpha, "in_place": op.name.endswith("_")})


@rule("gelu")
def gelu(c: Conversion, op: Operation, self: Value, approximate: str) -> None:
    c.emit("gelu", [self], op.outputs, {"approximate": approximate})


@rule("softplus")
def softplus(c: Conversion, op: Operation, self: Value, beta: Number, threshold: Number) -> None:
    c.emit("softplus", [self], op.outputs, {"beta": beta, "threshold": threshold})


@rule("glu")
def glu(c: Conversion, op: Operation, self: Value, dim: int) -> None:
    c.emit("glu", [self], op.outputs, {"axis": dim})


@rule("softmax", "log_softmax", "_softmax", "_log_softmax")
def softmax(c: Conversion, op: Operation, self: Value, dim: int, dtype: Any = None,
            half_to_float: bool = False) -> None:
    c.emit(op.name.lstrip("_"), [self], op.outputs, {"axis": dim})


@rule("dropout", "dropout_", "feature_dropout", "feature_dropout_")
def dropout(c: Conversion, op: Operation, input: Value | None = None, p: float = 0.5,
            train: bool = True, self: Value | None = None) -> None:
    value = self if input is None else input
    if not train or p == 0:
        c.same(op.outputs[0], c.real(value))
        return
    if p >= 1:
        raise Unsupported("aten.dropout of everything")
    c.emit(op.name.rstrip("_"), [value], op.outputs, {"p": p, "in_place": op.name.endswith("_")})


@rule("clamp", "clamp_")
def clamp(c: Conversion, op: Operation, self: Value, min: Number | None,
          max: Number | None) -> None:
    if op.overload == "Tensor" or op.name.endswith("_"):
        raise Unsupported(f"aten.{op.name} with tensors or in place")
    bounds = {"minimum": min, "maximum": max}
    c.emit("clamp", [self], op.outputs, {k: v for k, v in bounds.items() if v is not None})


@rule("pow")
def power(c: Conversion, op: Operation, self: Value, exponent: Operand) -> None:
    if not isinstance(exponent, (int, float)):
        raise Unsupported("aten.pow with a tensor")
    c.emit("pow", [self], op.outputs, {"exponent": exponent})


@rule("square")
def square(c: Conversion, op: Operation, self: Value) -> None:
    c.emit("pow", [self], op.outputs, {"exponent": 2})


@rule("alias", "detach", "lift_fresh", "lift_fresh_copy")
def alias(c: Conversion, op: Operation, self: Value) -> None:
    """Also what capture.py marks: a module that passes its input on."""
    if op.scopes and op.scopes[-1][1] in ("DropPath", "StochasticDepth"):
        kind = "torchvision" if op.scopes[-1][1] == "StochasticDepth" else "timm"
        c.emit("drop_path", [self], op.outputs, {"p": 0, "as": kind})
    else:
        c.same(op.outputs[0], c.real(self))
