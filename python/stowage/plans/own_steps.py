"""An optimizer's step for some of its parameters at a time, as a gradient comes.

torch.optim's optimizers look at one parameter at a time, so that a step for one and a step for all give
the same bits. The step is the optimizer's own function, called on an object that shares its state and has
a group of these parameters alone: hooks, schedules and whoever looks at the optimizer's groups in the
meantime see nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stowage.errors import StowageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def check_optimizer(optimizer: torch.optim.Optimizer, what: str = "moved to the CPU",
                    plan: str = "an optimizer on the CPU") -> None:
    if not type(optimizer).__module__.startswith("torch.optim"):
        raise StowageError(f"{type(optimizer).__name__} is no optimizer of torch.optim: it is not {what}",
                           f"make a plan without {plan}")


def step_alone(optimizer: torch.optim.Optimizer) -> Any:
    """The class' step, without the hooks that every optimizer wraps around it."""
    step: Any = type(optimizer).step
    return step.__wrapped__ if getattr(step, "hooked", False) else step


def values_of(group: dict[str, Any]) -> dict[str, Any]:
    """The group's options. A tensor (a learning rate) by its identity and its version."""
    return {name: (id(value), value._version) if isinstance(value, torch.Tensor) else value
            for name, value in group.items() if name != "params"}


class OwnSteps:
    """Of one optimizer. Raises StowageError for one whose step is not parameter by parameter."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        check_optimizer(optimizer, "run for one parameter at a time",
                        "early updates and without parts of the optimizer on the CPU")
        if isinstance(optimizer, torch.optim.LBFGS):
            raise StowageError("LBFGS takes all parameters together: it is not run for one at a time",
                               "make a plan without early updates")
        self.optimizer = optimizer
        self.groups: dict[int, dict[str, Any]] = {}  # by the id of a parameter
        self.known: list[tuple[int, int]] = []
        self.used: dict[int, dict[str, Any]] = {}  # options, by the id of a group, in this round

    def group_of(self, parameter: torch.Tensor) -> dict[str, Any]:
        """load_state_dict makes new groups, and add_param_group adds to them."""
        known = [(id(group), len(group["params"])) for group in self.optimizer.param_groups]
        if known != self.known or id(parameter) not in self.groups:
            self.known = known
            self.groups = {id(one): group for group in self.optimizer.param_groups
                           for one in group["params"]}
        return self.groups[id(parameter)]

    def update(self, parameter: torch.Tensor) -> None:
        """With its `.grad`, and the options that its group has now."""
        group = self.group_of(parameter)
        self.used.setdefault(id(group), values_of(group))
        alone = object.__new__(type(self.optimizer))
        alone.__dict__ = {**self.optimizer.__dict__, "param_groups": [{**group, "params": [parameter]}]}
        with torch.autocast(parameter.device.type, enabled=False):
            step_alone(self.optimizer)(alone)

    def end_round(self) -> None:
        """At optimizer.step(). Raises StowageError where options changed since they were used."""
        used, self.used = self.used, {}
        for group in self.optimizer.param_groups:
            now = values_of(group)
            for name, value in used.get(id(group), {}).items():
                if now.get(name) != value:
                    raise StowageError(
                        f"the optimizer's {name} changed between backward and optimizer.step(): updates "
                        "came as gradients did, with what it was before",
                        'change it before backward, or take "updates": "early" out of the plan')


def steps_of(optimizers: Sequence[torch.optim.Optimizer]) -> dict[int, OwnSteps]:
    """By the id of a parameter of theirs."""
    found: dict[int, OwnSteps] = {}
    for optimizer in optimizers:
        steps = OwnSteps(optimizer)
        found.update((id(one), steps) for one in parameters_of([optimizer]))
    return found


def parameters_of(optimizers: Iterable[torch.optim.Optimizer]) -> list[torch.nn.Parameter]:
    return [one for optimizer in optimizers for group in optimizer.param_groups
            for one in group["params"] if one.requires_grad]
