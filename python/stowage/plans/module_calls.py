"""Runs modules of the plan in another way: under torch.utils.checkpoint, with their parameters brought
for as long as they run, in parts of a batch.

A module is reached by its class's `forward`, which is replaced while a plan is applied and asks whether
the module is one of the plan's. Nothing is written into the module itself: its state_dict, its pickle
and its copies (an EMA's) are those of a model without a plan.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import torch

from stowage.errors import StowageError
from stowage.plans.no_hooks import are_allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stowage.plans.chunks import ChunkedCalls
    from stowage.plans.offload import Offloading
    from stowage.plans.regions import Regions
    from stowage.plans.stream import StreamedModules


class ModuleCalls:
    """The plan's modules. `watched()`: their classes are changed while it is active."""

    def __init__(self, regions: Regions, streamed: StreamedModules,
                 chunked: dict[int, tuple[torch.nn.Module, ChunkedCalls]],
                 offloading: Offloading) -> None:
        self.regions, self.streamed, self.offloading = regions, streamed, offloading
        self.chunked = chunked  # by the module's id
        self.modules = {id(module): module for module in (
            *regions.modules, *streamed.modules(), *(module for module, _ in chunked.values()))}

    def call(self, forward: Callable[..., Any], kind: type, module: torch.nn.Module,
             arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        # A subclass that calls this class's forward has one of its own, which is the one to be run.
        is_ours = type(module) is kind and self.modules.get(id(module)) is module
        if not is_ours or self.offloading.is_off:
            return forward(module, *arguments, **keywords)
        # A second run brings the parameters again: it is the streamed forward that is checkpointed.
        runs_again = torch.is_grad_enabled() and are_allowed()
        if runs_again:
            forward = self.regions.inside(module, forward)
        forward = self.streamed.around(forward, module)
        if id(module) in self.chunked:
            forward = self.chunked[id(module)][1].around(forward, module)
        if runs_again:
            forward = self.regions.around(module, forward)
        return forward(module, *arguments, **keywords)

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


def check_callable(path: str, module: torch.nn.Module, done: str, decisions: str) -> None:
    """Raises StowageError for a module whose forward cannot be replaced at its class. What the plan does
    with it: "checkpointed", by its "checkpoints"."""
    if isinstance(module, torch.jit.ScriptModule):
        raise StowageError(f"{path} is compiled by torch.jit, and cannot be {done}",
                           f"make a plan without {decisions}, or leave torch.jit out")
    if "forward" in vars(module):
        raise StowageError(f"{path} has a forward of its own, beside its class's: it is not {done}",
                           "apply the plan before other libraries wrap the model")
