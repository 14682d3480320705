"""Convolutions, linear layers, matrix products."""

from ..layers import Unsupported, rule


def filled(numbers, axes):
    numbers = list(numbers) if isinstance(numbers, (list, tuple)) else [numbers]
    return numbers * axes if len(numbers) == 1 else numbers


@rule("conv1d", "conv2d", "conv3d")
def convolution(c, op, input, weight, bias, stride, padding, dilation, groups):
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
def transposed_convolution(c, op, input, weight, bias, stride, padding, output_padding, groups,
                           dilation):
    axes = int(op.name[-2])
    parameter = c.parameter(weight)
    attributes = {"channels": parameter.shape[1] * groups, "kernel": list(parameter.shape[2:]),
                  "stride": filled(stride, axes), "padding": filled(padding, axes),
                  "output_padding": filled(output_padding, axes),
                  "dilation": filled(dilation, axes), "groups": groups, "bias": bias is not None}
    c.emit(op.name, [input], op.outputs, attributes, [("weight", weight), ("bias", bias)])


@rule("linear")
def linear(c, op, input, weight, bias):
    """With a computed weight it is a product; a computed bias is added into the result, as addmm
    adds it."""
    features = c.real(weight).shape[0]
    learned = c.real(weight).kind == "parameter"
    if not learned or (bias is not None and c.real(bias).kind != "parameter"):
        product = op.outputs[0] if bias is None else c.middle(op.outputs[0].shape, op.outputs[0])
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
def added_product(c, op, self, mat1, mat2, beta, alpha):
    """transformers' Conv1D: a linear layer whose weight lies transposed."""
    if beta != 1 or alpha != 1 or c.real(mat2).kind != "parameter":
        raise Unsupported("aten.addmm of computed tensors")
    c.emit("linear", [mat1], op.outputs, {"features": c.real(mat2).shape[1], "bias": True},
           [("weight", mat2), ("bias", self)])


def transposed_source(c, value):
    """What the value is the transpose of (last two axes), if it is one that only this product
    reads; and whether it is."""
    value = c.real(value)
    op = value.producer
    if op is None or op.name != "transpose" or c.only_reader(value) is None:
        return value, False
    rank = len(value.shape)
    if {op.arguments["dim0"] % rank, op.arguments["dim1"] % rank} != {rank - 1, rank - 2}:
        return value, False
    layer = next((x for x in reversed(c.layers) if value in x.outputs), None)
    if layer is None or layer.operator != "transpose":
        return value, False
    c.layers.remove(layer)
    return layer.inputs[0], True


@rule("matmul", "bmm")
def product(c, op, self=None, other=None, mat2=None):
    other = mat2 if other is None else other
    if min(len(c.real(v).shape) for v in (self, other)) < 2:
        raise Unsupported("aten.matmul with a vector")
    a, transpose_a = transposed_source(c, self)
    b, transpose_b = transposed_source(c, other)
    c.emit("matmul", [a, b], op.outputs, {"transpose_a": transpose_a, "transpose_b": transpose_b})


@rule("mm")
def matrix_product(c, op, self, mat2):
    product(c, op, self, mat2)


@rule("embedding")
def embedding(c, op, weight, indices, padding_idx, scale_grad_by_freq, sparse):
    table = c.parameter(weight)
    if sparse or scale_grad_by_freq:
        raise Unsupported("aten.embedding with sparse gradients or scaled by frequency")
    c.emit("embedding", [indices], op.outputs,
           {"count": table.shape[0], "features": table.shape[1],
            "padding_index": padding_idx if padding_idx >= 0 else -1}, [("weight", weight)])
