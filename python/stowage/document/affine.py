"""Sizes that were measured at several batches, as constant + slope * batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence


Dimension: TypeAlias = int | tuple[int, int]  # (constant, slope): constant + slope * batch


class NotAffine(Exception):
    """A size that does not grow linearly with the batch, or steps that run other kernels at
    another batch; the message says where."""


class Affine:
    """Fits values at the batches: the first two give the line, the others check it. With one batch
    every value is a plain number."""

    def __init__(self, batches: Sequence[int]) -> None:
        self.batches = batches
        self.known: dict[tuple[int, ...], list[int] | None] = {}

    def fit(self, values: tuple[int, ...]) -> int | list[int] | None:
        """A number, or [constant, slope]; None: they are not on a line through integers."""
        first = values[0]
        if all(value == first for value in values):
            return first
        if values in self.known:
            return self.known[values]
        (a, b), (va, vb) = self.batches[:2], values[:2]
        slope, rest = divmod(vb - va, b - a)
        constant = va - slope * a
        fits = rest == 0 and all(constant + slope * batch == value
                                 for batch, value in zip(self.batches, values))
        self.known[values] = [constant, slope] if fits else None
        return self.known[values]

    def sizes(self, shapes: Sequence[tuple[int, ...]], where: str) -> tuple[Dimension, ...]:
        """The sizes of a shape that is `shapes` at the batches. Raises NotAffine, which names `where`."""
        if all(shape == shapes[0] for shape in shapes):
            return shapes[0]
        fitted: list[Dimension] = []
        for values in zip(*shapes):
            size = self.fit(values)
            if size is None:
                raise NotAffine(f"{where}: {values} at the batches {tuple(self.batches)}")
            fitted.append((size[0], size[1]) if isinstance(size, list) else size)
        return tuple(fitted)

    def strides(self, shapes: Sequence[tuple[int, ...]], strides: Sequence[tuple[int, ...]],
                where: str) -> tuple[Dimension, ...]:
        """As `sizes`, of the strides of a tensor that has `shapes` at the batches. Along an axis of one
        element, and in a tensor without elements, a stride moves nowhere and may be any number: where
        the strides are not on a line, those of the other batches say it. Raises NotAffine, which names
        `where`."""
        fitted: list[Dimension] = []
        for sizes, values in zip(zip(*shapes), zip(*strides)):
            size = self.fit(values)
            if size is None:
                longer = [place for place, extent in enumerate(sizes)
                          if extent != 1 and 0 not in shapes[place]]
                size = values[0] if not longer else self.fit_some(values, longer)
            if size is None:
                raise NotAffine(f"{where}: {values} at the batches {tuple(self.batches)}")
            fitted.append((size[0], size[1]) if isinstance(size, list) else size)
        return tuple(fitted)

    def fit_some(self, values: tuple[int, ...], places: list[int]) -> int | list[int] | None:
        """As `fit`, by the batches at these places alone. Two points are always on a line: of two batches
        a constant and a multiple of the batch are believed, and no other line."""
        if len(places) < 2:
            return None
        fitted = Affine([self.batches[place] for place in places]).fit(
            tuple(values[place] for place in places))
        is_plain = not isinstance(fitted, list) or fitted[0] == 0
        return fitted if len(places) > 2 or is_plain else None

    def size(self, values: Sequence[int], where: str) -> int | list[int]:
        """As `fit`. Raises NotAffine, which names `where`."""
        fitted = self.fit(tuple(values))
        if fitted is None:
            raise NotAffine(f"{where}: {tuple(values)} at the batches {tuple(self.batches)}")
        return fitted
