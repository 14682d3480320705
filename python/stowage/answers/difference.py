"""Answers of `diff`: what a change adds."""

from __future__ import annotations

import dataclasses
from typing import Any

from stowage.answers.common import Answer, Device, Judged


@dataclasses.dataclass(frozen=True)
class Side(Judged):
    """One of both steps, as `check` has it."""

    device: Device
    device_bytes: int
    headroom_bytes: int
    tensor_bytes: int
    settings: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class ClassChange:
    """Bytes that are alive at each step's own peak; `kind`: the tensors' class, as in `footprint`."""

    before_bytes: int
    after_bytes: int
    kind: str = dataclasses.field(metadata={"json": "class"})


@dataclasses.dataclass(frozen=True)
class LayerChange:
    """The same of a layer; 0 where a step has none of that name."""

    layer: str
    before_bytes: int
    after_bytes: int


@dataclasses.dataclass(frozen=True)
class Difference(Answer):
    """`stowage.diff`. The verdict is that of the second step; `added_bytes` is below 0 where it takes
    less; `layers`: those that differ, the largest difference first."""

    device: Device
    device_bytes: int
    headroom_bytes: int
    added_bytes: int
    before: Side
    after: Side
    classes: list[ClassChange]
    layers: list[LayerChange]
    same_layers: int
