"""Sizes that depend on the batch and on the sequence length.

A model is traced at a few points (batch, seq). A number that differs between them becomes a Size:
a sum of terms, each a whole number times a product of the symbols. What no such sum explains is
kept as the number at the first point, and `Sizes.unexplained` says where.
"""

import dataclasses
import functools

SYMBOLS = ("", "batch", "seq", "batch * seq", "seq * seq", "batch * seq * seq")


@dataclasses.dataclass(frozen=True)
class Size:
    """`terms` are (symbol, factor) in the order of SYMBOLS, without those of factor 0."""

    terms: tuple

    def __str__(self):
        return " + ".join(written_term(symbol, factor) for symbol, factor in self.terms) or "0"


def written_term(symbol, factor):
    if not symbol:
        return str(factor)
    return symbol if factor == 1 else f"{factor} * {symbol}"


def value_at(symbol, point):
    batch, seq = point
    return {"": 1, "batch": batch, "seq": seq, "batch * seq": batch * seq, "seq * seq": seq * seq,
            "batch * seq * seq": batch * seq * seq}[symbol]


def single_term(numbers, points):
    """The number as one symbol times a factor, if it is that at every point."""
    for symbol in SYMBOLS:
        at = [value_at(symbol, point) for point in points]
        if numbers[0] % at[0] == 0:
            factor = numbers[0] // at[0]
            if factor and all(factor * a == n for a, n in zip(at, numbers)):
                return Size(((symbol, factor),))
    return None


def two_terms(numbers, points):
    """The number as a symbol's multiple and another's: `seq + 1`, `batch * seq + batch`."""
    for i, first in enumerate(SYMBOLS):
        for second in SYMBOLS[i + 1:]:
            a, b = ([value_at(s, p) for p in points] for s in (first, second))
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
def size_of(numbers, points):
    """An int where the numbers of all points are the same, else a Size, else None."""
    if len(set(numbers)) == 1:
        return numbers[0]
    return single_term(numbers, points) or two_terms(numbers, points)


def product(sizes):
    """Of ints and Sizes with at most one Size of several terms; None where it is no Size."""
    result = Size((("", 1),))
    for size in sizes:
        terms = size.terms if isinstance(size, Size) else (("", size),)
        merged = {}
        for symbol, factor in result.terms:
            for other, times in terms:
                name = multiplied(symbol, other)
                if name is None:
                    return None
                merged[name] = merged.get(name, 0) + factor * times
        result = Size(tuple((s, merged[s]) for s in SYMBOLS if merged.get(s)))
    return simplified(result)


def multiplied(symbol, other):
    factors = sorted(f for s in (symbol, other) for f in s.split(" * ") if f)
    name = " * ".join(factors)
    return name if name in SYMBOLS else None


def simplified(size):
    """An int where no symbol is left."""
    if not size.terms:
        return 0
    if all(symbol == "" for symbol, _ in size.terms):
        return size.terms[0][1]
    return size
