"""Runs regions of the plan (region_names.py) under torch.utils.checkpoint: their inputs are kept, their
inside runs again in backward.

What a second run must not change: random numbers are those of the first (checkpoint's
preserve_rng_state, host_random.py), autocast is as it was, and buffers are written once. The second run
gets copies in the buffers' places: for one that the first run wrote, the value from before the first run,
since the result may depend on it (spectral norm); for running statistics, which training does not read,
the present value.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.checkpoint import checkpoint

from stowage.plans.host_random import HostRandom
from stowage.plans.region_inputs import taken_apart
from stowage.plans.stash import version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Modules whose buffers are written in training and read in evaluation only.
STATISTICS = (torch.nn.modules.batchnorm._NormBase,)


class Buffers:
    """The buffers of modules' trees, around a first and a second run."""

    def __init__(self, modules: Sequence[torch.nn.Module]) -> None:
        self.tables = [(part, name, buffer) for module in modules for part in module.modules()
                       for name, buffer in part._buffers.items() if buffer is not None]
        # Copies from before the first run, by the buffer's id; later those of written ones alone.
        self.before = {id(buffer): (buffer.detach().clone(), version_of(buffer))
                       for part, _, buffer in self.tables if not isinstance(part, STATISTICS)}
        self.random = HostRandom(modules)

    def first_run_ended(self) -> None:
        self.before = {id(buffer): self.before[id(buffer)] for _, _, buffer in self.tables
                       if id(buffer) in self.before
                       and version_of(buffer) != self.before[id(buffer)][1]}

    def copies(self) -> BufferCopies:
        """While it is entered, a run finds copies."""
        return BufferCopies(self)

    def replacements(self) -> dict[int, torch.Tensor]:
        """{id of a buffer: what the second run finds in its place}."""
        found: dict[int, torch.Tensor] = {}
        with torch.no_grad():
            for part, _, buffer in self.tables:
                if isinstance(part, STATISTICS):
                    found.setdefault(id(buffer), buffer.detach().clone())
                elif id(buffer) in self.before:
                    found.setdefault(id(buffer), self.before[id(buffer)][0].clone())
        return found


class BufferCopies:
    """A context that may be entered once more: where a graph is kept, a region runs again in each
    backward."""

    def __init__(self, buffers: Buffers) -> None:
        self.buffers = buffers
        self.places: list[tuple[torch.nn.Module, str, torch.Tensor]] = []
        self.stack = contextlib.ExitStack()

    def __enter__(self) -> None:
        self.stack.enter_context(self.buffers.random.replayed())
        found = self.buffers.replacements()
        for part, name, _ in self.buffers.tables:
            present = part._buffers.get(name)
            if present is not None and id(present) in found:
                self.places.append((part, name, present))
                part._buffers[name] = found[id(present)]

    def __exit__(self, *_: object) -> None:
        self.stack.close()
        for part, name, present in self.places:
            part._buffers[name] = present
        self.places.clear()


@torch._disable_dynamo  # type: ignore[untyped-decorator]  # a compiled model runs it uncompiled
def run_checkpointed(modules: Sequence[torch.nn.Module], forward: Callable[..., Any],
                     arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """`forward(*arguments, **keywords)`, which runs these modules, under torch.utils.checkpoint."""
    buffers = Buffers(modules)
    inputs, tensors = taken_apart(arguments, keywords)
    first = [(arguments, keywords)]  # the first run takes it away: nothing of it is kept

    def run(*again: torch.Tensor) -> Any:
        if not first:
            given, named = inputs.given(again)
            return forward(*given, **named)
        own, own_named = first.pop()
        with inputs.watched():
            return forward(*own, **own_named)

    result = checkpoint(run, *tensors, use_reentrant=False, preserve_rng_state=True,
                        context_fn=lambda: (contextlib.nullcontext(), buffers.copies()))
    buffers.first_run_ended()
    return result
