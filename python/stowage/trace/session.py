"""A recorder with all its watchers: `with recording(driver, models) as recorder`."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from stowage.one_at_a_time import RECORDING
from stowage.trace.modules import RunningModules
from stowage.trace.phases import Phases
from stowage.trace.recorder import Recorder
from stowage.trace.saved import SavedTensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stowage.pretend.driver import Driver


class LinearWatch(TorchFunctionMode):
    """Tells the recorder whether a call is made by torch.nn.functional.linear."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, function: Callable[..., Any], types: Any,
                           arguments: tuple[Any, ...] = (),
                           options: dict[str, Any] | None = None) -> Any:
        if function is not torch.nn.functional.linear:
            return function(*arguments, **(options or {}))
        before, self.recorder.inside_linear = self.recorder.inside_linear, True
        try:
            return function(*arguments, **(options or {}))
        finally:
            self.recorder.inside_linear = before


class PhasedModules(RunningModules):
    """Tells the phases when the outermost module begins and returns."""

    def __init__(self, roots: dict[str, torch.nn.Module], phases: Phases,
                 on_output: Callable[[Any], None],
                 on_call: Callable[[str, torch.nn.Module, Any], None]) -> None:
        super().__init__(roots, on_output, on_call)
        self.phases = phases

    def enter(self, module: torch.nn.Module, inputs: Any) -> None:
        if not self.stack:
            self.phases.module_entered()
        super().enter(module, inputs)

    def leave(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        super().leave(module, inputs, output)
        if not self.stack:
            self.phases.module_returned()


@contextlib.contextmanager
def reentrant_watched(recorder: Recorder) -> Iterator[None]:
    """Tells the recorder while the backward of a reentrant checkpoint runs: its region's second forward
    and that one's own backward."""
    from torch.utils.checkpoint import CheckpointFunction

    backward = CheckpointFunction.backward

    def counted(*arguments: Any) -> Any:
        recorder.reentrant += 1
        try:
            return backward(*arguments)
        finally:
            recorder.reentrant -= 1

    CheckpointFunction.backward = staticmethod(counted)
    try:
        yield
    finally:
        CheckpointFunction.backward = staticmethod(backward)


@contextlib.contextmanager
def recording(driver: Driver, roots: dict[str, torch.nn.Module],
              on_backward: Callable[[list[torch.Tensor]], None], on_gradients: Callable[[], None],
              on_output: Callable[[Any], None]) -> Iterator[Recorder]:
    """A recorder that watches; `roots` are {prefix: model}. Garbage is collected before and not
    during the recording, so that what dies does so by its last reference. Raises StowageError where a
    step is being recorded already."""
    recorder = Recorder()
    phases = Phases(driver, on_backward, on_gradients, recorder.updates.note_inputs)
    recorder.phases = phases
    recorder.modules = PhasedModules(roots, phases, on_output, recorder.note_call)
    recorder.saved = SavedTensors(recorder)
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(RECORDING.exclusively())
            stack.enter_context(recorder.phases.watched())
            stack.enter_context(recorder.modules.watched())
            stack.enter_context(recorder.saved.watched())
            stack.enter_context(recorder.updates.watched())
            stack.enter_context(reentrant_watched(recorder))
            stack.enter_context(LinearWatch(recorder))
            stack.enter_context(recorder)
            yield recorder
    finally:
        if enabled:
            gc.enable()
