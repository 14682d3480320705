"""Assignments to a part of a tensor: x[:, :, 1:] = y."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..layers import Conversion, Unsupported, rule
from ..sizes import Size
from .shapes import axis_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..capture import Operation, Value

CUTS = ("slice", "narrow", "select")
VIEWS = (*CUTS, "view", "reshape", "_unsafe_view", "transpose", "permute", "unsqueeze", "squeeze",
         "expand", "flatten", "unbind", "split", "chunk", "alias", "t", "mT", "unflatten")


class Part:
    """What a chain of cuts leaves of `base`: `starts` of each of its axes, and `axes`, those of
    them that are still there."""

    def __init__(self, base: Value) -> None:
        self.base = base
        self.starts = [0] * len(base.shape)
        self.axes = list(range(len(base.shape)))

    def cut(self, operation: Operation) -> None:
        arguments = operation.arguments
        axis = axis_of(arguments["dim"], len(self.axes))
        start = arguments["index"] if operation.name == "select" else arguments["start"] or 0
        if arguments.get("step", 1) != 1 or isinstance(start, Size):
            raise Unsupported("aten.copy_ into places that lie apart")
        if start < 0:
            size = operation.arguments["self"].shape[axis]
            if isinstance(size, Size):
                raise Unsupported("aten.copy_ into an open size")
            start += size
        self.starts[self.axes[axis]] += start
        if operation.name == "select":
            del self.axes[axis]


def part_of(value: Value) -> Part:
    """The Part that a value is by cuts alone; of no cuts: all of itself, as `x[:] = y` writes it."""
    chain = []
    while value.producer is not None and value.producer.name in CUTS:
        chain.append(value.producer)
        value = value.producer.arguments["self"]
    part = Part(value)
    for operation in reversed(chain):
        part.cut(operation)
    return part


def read_later(operations: Sequence[Operation], now: Operation, base: Value, into: Value) -> bool:
    """Whether a view of `base` that was taken before, or the part itself, is read after the
    assignment: it would show what was written."""
    place = {operation: number for number, operation in enumerate(operations)}
    left, seen = [base], {base}
    while left:
        for reader in left.pop().readers:
            if reader.name not in VIEWS or place[reader] > place[now]:
                continue
            for view in reader.outputs:
                if view is not into and any(place[r] > place[now] for r in view.readers):
                    return True
                if view not in seen:
                    seen.add(view)
                    left.append(view)
    if into is base:
        return False
    return bool(now.outputs[0].readers) or any(place[r] > place[now] for r in into.readers)


@rule("copy_")
def assigned(c: Conversion, op: Operation, self: Value, src: Value, non_blocking: bool) -> None:
    part = part_of(self)
    if part.base is not self and part.base.shape == self.shape:
        raise Unsupported("aten.copy_ into a view of all of a tensor")
    if read_later(c.captured.operations, op, part.base, self):
        raise Unsupported("aten.copy_ into a tensor of which a view is read afterwards")
    base, source = c.real(part.base), c.real(src)
    if base.kind != "result" or c.is_constant(base):
        raise Unsupported("aten.copy_ into what no layer has made")
    if source.shape != self.shape or source.dtype != base.dtype:
        raise Unsupported("aten.copy_ of another shape or type")
    if len(part.axes) < len(base.shape):
        shape = [self.shape[part.axes.index(axis)] if axis in part.axes else 1
                 for axis in range(len(base.shape))]
        intermediate = c.intermediate(shape, source)
        c.emit("reshape", [source], [intermediate], {"shape": shape})
        source = intermediate
    # Whoever traces takes what a whole tensor's assignment returns for the tensor from there on.
    whole = part.base is self
    written = op.outputs[0] if whole else c.intermediate(base.shape, base)
    starts = part.starts if any(part.starts) else []
    c.emit("slice_scatter", [base, source], [written], {"start": starts, "in_place": True})
    if not whole:
        written.readers = base.readers
    c.same(base, written)
