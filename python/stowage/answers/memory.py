"""Answers of `check`: what a step takes, and what the passes of serving take."""

from __future__ import annotations

import dataclasses
from typing import Any

from stowage.answers.common import Answer, Device, Judged


@dataclasses.dataclass(frozen=True)
class Peak:
    """The largest moment: bytes of tensors, of what the allocator has reserved, of all that the process
    has of the device; `at`: the kernel that runs."""

    tensor_bytes: int
    reserved_bytes: int
    device_bytes: int
    at: str


@dataclasses.dataclass(frozen=True)
class RuntimeRow:
    """What a runtime takes beside the tensors, and where that number is from."""

    name: str
    bytes: int
    source: str


@dataclasses.dataclass(frozen=True)
class Phase:
    name: str
    tensor_bytes: int
    device_bytes: int


@dataclasses.dataclass(frozen=True)
class LiveTensor:
    """A tensor that is alive at the peak; `kind`: its class, as in `footprint`."""

    name: str
    bytes: int
    kind: str = dataclasses.field(metadata={"json": "class"})


@dataclasses.dataclass(frozen=True)
class Allocator:
    """What the simulated allocator did. `cached_at_peak_bytes`: reserved and not in use then;
    `cache_releases`: times it gave its cache back; `failure`: where it ran out of memory."""

    cached_at_peak_bytes: int
    cache_releases: int
    settles: bool
    replayed_steps: int
    failure: dict[str, Any] | None
    logical_devices: list[Any]
    would_do: list[Any]


@dataclasses.dataclass(frozen=True)
class Memory(Judged):
    """The memory of one step, or of one pass of serving. `footprint`: bytes of each class of tensors at
    the peak; `headroom_bytes` is below 0 where the step does not fit."""

    device: Device
    device_bytes: int
    headroom_bytes: int
    peak: Peak
    footprint: dict[str, int]
    runtime_rows: list[RuntimeRow]
    phases: list[Phase]
    host_bytes: int
    host_buffers: list[Any]
    managed_bytes: int
    evicted_bytes: int
    workspace_source: str
    fallbacks: list[Any]
    allocator: Allocator
    culprit: str | None
    tensors: list[LiveTensor]


@dataclasses.dataclass(frozen=True)
class Check(Memory, Answer):
    """`stowage.check` of a training step or an inference. Where it does not fit: `largest_batch` would,
    which is the largest if `largest_batch_is_proven`, and `advice` has command lines that would do."""

    settings: dict[str, Any]
    loop: dict[str, Any] | None
    software: dict[str, Any]
    tensorflow: Any
    theano: Any
    workspaces: list[dict[str, Any]]
    largest_batch: int | None = None
    largest_batch_is_proven: bool | None = None
    advice: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Pass(Memory):
    """One pass of serving: `sequences` of `tokens_of_each`, behind `cached_before` tokens."""

    sequences: int
    tokens_of_each: int
    cached_before: int


@dataclasses.dataclass(frozen=True)
class Serving:
    """What is served, and how; `device_bytes` is the larger of both passes."""

    model: str
    context_length: int
    encoder_length: int | None
    users: int
    cache: str
    kv_dtype: str | None
    kv_block: int | None
    prefill_chunk: int | None
    precision: str | None
    kv_cache_bytes: int
    device_bytes: int
    headroom_bytes: int


@dataclasses.dataclass(frozen=True)
class ServingCheck(Answer):
    """`stowage.check` with `context_length`: serving's two passes."""

    device: Device
    device_bytes: int
    headroom_bytes: int
    serving: Serving
    prefill: Pass
    decode: Pass
    settings: dict[str, Any]
    software: dict[str, Any]
    tensorflow: Any
    theano: Any
