"""Convolutions, linear layers, matrix products, attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..layers import Conversion, Number, Numbers, Unsupported, rule
from ..sizes import fixed

if TYPE_CHECKING:
    from ..capture import Operation, Value

# How many axes attention's query may have; key and value have as many.
ATTENTION_AXES = (3, 4, 5)


def filled(numbers: Numbers, axes: int) -> list[Any]:
    listed = [numbers] if isinstance(numbers, int) else list(numbers)
    return listed * axes if len(listed) == 1 else listed


@rule("conv1d", "conv2d", "conv3d")
def convolution(c: Conversion, op: Operation, input: Value, weight: Value, bias: Value | None,
                stride: Numbers, padding: Numbers | str, dilation: Numbers, groups: int) -> None:
    axes = int(op.name[4])
    parameter = c.real(weight)
    computed = parameter.kind != "parameter"
    if len(c.real(input).shape) != axes + 2:
        raise Unsupported(f"{op.name} without a batch")
    attributes = {"channels": parameter.shape[0], "kernel": list(parameter.shape[2:]),
                  "stride": filled(stride, axes),
                  "padding": padding if isinstance(padding, str) else filled(padding, axes),
                  "dilation": filled(dilation, axes), "groups": groups, "bias": bias is not None}
    if not computed:
        c.emit(op.name, [input], op.outputs, attributes, [("weight", weight), ("bias", bias)])
    elif bias is not None and c.real(bias).kind != "parameter":
        c.emit(op.name, [input, weight, bias], op.outputs, {**attributes, "bias": False})
    else:
        c.emit(op.name, [input, weight], op.outputs, attributes, [("bias", bias)])


@rule("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed_convolution(c: Conversion, op: Operation, input: Value, weight: Value,
                           bias: Value | None, stride: Numbers, padding: Numbers,
                           output_padding: Numbers, groups: int, dilation: Numbers) -> None:
    axes = int(op.name[-2])
    parameter = c.parameter(weight)
    attributes = {"channels": fixed(parameter.shape)[1] * groups, "kernel": list(parameter.shape[2:]),
                  "stride": filled(stride, axes), "padding": filled(padding, axes),
                  "output_padding": filled(output_padding, axes),
                  "dilation": filled(dilation, axes), "groups": groups, "bias": bias is not None}
    c.emit(op.name, [input], op.outputs, attributes, [("weight", weight), ("bias", bias)])


@rule("linear")
def linear(c: Conversion, op: Operation, input: Value, weight: Value, bias: Value | None) -> None:
    """With a computed weight it is a product; a computed bias is added into the result, as addmm
    adds it."""
    features = c.real(weight).shape[0]
    learned = c.real(weight).kind == "parameter"
    if not learned or (bias is not None and c.real(bias).kind != "parameter"):
        product = op.outputs[0] if bias is None else c.intermediate(op.outputs[0].shape, op.outputs[0])
        if learned:
            c.emit("linear", [input], [product], {"features": features, "bias": False},
                   [("weight", weight)])
        else:
            c.emit("matmul", [input, weight], [product],
                   {"transpose_a": False, "transpose_b": True})
        if bias is not None:
            c.emit("add", [product, bias], op.outputs, {"in_place": True})
        return
    c.emit("linear", [input], op.outputs, {"features": features, "bias": bias is not None},
           [("weight", weight), ("bias", bias)])


@rule("addmm")
def added_product(c: Conversion, op: Operation, self: Value, mat1: Value, mat2: Value, beta: Number,
                  alpha: Number) -> None:
    """transformers' Conv1D: a linear layer whose weight lies transposed."""
    if beta != 1 or alpha != 1 or c.real(mat2).kind != "parameter":
        raise Unsupported("aten.addmm of computed tensors")
    c.emit("linear", [mat1], op.outputs, {"features": c.real(mat2).shape[1], "bias": True},
           [("weight", mat2), ("bias", self)])


def transposed_source(c: Conversion, value: Value | None) -> tuple[Value, bool]:
    """What the value is the transpose of (last two axes), if it is one that only this product
    reads; and whether it is."""
    found = c.real(value)
    op = found.producer
    if op is None or op.name != "transpose" or c.only_reader(found) is None:
        return found, False
    rank = len(found.shape)
    if {op.arguments["dim0"] % rank, op.arguments["dim1"] % rank} != {rank - 1, rank - 2}:
        return found, False
    layer = next((x for x in reversed(c.layers) if found in x.outputs), None)
    if layer is None or layer.operator != "transpose":
        return found, False
    c.layers.remove(layer)
    return layer.inputs[0], True


@rule("matmul", "bmm")
def product(c: Conversion, op: Operation, self: Value, other: Value | None = None,
            mat2: Value | None = None) -> None:
    second = mat2 if other is None else other
    if min(len(c.real(v).shape) for v in (self, second)) < 2:
        raise Unsupported("aten.matmul with a vector")
    a, transpose_a = transposed_source(c, self)
    b, transpose_b = transposed_source(c, second)
    c.emit("matmul", [a, b], op.outputs, {"transpose_a": transpose_a, "transpose_b": transpose_b})


@rule("mm")
def matrix_product(c: Conversion, op: Operation, self: Value, mat2: Value) -> None:
    product(c, op, self, mat2)


@rule("embedding")
def embedding(c: Conversion, op: Operation, weight: Value, indices: Value, padding_idx: int,
              scale_grad_by_freq: bool, sparse: bool) -> None:
    table = c.parameter(weight)
    if sparse or scale_grad_by_freq:
        raise Unsupported("aten.embedding with sparse gradients or scaled by frequency")
    c.emit("embedding", [indices], op.outputs,
           {"count": table.shape[0], "features": table.shape[1],
            "padding_index": padding_idx if padding_idx >= 0 else -1}, [("weight", weight)])


@rule("scaled_dot_product_attention")
def attention(c: Conversion, op: Operation, query: Value, key: Value, value: Value,
              attn_mask: Value | None, dropout_p: float, is_causal: bool, scale: float | None,
              enable_gqa: bool) -> None:
    axes = {len(c.real(value).shape) for value in (query, key, value)}
    if len(axes) > 1 or axes.isdisjoint(ATTENTION_AXES):
        raise Unsupported("aten.scaled_dot_product_attention of other than three to five axes")
    inputs = [query, key, value] + ([attn_mask] if attn_mask is not None else [])
    c.emit("scaled_dot_product_attention", inputs, op.outputs[:1],
           {"causal": bool(is_causal), "dropout": dropout_p, "scale": scale or 0})
