"""Updates on the device as gradients come ("optimizer step in backward").

    as it is  | grad c | grad b | grad a | update of a, b, c
    early     | grad c | update of c | grad b | update of b | grad a | update of a

A gradient is let go once its parameter is updated. In its place `.grad` has a stand-in without values.
A script that would see a difference is stopped: one that looks at a gradient, adds to it in a second
backward, drops it, or changes the optimizer's options before optimizer.step().
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from stowage.errors import StowageError
from stowage.plans.own_steps import OwnSteps, parameters_of, steps_of
from stowage.plans.stand_ins import StandIn, check_gradient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stowage.plans.events import Events

HINT = 'optimizer.step() after each backward, or take "updates": "early" out of the plan'


def refuse_early(name: str, what: str) -> NoReturn:
    raise StowageError(f"{name} was updated as its gradient came, and {what}", HINT)


class SpentGradient(StandIn):
    """For a gradient whose parameter is updated."""


class EarlyParameter:
    """A parameter whose updates are early. `is_updated`: in this round, which optimizer.step() ends."""

    def __init__(self, name: str, parameter: torch.nn.Parameter, steps: OwnSteps) -> None:
        self.name, self.parameter, self.steps = name, parameter, steps
        self.is_updated = self.is_hidden = self.is_zero = False
        self.arrived: torch.Tensor | None = None

    def add(self, gradient: torch.Tensor) -> None:
        if not self.is_zero:
            refuse_early(self.name, "backward adds to the gradient before zero_grad()")
        self.arrived = gradient.detach() + 0  # as it would be added to zeros

    def zero(self) -> None:
        self.is_zero = True

    def use(self, operator: Any, *_: Any) -> NoReturn:
        refuse_early(self.name, f"{operator} uses the gradient")

    def take(self) -> torch.Tensor | None:
        """What backward has put into `.grad`, or added to its stand-in."""
        gradient = self.parameter.grad
        if isinstance(gradient, SpentGradient):
            gradient, self.arrived = self.arrived, None
        return gradient

    def hide(self, stands_in: bool) -> None:
        """`.grad` is None, as long as the optimizer steps."""
        self.parameter.grad = SpentGradient(self) if stands_in else None
        self.is_hidden = not stands_in


class EarlyUpdates:
    """`names`: {id of a parameter: its name}, of those to be updated early. `fall_back(reason)` is called
    for a gradient that backward has not put there."""

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer], names: dict[int, str], events: Events,
                 fall_back: Callable[[str], None]) -> None:
        self.optimizers, self.events, self.fall_back = optimizers, events, fall_back
        steps = steps_of(optimizers)
        self.parameters = [EarlyParameter(names[id(one)], one, steps[id(one)])
                           for one in parameters_of(optimizers) if id(one) in names]
        self.by_id = {id(one.parameter): one for one in self.parameters}
        self.stepping: set[int] = set()  # optimizers within step()

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            stack.callback(self.restore)
            for one in self.parameters:
                stack.callback(one.parameter.register_post_accumulate_grad_hook(self.has_come).remove)
            for optimizer in self.optimizers:
                stack.callback(optimizer.register_step_pre_hook(self.before_step).remove)
                stack.callback(optimizer.register_step_post_hook(self.after_step).remove)
            yield

    def has_come(self, parameter: torch.Tensor) -> None:
        """After autograd has put a gradient into `.grad`."""
        own = self.by_id[id(parameter)]
        gradient = own.take()
        if gradient is None:
            return
        if own.is_updated:
            refuse_early(own.name, "backward ran again before optimizer.step()")
        check_gradient(gradient, "an update as it comes")
        parameter.grad = gradient
        own.steps.update(parameter)
        own.is_updated, own.is_zero = True, False
        own.hide(stands_in=id(own.steps.optimizer) not in self.stepping)
        self.events.note("update", own.name)

    def before_step(self, optimizer: torch.optim.Optimizer, arguments: Any, options: Any) -> None:
        has_closure = any(one is not None for one in (*arguments[1:], *options.values()))
        for own in self.of(optimizer):
            gradient = own.parameter.grad
            if own.is_updated:
                if gradient is None:
                    refuse_early(own.name, "the gradient was dropped before optimizer.step()")
                own.hide(stands_in=False)
            elif isinstance(gradient, SpentGradient):
                if has_closure:
                    continue  # which drops it, or the step will use it
                if not own.is_zero:
                    refuse_early(own.name, "optimizer.step() takes the same gradient again")
                own.parameter.grad = torch.zeros_like(own.parameter)
            elif gradient is not None:
                self.fall_back(f"backward has not put the gradient of {own.name} there")
        self.end_round(optimizer)
        self.stepping.add(id(optimizer))

    def after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self.stepping.discard(id(optimizer))
        self.end_round(optimizer)
        for own in self.of(optimizer):
            if own.is_hidden and own.parameter.grad is None:
                own.hide(stands_in=True)
            own.is_updated = own.is_hidden = False

    def end_round(self, optimizer: torch.optim.Optimizer) -> None:
        for own in self.of(optimizer)[:1]:
            own.steps.end_round()

    def of(self, optimizer: torch.optim.Optimizer) -> list[EarlyParameter]:
        return [own for own in self.parameters if own.steps.optimizer is optimizer]

    def restore(self) -> None:
        for own in self.parameters:
            if isinstance(own.parameter.grad, SpentGradient):
                own.parameter.grad = None
