"""Tables for people: numbers to the right, the name last."""

from __future__ import annotations

_MIB = 1 << 20


def mib(amount: int | None) -> str:
    return "-" if amount is None else f"{amount / _MIB:,.1f}"


def table(head: tuple[str, ...], lines: list[tuple[str, ...]]) -> list[str]:
    """Columns are right-aligned, but for the last, the name."""
    widths = [max(map(len, column)) for column in zip(head, *lines)][:-1]
    return ["  ".join([*(cell.rjust(width) for cell, width in zip(line, widths)), line[-1]])
            for line in (head, *lines)]
