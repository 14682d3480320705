"""Losses, their weights and their sums."""

from ..capture import Value
from ..layers import Unsupported, rule

REDUCTION_MEAN = 1


def loss_layer(c, op, name, inputs, attributes):
    """A target that was made on the spot stands for one that a training script has: an input."""
    target = c.real(inputs[1])
    if c.is_constant(target):
        inputs = [inputs[0], Value("input", target.shape, target.dtype, "target")]
        c.captured.inputs.append(inputs[1])
    layer = c.emit(name, inputs, op.outputs, attributes)
    c.layers.remove(layer)
    c.losses.append(layer)


@rule("cross_entropy_loss")
def cross_entropy(c, op, self, target, weight, reduction, ignore_index, label_smoothing):
    if weight is not None or reduction != REDUCTION_MEAN:
        raise Unsupported("aten.cross_entropy_loss with weights of classes or without a mean")
    loss_layer(c, op, "cross_entropy", [self, target],
               {"ignore_index": ignore_index, "label_smoothing": label_smoothing})


@rule("nll_loss", "nll_loss2d", "nll_loss_nd")
def nll(c, op, self, target, weight, reduction, ignore_index):
    if weight is not None or reduction != REDUCTION_MEAN:
        raise Unsupported("aten.nll_loss with weights of classes or without a mean")
    loss_layer(c, op, "nll", [self, target], {"ignore_index": ignore_index})


@rule("mse_loss", "l1_loss")
def difference(c, op, self, target, reduction):
    if reduction != REDUCTION_MEAN:
        raise Unsupported(f"aten.{op.name} without a mean")
    loss_layer(c, op, op.name.removesuffix("_loss"), [self, target], {})


@rule("binary_cross_entropy")
def bce(c, op, self, target, weight, reduction):
    if weight is not None or reduction != REDUCTION_MEAN:
        raise Unsupported("aten.binary_cross_entropy with weights or without a mean")
    loss_layer(c, op, "bce", [self, target], {})


@rule("binary_cross_entropy_with_logits")
def bce_with_logits(c, op, self, target, weight, pos_weight, reduction):
    if weight is not None or pos_weight is not None or reduction != REDUCTION_MEAN:
        raise Unsupported("aten.binary_cross_entropy_with_logits with weights or without a mean")
    loss_layer(c, op, "bce_with_logits", [self, target], {})


def losses_of(c, value):
    """The losses whose sum the value is."""
    value = c.real(value) if hasattr(value, "readers") else value
    return [layer for layer in c.losses if value in layer.outputs]


def weighted_loss(c, op, value, factor):
    """A loss times a number: the loss has it as its weight. Whether it was one."""
    found = losses_of(c, value)
    for layer in found:
        layer.attributes["weight"] = layer.attributes.get("weight", 1) * factor
        layer.outputs.append(op.outputs[0])
    return bool(found)


def sum_of_losses(c, op, a, b):
    """Two losses added: each of them has the sum among its outputs. Whether they were losses."""
    first, second = losses_of(c, a), losses_of(c, b)
    if not first or not second:
        return False
    for layer in first + second:
        layer.outputs.append(op.outputs[0])
    return True
