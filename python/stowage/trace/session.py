"""A recorder with all its watchers: `with recording(driver, models) as recorder`."""

import contextlib
import gc

import torch
from torch.overrides import TorchFunctionMode

from stowage.trace.modules import RunningModules
from stowage.trace.phases import Phases
from stowage.trace.recorder import Recorder
from stowage.trace.saved import SavedTensors


class LinearWatch(TorchFunctionMode):
    """Tells the recorder whether a call is made by torch.nn.functional.linear."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, function, types, arguments=(), options=None):
        if function is not torch.nn.functional.linear:
            return function(*arguments, **(options or {}))
        before, self.recorder.inside_linear = self.recorder.inside_linear, True
        try:
            return function(*arguments, **(options or {}))
        finally:
            self.recorder.inside_linear = before


class PhasedModules(RunningModules):
    """Tells the phases when the outermost module begins and returns."""

    def __init__(self, roots, phases, on_output):
        super().__init__(roots, on_output)
        self.phases = phases

    def enter(self, module, inputs):
        if not self.stack:
            self.phases.module_entered()
        super().enter(module, inputs)

    def leave(self, module, inputs, output):
        super().leave(module, inputs, output)
        if not self.stack:
            self.phases.module_returned()


@contextlib.contextmanager
def recording(driver, roots, on_backward, on_gradients, on_output):
    """A recorder that watches; `roots` are {prefix: model}. Garbage is collected before and not
    during the recording, so that what dies does so by its last reference."""
    recorder = Recorder()
    recorder.phases = Phases(driver, on_backward, on_gradients)
    recorder.modules = PhasedModules(roots, recorder.phases, on_output)
    recorder.saved = SavedTensors(recorder)
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(recorder.phases.watched())
            stack.enter_context(recorder.modules.watched())
            stack.enter_context(recorder.saved.watched())
            stack.enter_context(LinearWatch(recorder))
            stack.enter_context(recorder)
            yield recorder
    finally:
        if enabled:
            gc.enable()
