"""Numbers along a chain, as an expression in `index`.

`sequence_form(sequences)` takes one sequence an instance and gives (rows, write): the few numbers
of each instance, and what makes of their texts the expression. The same form serves all instances.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

from .blocks import ANY, Atom, Row

SequenceForm: TypeAlias = tuple[list[Row], Callable[..., str]]

TOLERANCE = 1e-9


def sequence_form(sequences: list[Row]) -> SequenceForm:
    for form in (constant, first_and_others, alternating, linear):
        found = form(sequences)
        if found is not None:
            return found
    return runs(sequences)


def one_of(atoms: Row) -> Atom | None:
    """The one number that the atoms are; None where they differ; ANY where none is known."""
    known = {a for a in atoms if a is not ANY}
    if not known:
        return ANY
    return known.pop() if len(known) == 1 else None


def numbers_of(sequences: list[Row]) -> Row | None:
    """The one number of each sequence, ANY of an empty one; None where a sequence has several."""
    row = [one_of(s) for s in sequences]
    known = [atom for atom in row if atom is not None]
    return known if len(known) == len(row) else None


def constant(sequences: list[Row]) -> SequenceForm | None:
    row = numbers_of(sequences)
    return None if row is None else ([row], lambda text: text)


def first_and_others(sequences: list[Row]) -> SequenceForm | None:
    first, others = [s[0] for s in sequences], numbers_of([s[1:] for s in sequences])
    if others is None:
        return None
    return [first, others], functools.partial(choice, "index == 0", "index != 0")


def alternating(sequences: list[Row]) -> SequenceForm | None:
    even = numbers_of([s[::2] for s in sequences])
    odd = numbers_of([s[1::2] for s in sequences])
    if even is None or odd is None:
        return None
    return [even, odd], functools.partial(choice, "index % 2 == 0", "index % 2 == 1")


def choice(condition: str, otherwise: str, a: str, b: str) -> str:
    if a == b:
        return a
    if (a, b) == ("true", "false"):
        return condition
    if (a, b) == ("false", "true"):
        return otherwise
    return f"{a} if {condition} else {b}"


def linear(sequences: list[Row]) -> SequenceForm | None:
    starts, steps = [], []
    for sequence in sequences:
        known = [(n, a.value) for n, a in enumerate(sequence) if a is not ANY]
        if any(a is not ANY and (a.symbol or isinstance(a.value, bool)) for a in sequence):
            return None
        if not known:
            return None
        (m, low), (n, high) = known[0], known[-1]
        step = 0 if n == m else (high - low) / (n - m)
        if all(type(v) is int for _, v in known):
            if step != int(step):
                return None
            step = int(step)
        start = low - m * step
        if any(abs(start + k * step - v) > TOLERANCE for k, v in known):
            return None
        starts.append(rounded_atom(start))
        steps.append(rounded_atom(step))
    return [starts, steps], lambda a, b: f"{b} * index" if a == "0" else f"{a} + {b} * index"


def rounded_atom(number: int | float) -> Atom:
    return Atom(0 if abs(number) < TOLERANCE else
                round(number, 10) if isinstance(number, float) else number)


def runs(sequences: list[Row]) -> SequenceForm:
    """Nested choices at the places where some instance's number changes."""
    longest = max(map(len, sequences))
    breaks = sorted({n for s in sequences for n in range(1, len(s))
                     if one_of(s[n - 1:n + 1]) is None}) + [longest]
    rows: list[Row] = []
    for start, end in zip([0, *breaks], breaks):
        row = numbers_of([s[start:end] for s in sequences])
        if row is not None:
            rows.append(row)
    if len(rows) < len(breaks):
        breaks = list(range(1, longest + 1))
        rows = [[s[n] if n < len(s) else ANY for s in sequences] for n in range(longest)]

    def write(*texts: str) -> str:
        return "".join(f"{text} if index < {end} else "
                       for text, end in zip(texts[:-1], breaks)) + texts[-1]

    return rows, write
