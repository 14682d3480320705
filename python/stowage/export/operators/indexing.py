"""Rows picked by index, repeated, cut into windows; sums over named axes."""

from ..layers import Unsupported, rule
from .products import filled


@rule("index_select")
def index_select(c, op, self, dim, index):
    c.emit("index_select", [self, index], op.outputs, {"axis": dim})


@rule("gather")
def gather(c, op, self, dim, index, sparse_grad):
    c.emit("gather", [self, index], op.outputs, {"axis": dim})


@rule("scatter")
def scatter(c, op, self, dim, index, src=None, value=None):
    if op.overload not in ("src", "value"):
        raise Unsupported("aten.scatter that reduces")
    if src is None:
        c.emit("scatter", [self, index], op.outputs, {"axis": dim, "value": value})
    elif c.real(src).shape == c.real(index).shape:
        c.emit("scatter", [self, index, src], op.outputs, {"axis": dim})
    else:
        raise Unsupported("aten.scatter of a part of the source")


@rule("scatter_add")
def scatter_add(c, op, self, dim, index, src):
    if c.real(src).shape != c.real(index).shape:
        raise Unsupported("aten.scatter_add of a part of the source")
    c.emit("scatter_add", [self, index, src], op.outputs, {"axis": dim})


def picked(c, op, value, indices):
    """x[:, i, j]: index tensors side by side, behind axes that stay."""
    axis = next(n for n, index in enumerate(indices) if index is not None)
    chosen = indices[axis:]
    if any(index is None or c.real(index).dtype != "int64" for index in chosen):
        raise Unsupported("aten.index by masks or by axes apart")
    c.emit("index", [value, *chosen], op.outputs, {"axis": axis})


@rule("repeat", "tile")
def tile(c, op, self, repeats=None, dims=None):
    """Repeats that follow the batch are an axis of one that is widened and copied."""
    repeats = list(dims if repeats is None else repeats)
    shape = c.real(self).shape
    repeats = [1] * (len(shape) - len(repeats)) + repeats
    if all(isinstance(count, int) for count in repeats):
        c.emit("tile", [self], op.outputs, {"repeats": repeats})
        return
    ones = [1] * (len(repeats) - len(shape)) + list(shape)
    if any(size != 1 for size, count in zip(ones, repeats) if count != 1):
        raise Unsupported("aten.repeat by the batch of an axis that has several elements")
    wide = c.middle(op.outputs[0].shape, op.outputs[0])
    c.emit("expand", [self], [wide], {"shape": list(op.outputs[0].shape)})
    c.emit("contiguous", [wide], op.outputs)


@rule("repeat_interleave")
def repeat_interleave(c, op, self=None, repeats=None, dim=None, output_size=None):
    if self is None or not isinstance(repeats, int) or dim is None:
        raise Unsupported("aten.repeat_interleave by a tensor")
    c.emit("repeat_interleave", [self], op.outputs, {"repeats": repeats, "axis": dim})


@rule("im2col")
def unfold(c, op, self, kernel_size, dilation, padding, stride):
    c.emit("unfold", [self], op.outputs, windows(kernel_size, stride, padding, dilation))


@rule("col2im")
def fold(c, op, self, output_size, kernel_size, dilation, padding, stride):
    c.emit("fold", [self], op.outputs,
           {"size": list(output_size), **windows(kernel_size, stride, padding, dilation)})


def windows(kernel, stride, padding, dilation):
    return {"kernel": filled(kernel, 2), "stride": filled(stride, 2),
            "padding": filled(padding, 2), "dilation": filled(dilation, 2)}


@rule("einsum")
def einsum(c, op, equation, tensors, path):
    c.emit("einsum", tensors, op.outputs, {"equation": f'"{equation.replace(" ", "")}"'})


@rule("one_hot")
def one_hot(c, op, self, num_classes):
    if num_classes < 1:
        raise Unsupported("aten.one_hot of a count that the values say")
    c.emit("one_hot", [self], op.outputs, {"classes": num_classes})


@rule("tril", "triu")
def triangle(c, op, self, diagonal):
    c.emit(op.name, [self], op.outputs, {"diagonal": diagonal})
