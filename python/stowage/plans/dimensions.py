"""Sizes of a plan that follow the batch: a number, "batch", "2*batch", "batch+1", "2*batch-1"."""

from __future__ import annotations

import dataclasses
import re

FORM = re.compile(r"(?:([1-9][0-9]{0,17})\*)?batch(?:([+-])([0-9]{1,18}))?")


@dataclasses.dataclass(frozen=True)
class Size:
    """constant + slope * batch, of elements or bytes; `batch` is that of one micro-batch."""

    constant: int
    slope: int = 0

    def at(self, batch: int) -> int:
        return self.constant + self.slope * batch

    def batch_of(self, size: int) -> int | None:
        """The batch, from 1 on, at which it is `size`; None: there is none, or it does not follow the
        batch."""
        if self.slope <= 0 or (size - self.constant) % self.slope:
            return None
        batch = (size - self.constant) // self.slope
        return batch if batch > 0 else None

    def __str__(self) -> str:
        if not self.slope:
            return str(self.constant)
        word = "batch" if self.slope == 1 else f"{self.slope}*batch"
        return f"{word}{self.constant:+d}" if self.constant else word


def dimension_of(text: str) -> Size | None:
    """The size that the text says; None: it says none."""
    found = FORM.fullmatch(text)
    if found is None:
        return None
    slope, sign, constant = found.groups()
    return Size(int(f"{sign}{constant}") if sign else 0, int(slope or 1))


def fitting_batch(shape: tuple[Size, ...], sizes: tuple[int, ...], batch: int | None) -> int | None:
    """The batch at which the shape has these sizes: `batch`, where that is known already, else the one
    that a size says, else 0 where the shape does not follow the batch. None: it has these sizes at no
    such batch."""
    if len(shape) != len(sizes):
        return None
    for dimension, size in zip(shape, sizes):
        if batch is None and dimension.slope:
            batch = dimension.batch_of(size)
            if batch is None:
                return None
        if dimension.at(batch or 0) != size:
            return None
    return batch or 0


def shown_shape(shape: tuple[Size, ...]) -> str:
    return "[" + ", ".join(str(size) for size in shape) + "]"
