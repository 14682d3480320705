"""Which phase a step is in, as the user's own code goes through them.

    forward    until the loss: whatever runs while gradients are recorded
    loss       what runs outside of every module after one has returned
    backward   within Tensor.backward, torch.autograd.backward, torch.autograd.grad
    update     from there to the step's end, or to the next forward: clipping, the optimizer
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch

from stowage.errors import StowageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stowage.pretend.driver import Driver

# The engine's queues, made for the devices of the process's first backward, stand in its assertion.
QUEUES = "device_ready_queues_"


class Phases:
    """`phase` is the current one. `on_backward(roots)` is called before each backward pass and
    `on_gradients()` after it; `on_inputs(tensors)` with what torch.autograd.grad is asked about."""

    def __init__(self, driver: Driver, on_backward: Callable[[list[torch.Tensor]], None],
                 on_gradients: Callable[[], None], on_inputs: Callable[[Any], None]) -> None:
        self.driver = driver
        self.phase = "forward"
        self.on_backward, self.on_gradients = on_backward, on_gradients
        self.on_inputs = on_inputs
        self.backward_passes = 0

    def start(self) -> None:
        self.phase, self.backward_passes = "forward", 0

    def module_entered(self) -> None:
        if self.phase in ("loss", "update"):
            self.phase = "forward"

    def module_returned(self) -> None:
        if self.phase == "forward":
            self.phase = "loss"

    def wrapped(self, name: str) -> Callable[..., Any]:
        """torch.autograd.backward or grad, with its phase and the devices that the engine asks for."""
        function = getattr(torch.autograd, name)

        def run(tensors: Any, *arguments: Any, **options: Any) -> Any:
            roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
            outer = self.phase
            if name == "grad":
                self.on_inputs(arguments[0] if arguments else options.get("inputs", ()))
            if outer != "backward":
                self.on_backward(roots)
            self.phase = "backward"
            del roots
            try:
                with self.driver.visible():
                    return function(tensors, *arguments, **options)
            except RuntimeError as error:
                if QUEUES not in str(error):
                    raise
                raise StowageError("a backward pass has run in this process before, on a machine "
                                   "without a GPU: PyTorch's engine cannot run one on a pretended device "
                                   "any more",
                                   "record before anything trains, or in a process of its own") from error
            finally:
                self.phase = outer if outer == "backward" else "update"
                if outer != "backward":
                    self.backward_passes += 1
                    self.on_gradients()

        return run

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for name in ("backward", "grad"):
                stack.enter_context(mock.patch.object(
                    torch.autograd, name, self.wrapped(name)))
            yield
