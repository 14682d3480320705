"""A plan, carried out on the pretended device (stowage/pretend): nothing is computed and nothing copied,
and what would be in memory is counted at each kernel.

Counted are the storages of tensors, as PyTorch's allocator rounds them. What a kernel allocates within
itself is not: `stowage plan` adds it by its own table.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from stowage.plans.applied import applied_plan, optimizers_of, roots_of
from stowage.pretend.session import pretended_cuda
from stowage.trace.session import recording

if TYPE_CHECKING:
    from collections.abc import Callable

    from stowage.plans.applied import Applied
    from stowage.plans.plan_file import PlanLike
    from stowage.trace.recorder import Recorder

ROUNDING = 512  # bytes: kMinBlockSize of PyTorch's caching allocator


@dataclasses.dataclass(frozen=True)
class Rehearsal:
    """Of the last step: bytes moved each way, and the largest sum of living storages, in bytes.
    `fell_back` and `first_reason` are of all steps."""

    bytes_out: int
    bytes_back: int
    peak_bytes: int
    fell_back: int
    first_reason: str


def peak_of(recorder: Recorder, step: int, nodes: int) -> int:
    """The largest sum of what lives while a node of the step runs, in bytes."""
    changes = [0] * (nodes + 1)
    for storage in recorder.storages:
        first = 0 if storage.born.step < step else storage.born.node
        last = nodes - 1 if storage.died is None or storage.died.step > step else storage.died.node
        if storage.born.step > step or last < first or (
                storage.died is not None and storage.died.step < step):
            continue
        size = -(-storage.bytes // ROUNDING) * ROUNDING
        changes[first] += size
        changes[last + 1] -= size
    peak = living = 0
    for change in changes:
        living += change
        peak = max(peak, living)
    return peak


def nothing(*_arguments: Any) -> None:
    return None


def run_steps(recorder: Recorder, step: Callable[[], Any], steps: int,
              applied: Applied | None) -> tuple[int, int, int]:
    """(bytes out, bytes back, peak) of the last of the steps."""
    before = (0, 0)
    kept: Any = None  # as `loss = step()` in a loop
    for index in range(steps):
        if applied is not None:
            before = (applied.bytes_out, applied.bytes_back)
        recorder.start_step(index, 0)
        kept = step()
        recorder.finish_step()
    del kept
    after = (0, 0) if applied is None else (applied.bytes_out, applied.bytes_back)
    return (after[0] - before[0], after[1] - before[1],
            peak_of(recorder, steps - 1, len(recorder.step.nodes)))


def rehearsal(build: Callable[[], tuple[Any, Any, Callable[[], Any]]], plan: PlanLike | None, steps: int,
              capability: tuple[int, int]) -> Rehearsal:
    """See stowage.rehearse."""
    with pretended_cuda(capability) as session:
        model, optimizer, step = build()
        roots = roots_of(model)
        optimizers_of(optimizer)
        with recording(session.driver, roots, nothing, nothing, nothing) as recorder:
            for root in roots.values():
                for tensor in (*root.parameters(), *root.buffers()):
                    if isinstance(tensor, torch.Tensor) and tensor.device.type == "cuda":
                        recorder.view_of(tensor)
            applied = None if plan is None else applied_plan(model, optimizer, plan)
            try:
                out, back, peak = run_steps(recorder, step, steps, applied)
            finally:
                if applied is not None:
                    applied.remove()
        return Rehearsal(out, back, peak, 0 if applied is None else applied.fell_back,
                         "" if applied is None else applied.first_reason)
