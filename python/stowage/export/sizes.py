"""Sizes that depend on the batch and on the sequence length.

A model is traced at a few points (batch, seq). A number that differs between them becomes a Size:
a sum of terms, each a whole number times a product of the symbols. What no such sum explains is
kept as the number at the first point, and `Sizes.unexplained` says where.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TypeAlias, cast

SYMBOLS = ("", "batch", "seq", "batch * seq", "seq * seq", "batch * seq * seq")


@dataclasses.dataclass(frozen=True)
class Size:
    """`terms` are (symbol, factor) in the order of SYMBOLS, without those of factor 0."""

    terms: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return " + ".join(written_term(symbol, factor) for symbol, factor in self.terms) or "0"


Dimension: TypeAlias = int | Size  # an extent of an axis
Shape: TypeAlias = tuple[Dimension, ...]
Point: TypeAlias = tuple[int, int]  # (batch, tokens of a sequence; 0: there is none)


def fixed(shape: Shape) -> tuple[int, ...]:
    """The shape of a parameter or buffer: plain numbers."""
    return cast("tuple[int, ...]", shape)


def written_term(symbol: str, factor: int) -> str:
    if not symbol:
        return str(factor)
    return symbol if factor == 1 else f"{factor} * {symbol}"


def value_at(symbol: str, point: Point) -> int:
    batch, seq = point
    return {"": 1, "batch": batch, "seq": seq, "batch * seq": batch * seq, "seq * seq": seq * seq,
            "batch * seq * seq": batch * seq * seq}[symbol]


def single_term(numbers: tuple[int, ...], points: tuple[Point, ...]) -> Size | None:
    """The number as one symbol times a factor, if it is that at every point."""
    for symbol in SYMBOLS:
        at = [value_at(symbol, point) for point in points]
        if at[0] and numbers[0] % at[0] == 0:
            factor = numbers[0] // at[0]
            if factor and all(factor * a == n for a, n in zip(at, numbers)):
                return Size(((symbol, factor),))
    return None


def two_terms(numbers: tuple[int, ...], points: tuple[Point, ...]) -> Size | None:
    """The number as a symbol's multiple and another's: `seq + 1`, `batch * seq + batch`."""
    for i, first in enumerate(SYMBOLS):
        for second in SYMBOLS[i + 1:]:
            a, b = ([value_at(s, p) for p in points] for s in (first, second))
            if not a[0] or not b[0]:
                continue  # there is no sequence
            k = next((k for k in range(1, len(points)) if a[0] * b[k] != a[k] * b[0]), None)
            if k is None:
                continue
            determinant = a[0] * b[k] - a[k] * b[0]
            x = numbers[0] * b[k] - numbers[k] * b[0]
            y = a[0] * numbers[k] - a[k] * numbers[0]
            if x % determinant or y % determinant:
                continue
            x, y = x // determinant, y // determinant
            if all(x * p + y * q == n for p, q, n in zip(a, b, numbers)):
                return Size(tuple(t for t in ((first, x), (second, y)) if t[1]))
    return None


@functools.cache
def size_of(numbers: tuple[int, ...], points: tuple[Point, ...]) -> Dimension | None:
    """An int where the numbers of all points are the same, else a Size, else None."""
    if len(set(numbers)) == 1:
        return numbers[0]
    return single_term(numbers, points) or two_terms(numbers, points)
