"""Runs modules of the plan under torch.utils.checkpoint: their inputs are kept, their inside runs again
in backward.

A module is reached by its class's `forward`, which is replaced while a plan is applied and asks whether
the module is one of the plan's. Nothing is written into the module itself: its state_dict, its pickle
and its copies (an EMA's) are those of a model without a plan.

What a second run must not change: random numbers are those of the first (checkpoint's
preserve_rng_state), autocast is as it was, and buffers are written once. The second run gets copies in
the buffers' places: for one that the first run wrote, the value from before the first run, since the
result may depend on it (spectral norm); for running statistics, which training does not read, the
present value.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.checkpoint import checkpoint

from stowage.errors import StowageError
from stowage.plans.stash import version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stowage.plans.offload import Offloading

# Modules whose buffers are written in training and read in evaluation only.
STATISTICS = (torch.nn.modules.batchnorm._NormBase,)


class Buffers:
    """The buffers of a module's tree, around a first and a second run."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.tables = [(part, name, buffer) for part in module.modules()
                       for name, buffer in part._buffers.items() if buffer is not None]
        # Copies from before the first run, by the buffer's id; later those of written ones alone.
        self.before = {id(buffer): (buffer.detach().clone(), version_of(buffer))
                       for part, _, buffer in self.tables if not isinstance(part, STATISTICS)}

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

    def __enter__(self) -> None:
        found = self.buffers.replacements()
        for part, name, _ in self.buffers.tables:
            present = part._buffers.get(name)
            if present is not None and id(present) in found:
                self.places.append((part, name, present))
                part._buffers[name] = found[id(present)]

    def __exit__(self, *_: object) -> None:
        for part, name, present in self.places:
            part._buffers[name] = present
        self.places.clear()


def run_checkpointed(module: torch.nn.Module, forward: Callable[..., Any], arguments: tuple[Any, ...],
                     keywords: dict[str, Any]) -> Any:
    """The module's forward under torch.utils.checkpoint."""
    buffers = Buffers(module)

    def run(*again: Any) -> Any:
        return forward(module, *again, **keywords)

    result = checkpoint(run, *arguments, use_reentrant=False, preserve_rng_state=True,
                        context_fn=lambda: (contextlib.nullcontext(), buffers.copies()))
    buffers.first_run_ended()
    return result


class CheckpointedModules:
    """The plan's modules. `watched()`: their classes are changed while it is active."""

    def __init__(self, modules: list[torch.nn.Module], offloading: Offloading) -> None:
        self.modules = {id(module): module for module in modules}
        self.offloading = offloading

    def call(self, forward: Callable[..., Any], kind: type, module: torch.nn.Module,
             arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        # A subclass that calls this class's forward has one of its own, which is the one to be run again.
        is_ours = type(module) is kind and self.modules.get(id(module)) is module
        if not is_ours or not torch.is_grad_enabled() or self.offloading.is_off:
            return forward(module, *arguments, **keywords)
        self.offloading.in_region += 1
        try:
            return run_checkpointed(module, forward, arguments, keywords)
        finally:
            self.offloading.in_region -= 1

    def replacement(self, kind: type) -> Callable[..., Any]:
        forward = kind.forward  # type: ignore[attr-defined]

        @functools.wraps(forward)
        def run(module: torch.nn.Module, *arguments: Any, **keywords: Any) -> Any:
            return self.call(forward, kind, module, arguments, keywords)

        return run

    def change_class(self, kind: type) -> Callable[[], None]:
        """Replaces the class's forward; returns what undoes it."""
        had_own, before = "forward" in vars(kind), vars(kind).get("forward")
        ours = self.replacement(kind)
        kind.forward = ours  # type: ignore[attr-defined]

        def undo() -> None:
            if vars(kind).get("forward") is not ours:
                return  # replaced once more since, around ours, which hands on from now on
            if had_own:
                kind.forward = before  # type: ignore[attr-defined]
            else:
                del kind.forward  # type: ignore[attr-defined]

        return undo

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for kind in dict.fromkeys(type(module) for module in self.modules.values()):
                stack.callback(self.change_class(kind))
            yield


def check_checkpointable(path: str, module: torch.nn.Module) -> None:
    """Raises StowageError for a module whose forward cannot be replaced at its class."""
    if isinstance(module, torch.jit.ScriptModule):
        raise StowageError(f"{path} is compiled by torch.jit, and cannot be checkpointed",
                           "make a plan without checkpoints, or leave torch.jit out")
    if "forward" in vars(module):
        raise StowageError(f"{path} has a forward of its own, beside its class's: it is not checkpointed",
                           "apply the plan before other libraries wrap the model")
