"""Views, joins and cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..layers import Conversion, Unsupported, rule
from ..sizes import Size
from .products import filled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..capture import Operation, Value


def axis_of(axis: int, rank: int) -> int:
    return axis % rank


@rule("reshape", "view", "_unsafe_view", "unflatten", "unsqueeze", "squeeze", "view_as",
      "reshape_as", "_reshape_alias", "atleast_2d", "atleast_3d")
def reshape(c: Conversion, op: Operation, self: Value, **_: Any) -> None:
    value = c.real(self)
    output = op.outputs[0]
    if output.shape == value.shape:
        c.same(output, value)
    elif output.dtype != value.dtype:
        raise Unsupported("aten.view as another type")
    else:
        c.emit("reshape", [value], [output], {"shape": list(output.shape)})


@rule("flatten")
def flatten(c: Conversion, op: Operation, self: Value, start_dim: int, end_dim: int) -> None:
    if op.outputs[0].shape == c.real(self).shape:
        c.same(op.outputs[0], c.real(self))
        return
    c.emit("flatten", [self], op.outputs, {"start": start_dim, "end": end_dim})


def permuted(c: Conversion, op: Operation, value: Value, axes: list[int]) -> None:
    if axes == list(range(len(axes))):
        c.same(op.outputs[0], c.real(value))
    else:
        c.emit("transpose", [value], op.outputs, {"axes": axes})


@rule("permute")
def permute(c: Conversion, op: Operation, self: Value, dims: Sequence[int]) -> None:
    rank = len(c.real(self).shape)
    permuted(c, op, self, [axis_of(d, rank) for d in dims])


@rule("transpose", "swapaxes", "swapdims")
def transpose(c: Conversion, op: Operation, self: Value, dim0: int | None = None,
              dim1: int | None = None, axis0: int | None = None, axis1: int | None = None) -> None:
    rank = len(c.real(self).shape)
    first, second = (dim0, dim1) if dim0 is not None else (axis0, axis1)
    assert first is not None and second is not None
    a, b = axis_of(first, rank), axis_of(second, rank)
    axes = list(range(rank))
    axes[a], axes[b] = axes[b], axes[a]
    permuted(c, op, self, axes)


@rule("t", "mT", "numpy_T")
def matrix_transpose(c: Conversion, op: Operation, self: Value) -> None:
    transpose(c, op, self, -2, -1)


@rule("movedim", "moveaxis")
def movedim(c: Conversion, op: Operation, self: Value, source: int | list[int],
            destination: int | list[int]) -> None:
    rank = len(c.real(self).shape)
    source, destination = ([axis_of(d, rank) for d in (x if isinstance(x, list) else [x])]
                           for x in (source, destination))
    axes = [i for i in range(rank) if i not in source]
    for place, axis in sorted(zip(destination, source)):
        axes.insert(place, axis)
    permuted(c, op, self, axes)


@rule("contiguous", "clone")
def contiguous(c: Conversion, op: Operation, self: Value, memory_format: Any = None) -> None:
    if "channels_last" in str(memory_format):
        raise Unsupported(f"aten.{op.name} to channels_last")
    if op.name == "clone" and "contiguous" not in str(memory_format):
        c.emit("scale", [self], op.outputs)  # a copy of its own
        return
    c.emit("contiguous", [self], op.outputs)


@rule("cat", "concat", "concatenate")
def concat(c: Conversion, op: Operation, tensors: list[Value], dim: int) -> None:
    c.emit("concat", tensors, op.outputs, {"axis": dim})


@rule("stack")
def stack(c: Conversion, op: Operation, tensors: list[Value], dim: int) -> None:
    c.emit("stack", tensors, op.outputs, {"axis": dim})


def parts(c: Conversion, op: Operation, value: Value, axis: int) -> None:
    lengths = [v.shape[axis] for v in op.outputs]
    if any(isinstance(n, Size) for n in lengths):
        raise Unsupported(f"aten.{op.name} along an axis of open size")
    if len(lengths) == 1:
        c.same(op.outputs[0], c.real(value))
        return
    attributes = ({"parts": len(lengths)} if len(set(lengths)) == 1 else {"sizes": lengths})
    c.emit("split", [value], op.outputs, {**attributes, "axis": axis})


@rule("split", "chunk", "split_with_sizes", "tensor_split")
def split(c: Conversion, op: Operation, self: Value, dim: int = 0, **_: Any) -> None:
    parts(c, op, self, axis_of(dim, len(c.real(self).shape)))


@rule("unbind")
def unbind(c: Conversion, op: Operation, self: Value, dim: int) -> None:
    """A split along the axis, then a reshape of each part that removes the axis."""
    value = c.real(self)
    axis = axis_of(dim, len(value.shape))
    used = [v for v in op.outputs]
    intermediates = [c.intermediate((*v.shape[:axis], 1, *v.shape[axis:]), v) for v in used]
    if len(intermediates) == 1:
        c.emit("reshape", [value], used, {"shape": list(used[0].shape)})
        return
    c.emit("split", [value], intermediates, {"parts": len(intermediates), "axis": axis})
    for intermediate, output in zip(intermediates, used):
        if output.readers or output in c.captured.outputs:
            c.emit("reshape", [intermediate], [output], {"shape": list(output.shape)})


@rule("slice")
def cut(c: Conversion, op: Operation, self: Value, dim: int, start: Any, end: Any,
        step: int) -> None:
    value, output = c.real(self), op.outputs[0]
    if output.shape == value.shape:
        c.same(output, value)
        return
    axis = axis_of(dim, len(value.shape))
    start = start or 0
    if isinstance(start, Size) or isinstance(value.shape[axis], Size) and start < 0:
        raise Unsupported("aten.slice from an open size")
    size, length = value.shape[axis], output.shape[axis]
    if not isinstance(size, Size) and start < 0:
        start += size
    attributes = {"axis": axis, "start": start, "step": step}
    to_the_end = end is None or (isinstance(end, int) and (
        end >= 2 ** 62 or not isinstance(size, Size) and end >= size)) or end == size
    if not to_the_end:
        attributes["length"] = length if step == 1 else (end + size if end < 0 else end) - start
    c.emit("slice", [value], [output], attributes)


@rule("narrow")
def narrow(c: Conversion, op: Operation, self: Value, dim: int, start: Any, length: Any) -> None:
    cut(c, op, self, dim, start, start + length, 1)


@rule("select")
def select(c: Conversion, op: Operation, self: Value, dim: int, index: int) -> None:
    value, output = c.real(self), op.outputs[0]
    axis = axis_of(dim, len(value.shape))
    intermediate = c.intermediate((*value.shape[:axis], 1, *value.shape[axis + 1:]), output)
    c.emit("slice", [value], [intermediate], {"axis": axis, "start": index, "length": 1})
    c.emit("reshape", [intermediate], [output], {"shape": list(output.shape)})


@rule("expand", "expand_as", "broadcast_to")
def expand(c: Conversion, op: Operation, self: Value, **_: Any) -> None:
    if op.outputs[0].shape == c.real(self).shape:
        c.same(op.outputs[0], c.real(self))
    else:
        c.emit("expand", [self], op.outputs, {"shape": list(op.outputs[0].shape)})


@rule("roll")
def roll(c: Conversion, op: Operation, self: Value, shifts: int | Sequence[int],
         dims: int | Sequence[int]) -> None:
    if not dims:
        raise Unsupported("aten.roll of a flattened tensor")
    c.emit("roll", [self], op.outputs, {"shifts": filled(shifts, 1), "axes": filled(dims, 1)})


@rule("broadcast_tensors")
def broadcast(c: Conversion, op: Operation, tensors: list[Value]) -> None:
    for tensor, output in zip(tensors, op.outputs):
        if c.real(tensor).shape == output.shape:
            c.same(output, c.real(tensor))
        else:
            c.emit("expand", [tensor], [output], {"shape": list(output.shape)})
