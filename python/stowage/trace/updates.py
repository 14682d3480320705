"""Which parameters a step updates.

A parameter is updated where a kernel writes its elements while an optimizer steps, or while no
module's forward runs: a loop of one's own that writes `parameter.sub_(rate * gradient)` is an update
as well. What a module's forward writes into its parameters (nn.Embedding's `max_norm`) is none.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from torch.optim import optimizer as optimizer_hooks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from stowage.trace.record import View

Extent = tuple[int, int]  # of elements of a storage, half-open


def extent_of(view: View) -> Extent:
    """The elements between the first and the last that the view reaches."""
    reach = sum((size - 1) * stride for size, stride in zip(view.shape, view.strides))
    return view.offset, view.offset + reach + 1


class Updates:
    """Collects for one step what is written as an update, which optimizers step, and which
    parameters torch.autograd.grad was asked about."""

    def __init__(self) -> None:
        self.stepping = 0  # calls of Optimizer.step that run
        self.start()

    def start(self) -> None:
        self.written: dict[int, set[Extent]] = {}  # by storage
        self.optimizers: dict[int, torch.optim.Optimizer] = {}
        self.asked_about: set[int] = set()  # ids of tensors

    def note(self, writes: list[View], in_module: bool) -> None:
        if in_module and not self.stepping:
            return
        for view in writes:
            self.written.setdefault(view.storage, set()).add(extent_of(view))

    def reaches(self, view: View) -> bool:
        """Whether any element of the parameter with this view was written."""
        first, end = extent_of(view)
        return any(start < end and first < stop
                   for start, stop in self.written.get(view.storage, ()))

    def note_inputs(self, inputs: Any) -> None:
        """Of torch.autograd.grad."""
        for tensor in inputs if isinstance(inputs, (list, tuple)) else [inputs]:
            self.asked_about.add(id(tensor))

    def before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self.stepping += 1
        self.optimizers[id(optimizer)] = optimizer

    def after_step(self, *_: Any) -> None:
        self.stepping -= 1

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        before = optimizer_hooks.register_optimizer_step_pre_hook(self.before_step)
        after = optimizer_hooks.register_optimizer_step_post_hook(self.after_step)
        try:
            yield
        finally:
            before.remove()
            after.remove()
