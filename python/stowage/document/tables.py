"""The tables of a step file: rows that are written once and named by their number."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from stowage.document.affine import NotAffine

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import torch

    from stowage.document.affine import Affine, Dimension
    from stowage.trace.record import View

TYPES = {"float32": "float32", "float64": "float64", "float16": "float16", "bfloat16": "bfloat16",
         "int64": "int64", "int32": "int32", "uint8": "uint8", "bool": "bool"}
# Types that step files lack stand as one of the same size.
SUBSTITUTES = {1: "uint8", 2: "float16", 4: "int32", 8: "int64"}


def type_of(dtype: torch.dtype) -> tuple[str, int]:
    """(the step file's word for a dtype, how many elements of that type are as large as one)."""
    word = str(dtype).removeprefix("torch.")
    if word in TYPES:
        return TYPES[word], 1
    size = dtype.itemsize
    return (SUBSTITUTES[size], 1) if size in SUBSTITUTES else ("int64", size // 8)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


class Rows:
    """A table in which each row stands once."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable, row: Any) -> int:
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.rows)
            self.rows.append(row)
        return found


def json_size(size: Dimension) -> int | list[int]:
    return list(size) if isinstance(size, tuple) else size


class Tables:
    """All tables of a step file."""

    def __init__(self, affine: Affine) -> None:
        self.affine = affine
        self.shapes, self.layouts, self.attributes, self.origins = Rows(), Rows(), Rows(), Rows()
        self.layout_of_views: dict[Hashable, int] = {}

    def shape(self, sizes: tuple[Dimension, ...]) -> int:
        return self.shapes.number(sizes, [json_size(size) for size in sizes])

    def origin(self, layer: str, place: str) -> int:
        return self.origins.number((layer, place), [layer, place] if place else [layer])

    def layout(self, views: Sequence[View], where: str) -> int:
        """The number of the layout of a tensor whose views these are, one a batch."""
        key = tuple(view[1:] for view in views)
        found = self.layout_of_views.get(key)
        if found is None:
            found = self.layout_of_views[key] = self.new_layout(views, where)
        return found

    def new_layout(self, views: Sequence[View], where: str) -> int:
        first = views[0]
        word, factor = type_of(first.dtype)
        shape = self.affine.sizes([view.shape for view in views], where)
        strides = self.affine.sizes([view.strides for view in views], where)
        offset = self.affine.size([view.offset for view in views], where)
        if not is_linear(shape, strides):
            raise NotAffine(f"{where}: the elements of {[view.shape for view in views]} grow faster than "
                            f"the batch, at the batches {tuple(self.affine.batches)}")
        packed = all(is_packed(view) for view in views)
        if factor > 1:  # a wide type, as so many of a narrower one along a new last axis
            shape, strides = (*shape, factor), (*(multiplied(s, factor) for s in strides), 1)
            offset = multiplied(offset, factor)
        row = [word, self.shape(shape), None if packed else self.shape(strides),
               offset, first.is_view]
        while len(row) > 2 and row[-1] in (None, 0, False):
            row.pop()
        return self.layouts.number(json.dumps(row), row)

    def attribute_row(self, several: Sequence[dict[str, Any]]) -> int:
        """The number of the attributes of a call, which `several` has at each of the batches."""
        row = {name: self.value([values.get(name) for values in several])
               for name in several[0]}
        return self.attributes.number(json.dumps(row), row)

    def value(self, values: Sequence[Any]) -> Any:
        """One attribute. A number or list that follows the batch is a shape; any other value that
        does not stay the same is that of the first batch."""
        first = values[0]
        if isinstance(first, bool) or isinstance(first, str):
            return first
        if isinstance(first, float):
            return first if math.isfinite(first) else {
                "real": "nan" if math.isnan(first) else "inf" if first > 0 else "-inf"}
        if all(value == first for value in values):
            return first
        lists = [value if isinstance(value, list) else [value] for value in values]
        fitted = []
        for numbers in zip(*lists):
            if not all(isinstance(number, int) for number in numbers):
                return first
            fitted.append(self.affine.fit(numbers))
        if None in fitted or len({len(items) for items in lists}) > 1:
            return first
        return {"dimensions": self.shape(tuple(
            (size[0], size[1]) if isinstance(size, list) else size
            for size in fitted if size is not None))}


def is_linear(shape: Sequence[Dimension], strides: Sequence[Dimension]) -> bool:
    """Whether the number of elements, and the last that is reached, are constant + slope * batch."""
    several = sum(isinstance(size, tuple) for size in shape) > 1 and 0 not in shape
    return not several and not any(isinstance(size, tuple) and isinstance(stride, tuple)
                                   for size, stride in zip(shape, strides))


def multiplied(size: Any, factor: int) -> Any:
    return tuple(part * factor for part in size) if isinstance(size, tuple) else (
        [part * factor for part in size] if isinstance(size, list) else size * factor)


def is_packed(view: View) -> bool:
    """Whether the strides are those of a contiguous tensor of that shape, to the number."""
    return view.strides == contiguous_strides(view.shape)
