"""Answers of several models or cards: what fits where, and how large a batch."""

from __future__ import annotations

import dataclasses
from typing import Any

from stowage.answers.common import Answer, Note


@dataclasses.dataclass(frozen=True)
class TableRow:
    """One model on one card. `mistakes`: why it could not be answered; the other fields are None then.
    `needed_bytes`: of the card, at `needed_at_batch` samples."""

    model: str
    verdict: str
    device: dict[str, Any] | None
    fits: bool | None = None
    available_bytes: int | None = None
    needed_bytes: int | None = None
    needed_at_batch: int | None = None
    headroom_bytes: int | None = None
    largest: int | None = None
    recommended: int | None = None
    keeps_margin: bool | None = None
    all_tried: bool | None = None
    unlimited: bool | None = None
    workspaces: str | None = None
    mistakes: list[Note] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Table(Answer):
    """`stowage.table`. `text`: the table as the program prints it."""

    rows: list[TableRow]
    text: str = ""

    def __str__(self) -> str:
        return self.text
