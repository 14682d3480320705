"""Rows picked by index, repeated, cut into windows; sums over named axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..layers import Conversion, Number, Numbers, Unsupported, rule
from .products import filled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..capture import Operation, Value
    from ..sizes import Dimension


@rule("index_select")
def index_select(c: Conversion, op: Operation, self: Value, dim: int, index: Value) -> None:
    c.emit("index_select", [self, index], op.outputs, {"axis": dim})


@rule("gather")
def gather(c: Conversion, op: Operation, self: Value, dim: int, index: Value,
           sparse_grad: bool) -> None:
    c.emit("gather", [self, index], op.outputs, {"axis": dim})


@rule("scatter")
def scatter(c: Conversion, op: Operation, self: Value, dim: int, index: Value,
            src: Value | None = None, value: Number | None = None) -> None:
    if op.overload not in ("src", "value"):
        raise Unsupported("aten.scatter that reduces")
    if src is None:
        c.emit("scatter", [self, index], op.outputs, {"axis": dim, "value": value})
    elif c.real(src).shape == c.real(index).shape:
        c.emit("scatter", [self, index, src], op.outputs, {"axis": dim})
    else:
        raise Unsupported("aten.scatter of a part of the source")


@rule("scatter_add")
def scatter_add(c: Conversion, op: Operation, self: Value, dim: int, index: Value,
                src: Value) -> None:
    if c.real(src).shape != c.real(index).shape:
        raise Unsupported("aten.scatter_add of a part of the source")
    c.emit("scatter_add", [self, index, src], op.outputs, {"axis": dim})


def picked(c: Conversion, op: Operation, value: Value, indices: Sequence[Value | None]) -> None:
    """x[:, i, j]: index tensors side by side, behind axes that stay."""
    axis = next(n for n, index in enumerate(indices) if index is not None)
    chosen = indices[axis:]
    if any(index is None or c.real(index).dtype != "int64" for index in chosen):
        raise Unsupported("aten.index by masks or by axes apart")
    c.emit("index", [value, *chosen], op.outputs, {"axis": axis})


@rule("repeat", "tile")
def tile(c: Conversion, op: Operation, self: Value, repeats: Sequence[Dimension] | None = None,
         dims: Sequence[Dimension] | None = None) -> None:
    """Repeats that follow the batch are an axis of one that is widened and copied."""
    given = list(repeats or dims or ())
    shape = c.real(self).shape
    counts = [*[1] * (len(shape) - len(given)), *given]
    if all(isinstance(count, int) for count in counts):
        c.emit("tile", [self], op.outputs, {"repeats": counts})
        return
    ones = [*[1] * (len(counts) - len(shape)), *shape]
    if any(size != 1 for size, count in zip(ones, counts) if count != 1):
        raise Unsupported("aten.repeat by the batch of an axis that has several elements")
    wide = c.intermediate(op.outputs[0].shape, op.outputs[0])
    c.emit("expand", [self], [wide], {"shape": list(op.outputs[0].shape)})
    c.emit("contiguous", [wide], op.outputs)


@rule("repeat_interleave")
def repeat_interleave(c: Conversion, op: Operation, self: Value | None = None, repeats: Any = None,
                      dim: int | None = None, output_size: int | None = None) -> None:
    if self is None or not isinstance(repeats, int) or dim is None:
        raise Unsupported("aten.repeat_interleave by a tensor")
    c.emit("repeat_interleave", [self], op.outputs, {"repeats": repeats, "axis": dim})


@rule("im2col")
def unfold(c: Conversion, op: Operation, self: Value, kernel_size: Numbers, dilation: Numbers,
           padding: Numbers, stride: Numbers) -> None:
    c.emit("unfold", [self], op.outputs, windows(kernel_size, stride, padding, dilation))


@rule("col2im")
def fold(c: Conversion, op: Operation, self: Value, output_size: Sequence[int],
         kernel_size: Numbers, dilation: Numbers, padding: Numbers, stride: Numbers) -> None:
    c.emit("fold", [self], op.outputs,
           {"size": list(output_size), **windows(kernel_size, stride, padding, dilation)})


def windows(kernel: Numbers, stride: Numbers, padding: Numbers,
            dilation: Numbers) -> dict[str, Any]:
    return {"kernel": filled(kernel, 2), "stride": filled(stride, 2),
            "padding": filled(padding, 2), "dilation": filled(dilation, 2)}


@rule("einsum")
def einsum(c: Conversion, op: Operation, equation: str, tensors: list[Value], path: Any) -> None:
    c.emit("einsum", tensors, op.outputs, {"equation": f'"{equation.replace(" ", "")}"'})


@rule("one_hot")
def one_hot(c: Conversion, op: Operation, self: Value, num_classes: int) -> None:
    if num_classes < 1:
        raise Unsupported("aten.one_hot of a count that the values say")
    c.emit("one_hot", [self], op.outputs, {"classes": num_classes})


@rule("tril", "triu")
def triangle(c: Conversion, op: Operation, self: Value, diagonal: int) -> None:
    c.emit(op.name, [self], op.outputs, {"diagonal": diagonal})
