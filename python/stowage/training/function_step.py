"""A step that is the user's own function: forward, backward, update, as it is written."""

from __future__ import annotations

import collections
import contextlib
from typing import TYPE_CHECKING, Any

import torch

from stowage.training.weightless import on_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stowage.sources.source import Example


class FunctionStep:
    """Calls `function(*arguments, **keywords)`. `example` gives them for a batch; `place` puts a
    tensor on the device. As `loss = step(...)` in a loop, the result is kept until the next."""

    batch: tuple[Any, Any, Any]  # arguments, keywords, target: what `load` made

    def __init__(self, function: Callable[..., Any], example: Callable[[int], Example],
                 place: Callable[[torch.Tensor], torch.Tensor],
                 optimizers: Iterable[torch.optim.Optimizer]) -> None:
        self.function, self.example, self.place = function, example, place
        self.optimizers = list(optimizers)
        self.result: Any = None

    def load(self, batch: int) -> tuple[Any, Any, Any]:
        made = self.example(batch)
        self.batch = on_device((made.arguments, made.keywords, None), self.place)
        return self.batch

    def run(self, _on_micro_batch: Callable[[int], None] | None = None) -> None:
        arguments, keywords, _ = self.batch
        self.result = self.function(*arguments, **keywords)


@contextlib.contextmanager
def fake_parameters_updated(optimizers: Iterable[torch.optim.Optimizer],
               fakes: dict[int, torch.Tensor]) -> Iterator[None]:
    """While active, the optimizers update the fake parameters and have no state."""
    before = []
    for optimizer in optimizers:
        before.append((optimizer, [list(group["params"]) for group in optimizer.param_groups],
                       optimizer.state))
        if fakes:
            optimizer.state = collections.defaultdict(dict)
        for group in optimizer.param_groups:
            group["params"] = [fakes.get(id(parameter), parameter) for parameter in group["params"]]
    try:
        yield
    finally:
        for optimizer, groups, state in before:
            optimizer.state = state
            for group, parameters in zip(optimizer.param_groups, groups):
                group["params"] = parameters
