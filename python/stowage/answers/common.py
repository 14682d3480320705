"""What several answers have: the card, notes, what was asked."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Device:
    """A card. `total_bytes`: what CUDA says it has; `available_bytes`: what a process may take of it."""

    name: str
    total_bytes: int
    available_bytes: int


@dataclasses.dataclass(frozen=True)
class Note:
    """Something that whoever reads an answer has to know: `severity` is "note", "warning" or "error"."""

    severity: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    notes: list[Any] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


@dataclasses.dataclass(frozen=True)
class Judged:
    """`verdict`: "fits" or "does_not_fit"."""

    verdict: str

    @property
    def fits(self) -> bool:
        return self.verdict == "fits"


@dataclasses.dataclass(frozen=True)
class Answer(Judged):
    """What all answers have. `warnings`: what was not counted, was taken for granted or is known to be
    missing, as the program's text says it."""

    notes: list[Note]

    @property
    def warnings(self) -> list[str]:
        return [str(note) for note in self.notes]
