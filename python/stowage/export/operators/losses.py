"""Losses, their weights and their sums."""

from __future__ import annotations

from typing import Any

from ..capture import Operation, Value
from ..layers import Conversion, Layer, Number, Unsupported, rule

REDUCTION_MEAN = 1


def loss_layer(c: Conversion, op: Operation, name: str, inputs: list[Value],
               attributes: dict[str, Any]) -> None:
    """Adds a loss. A target that the model makes of nothing stands for a training script's: an input."""
    target = c.real(inputs[1])
    if c.is_constant(target):
        inputs = [inputs[0], Value("input", target.shape, target.dtype, "target")]
        c.captured.inputs.append(inputs[1])
    layer = c.emit(name, inputs, op.outputs, attributes)
    c.layers.remove(layer)
    c.losses.append(layer)


@rule("cross_entropy_loss")
def cross_entropy(c: Conversion, op: Operation, self: Value, target: Value, weight: Value | None,
                  reduction: int, ignore_index: int, label_smoothing: float) -> None:
    if weight is not None or reduction != REDUCTION_MEAN:
        raise Unsupported("aten.cross_entropy_loss with weights of classes or without a mean")
    loss_layer(c, op, "cross_entropy", [self, target],
               {"ignore_index": ignore_index, "label_smoothing": label_smoothing})


@rule("nll_loss", "nll_loss2d", "nll_loss_nd")
def nll(c: Conversion, op: Operation, self: Value, target: Value, weight: Value | None,
        reduction: int, ignore_index: int) -> None:
    if weight is not None or reduction != REDUCTION_MEAN:
        raise Unsupported("aten.nll_loss with weights of classes or without a mean")
    loss_layer(c, op, "nll", [self, target], {"ignore_index": ignore_index})


@rule("mse_loss", "l1_loss")
def difference(c: Conversion, op: Operation, self: Value, target: Value, reduction: int) -> None:
    if reduction != REDUCTION_MEAN:
        raise Unsupported(f"aten.{op.name} without a mean")
    loss_layer(c, op, op.name.removesuffix("_loss"), [self, target], {})


@rule("binary_cross_entropy")
def bce(c: Conversion, op: Operation, self: Value, target: Value, weight: Value | None,
        reduction: int) -> None:
    if weight is not None or reduction != REDUCTION_MEAN:
        raise Unsupported("aten.binary_cross_entropy with weights or without a mean")
    loss_layer(c, op, "bce", [self, target], {})


@rule("binary_cross_entropy_with_logits")
def bce_with_logits(c: Conversion, op: Operation, self: Value, target: Value, weight: Value | None,
                    pos_weight: Value | None, reduction: int) -> None:
    if weight is not None or pos_weight is not None or reduction != REDUCTION_MEAN:
        raise Unsupported("aten.binary_cross_entropy_with_logits with weights or without a mean")
    loss_layer(c, op, "bce_with_logits", [self, target], {})


def losses_of(c: Conversion, value: Any) -> list[Layer]:
    """The losses whose sum the value is."""
    value = c.real(value) if hasattr(value, "readers") else value
    return [layer for layer in c.losses if value in layer.outputs]


def weighted_loss(c: Conversion, op: Operation, value: Value, factor: Number) -> bool:
    """Multiplies the weights of the losses that the value sums. Returns whether it sums losses."""
    found = losses_of(c, value)
    for layer in found:
        layer.attributes["weight"] = layer.attributes.get("weight", 1) * factor
        layer.outputs.append(op.outputs[0])
    return bool(found)


def sum_of_losses(c: Conversion, op: Operation, a: Any, b: Any) -> bool:
    """Adds the sum to the outputs of the losses of both values. Returns whether both sum losses."""
    first, second = losses_of(c, a), losses_of(c, b)
    if not first or not second:
        return False
    for layer in first + second:
        layer.outputs.append(op.outputs[0])
    return True
