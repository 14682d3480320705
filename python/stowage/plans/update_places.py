"""Where and when a plan updates parameters, held to the models and their optimizers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NoReturn

from stowage.errors import StowageError
from stowage.plans.early_updates import EarlyUpdates
from stowage.plans.host_updates import HostUpdates
from stowage.plans.own_steps import parameters_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import torch

    from stowage.plans.events import Events
    from stowage.plans.plan_file import Plan


class UpdatePlaces:
    """The optimizers' parameters by their whole names, shared out among the CPU, the device as gradients
    come, and optimizer.step() as it is. Raises StowageError for a plan that has others."""

    def __init__(self, plan: Plan, roots: dict[str, torch.nn.Module],
                 optimizers: Sequence[torch.optim.Optimizer], events: Events,
                 note_fallback: Callable[[int, str, str], None]) -> None:
        self.plan, self.note_fallback = plan, note_fallback
        self.host: HostUpdates | None = None
        self.early: EarlyUpdates | None = None
        is_on_host = plan.gradients_in_flight is not None
        if not is_on_host and not plan.early_updates:
            return
        if not optimizers:
            how = "on the CPU" if is_on_host else "early"
            raise StowageError(f"{plan.source} updates {how}, and apply got no optimizer",
                               "stowage.apply(model, optimizer, plan)")
        names = self.names(roots, optimizers)
        chosen = self.chosen(names, roots) if is_on_host else {}
        if plan.gradients_in_flight is not None:
            self.host = HostUpdates(optimizers, chosen, plan.gradients_in_flight, plan.early_updates,
                                    events)
        rest = {key: name for key, name in names.items() if key not in chosen}
        if plan.early_updates and rest:
            self.early = EarlyUpdates(optimizers, rest, events, self.fall_back)

    def names(self, roots: dict[str, torch.nn.Module],
              optimizers: Sequence[torch.optim.Optimizer]) -> dict[int, str]:
        """{id: name} of what the optimizers update. A parameter that the models do not have is named by
        its place."""
        of_models = {id(one): ".".join(part for part in (prefix, name) if part)
                     for prefix, root in roots.items() for name, one in root.named_parameters()}
        return {id(one): of_models.get(id(one), f"parameter {index} of the optimizer")
                for index, one in enumerate(parameters_of(optimizers))}

    def chosen(self, names: dict[int, str], roots: dict[str, torch.nn.Module]) -> dict[int, str]:
        """Of these, those that are updated on the CPU."""
        if not self.plan.cpu_parameters:
            return names
        of_models = {".".join(part for part in (prefix, name) if part): id(one)
                     for prefix, root in roots.items()
                     for name, one in root.named_parameters(remove_duplicate=False)}
        found = {}
        for name in self.plan.cpu_parameters:
            if name not in of_models:
                self.refuse(f"it updates '{name}' on the CPU, which this model does not have")
            if of_models[name] not in names:
                self.refuse(f"it updates '{name}' on the CPU, which none of the optimizers updates")
            found[of_models[name]] = name
        return found

    def refuse(self, difference: str) -> NoReturn:
        raise StowageError(f"{self.plan.source} is for another model ('{self.plan.model}'): {difference}",
                           "record this model's step, and plan it")

    def fall_back(self, reason: str) -> None:
        self.note_fallback(1, reason, "updates parameters in optimizer.step() that {} updates as their "
                                      "gradients come")

    @property
    def late_reason(self) -> str:
        """Why the CPU updates in optimizer.step() what it was to update as gradients come; "": it does
        not."""
        return "" if self.host is None else self.host.late_reason

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for part in (self.host, self.early):
                if part is not None:
                    stack.enter_context(part.at_work())
            yield
