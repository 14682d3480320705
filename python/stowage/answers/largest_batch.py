"""Answers of `batch`: the largest batch that fits, and the one to use."""

from __future__ import annotations

import dataclasses
from typing import Any

from stowage.answers.common import Answer, Device


@dataclasses.dataclass(frozen=True)
class CurvePoint:
    batch: int
    device_bytes: int


@dataclasses.dataclass(frozen=True)
class Batch(Answer):
    """`largest`: the edge, at which the allocator may have to give its cache back; `largest_safe`: every
    smaller batch that was tried fits as well; `recommended`: leaves `margin_bytes` of the card.
    `device_bytes`: at the recommended batch."""

    device: Device
    device_bytes: int
    headroom_bytes: int
    largest: int
    largest_safe: int
    recommended: int
    largest_device_bytes: int | None
    largest_headroom_bytes: int | None
    recommended_device_bytes: int | None
    recommended_headroom_bytes: int | None
    margin_bytes: int
    keeps_margin: bool
    unlimited: bool
    all_tried: bool
    curve: list[CurvePoint]
    accumulation: Any
    culprit: str | None
    settings: dict[str, Any]
    loop: dict[str, Any] | None
    software: dict[str, Any]
    tensorflow: Any
    theano: Any
