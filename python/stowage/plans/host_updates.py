"""The optimizer on the CPU: gradients go to host memory as they come, and the CPU updates parameters of
its own, which are copied back. Of all parameters, or of those that the plan names.

    device | backward: gradient a, gradient b, ...                        | a, b from the host
    copies |           a to the host, b to the host, ...                  | a, b to the device
    CPU    |                                          optimizer.step()

    early, CPU |            update of a      update of b     ...

A gradient's memory is let go when two more have come, once the device has waited for its copy. In its
place `.grad` has a stand-in, which tells whether it was set to None since: the next gradient is taken as
the first one then, and is added to the one on the host otherwise. For whatever else is done with the
stand-in (clipping by the norm of all) the values come back to the device, for as long as that takes.

Early updates begin with the second step: the first one shows whether the script adds gradients up or
looks at them, and then they stay in optimizer.step(). A script that does so later is stopped.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from stowage.errors import PlanWarning, StowageError
from stowage.plans.early_updates import refuse_early
from stowage.plans.host_pool import PinnedMemory, rounded
from stowage.plans.own_steps import OwnSteps, check_optimizer, parameters_of, steps_of
from stowage.plans.stand_ins import StandIn, check_gradient
from stowage.plans.streams import copies_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stowage.plans.events import Events


class HostGradient(StandIn):
    """For a gradient that lies on the host."""


def with_values(operator: Any, arguments: Any, options: Any, found: Sequence[HostGradient]) -> Any:
    """The operator on the gradients' values, brought to the device for it; what it writes goes back."""
    owners = {id(one.owner): one.owner for one in found}
    updates = found[0].owner.updates
    updates.say_once(f"{operator} uses gradients, which lie on the host: they come back for it")
    updates.wait_on_host()
    for owner in owners.values():
        updates.stay_late(owner, f"{operator} uses gradients")
        owner.wait()
    values = {key: owner.gradient.to(owner.parameter.device, copy=True) for key, owner in owners.items()}

    def value_of(one: Any) -> Any:
        return values[id(one.owner)] if isinstance(one, HostGradient) else one

    result = operator(*pytree.tree_map(value_of, arguments), **pytree.tree_map(value_of, options))
    written = [argument.name for argument in operator._schema.arguments
               if argument.alias_info is not None and argument.alias_info.is_write]
    given = dict(zip((argument.name for argument in operator._schema.arguments), arguments))
    for one in pytree.tree_leaves([{**given, **options}.get(name) for name in written]):
        if isinstance(one, HostGradient):
            if one.owner.is_updated:
                refuse_early(one.owner.name, f"{operator} changes the gradient")
            one.owner.gradient.copy_(values[id(one.owner)])
    stand_ins = {id(values[id(one.owner)]): one for one in found}
    return pytree.tree_map(lambda one: stand_ins.get(id(one), one), result)


class HostParameter:
    """A parameter of the model, the CPU's own copy of it, and its gradient on the host. `future`: of its
    early update in this round."""

    def __init__(self, name: str, parameter: nn.Parameter, master: torch.Tensor, gradient: torch.Tensor,
                 updates: HostUpdates) -> None:
        self.name, self.parameter, self.updates = name, parameter, updates
        self.master = nn.Parameter(master)
        self.gradient = gradient
        self.future: concurrent.futures.Future[None] | None = None
        self.is_hidden = False  # its gradient, as long as the optimizer steps

    @property
    def is_updated(self) -> bool:
        return self.future is not None

    def wait(self) -> None:
        """Until an early update is done. Raises what it raised."""
        if self.future is not None:
            self.future.result()

    def arrive(self, gradient: torch.Tensor, is_first: bool) -> None:
        """A gradient has come; `is_first`: `.grad` was None, so that it counts alone."""
        if self.is_updated:
            refuse_early(self.name, "backward ran again before optimizer.step()")
        if is_first or self.master.grad is None:
            self.updates.copy_out(self, gradient)
            self.master.grad = self.gradient
        else:
            self.updates.stay_late(self, "gradients add up")
            self.updates.wait_on_host()
            self.gradient.add_(gradient.detach().to("cpu"))

    def has_come(self, parameter: nn.Parameter) -> None:
        """After autograd has put a gradient into `.grad`, or added it to the stand-in."""
        gradient = parameter.grad
        if gradient is not None and not isinstance(gradient, HostGradient):
            check_gradient(gradient, "an update on the CPU")
            self.arrive(gradient, is_first=True)
            parameter.grad = HostGradient(self)
        if gradient is not None:
            self.updates.update_early(self)
            if self.updates.stepping:  # a closure's backward: the optimizer goes on at once
                self.updates.wait_on_host()

    def add(self, gradient: torch.Tensor) -> None:
        self.arrive(gradient, is_first=False)

    def zero(self) -> None:
        self.wait()
        self.updates.wait_on_host()
        self.gradient.zero_()

    def use(self, operator: Any, arguments: Any, options: Any, found: Sequence[HostGradient]) -> Any:
        return with_values(operator, arguments, options, found)


class HostUpdates:
    """Takes parameters of the optimizers over, until `restore`: those of `names`, {id: name}.
    `in_flight`: so many gradients may lie on the device while they are copied. `early`: they are updated
    as they come. Raises StowageError for an optimizer that cannot run on the CPU."""

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer], names: dict[int, str], in_flight: int,
                 early: bool, events: Events) -> None:
        self.optimizers, self.in_flight, self.events = optimizers, in_flight, events
        for optimizer in optimizers:
            check_movable(optimizer)
        parameters = [one for one in parameters_of(optimizers) if id(one) in names]
        self.device = parameters[0].device if parameters else torch.device("cpu")
        self.copies = copies_for(self.device)
        self.leaving: collections.deque[tuple[torch.Tensor, Any]] = collections.deque()
        self.has_said = False
        self.last_out: Any = None
        self.last_back: Any = None
        self.memory = HostMemory(parameters, self.device)
        self.hosts = {id(one): HostParameter(names[id(one)], one, self.memory.masters[index],
                                             self.memory.gradients[index], self)
                      for index, one in enumerate(parameters)}
        self.of_master = {id(host.master): host for host in self.hosts.values()}
        self.is_whole = len(parameters) == len(parameters_of(optimizers))
        steps = steps_of(optimizers) if early or not self.is_whole else {}
        self.steps: dict[int, OwnSteps] = {key: steps[key] for key in self.hosts if key in steps}
        self.is_early, self.late_reason = early, ""  # why some are not
        self.late: set[int] = set()  # optimizers of which updates stay in step()
        self.stepped: set[int] = set()  # optimizers that have
        self.stepping: set[int] = set()  # within step()
        self.worker: concurrent.futures.ThreadPoolExecutor | None = None

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """The optimizers have the CPU's parameters within."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.end_worker)
            for host in self.hosts.values():
                if host.parameter.grad is not None:
                    host.has_come(host.parameter)
                stack.callback(host.parameter.register_post_accumulate_grad_hook(host.has_come).remove)
            for optimizer in self.optimizers:
                move_optimizer(optimizer, {key: host.master for key, host in self.hosts.items()}, "cpu")
                stack.callback(self.restore, optimizer)
                for register, hook in ((optimizer.register_step_pre_hook, self.before_step),
                                       (optimizer.register_step_post_hook, self.after_step),
                                       (optimizer.register_state_dict_pre_hook, self.settle),
                                       (optimizer.register_load_state_dict_pre_hook, self.settle)):
                    stack.callback(register(hook).remove)
            yield

    def say_once(self, what: str) -> None:
        if not self.has_said:
            self.has_said = True
            warnings.warn(f"{what}. Further such uses are not reported", PlanWarning, stacklevel=3)

    # Early updates

    def stay_late(self, host: HostParameter, reason: str) -> None:
        """Before the first step: updates stay in optimizer.step(). Later scripts are stopped."""
        steps = self.steps.get(id(host.parameter))
        if not self.is_early or steps is None or id(steps.optimizer) in self.stepped | self.late:
            return
        self.late.add(id(steps.optimizer))
        self.late_reason = self.late_reason or reason
        self.say_once(f"{reason}: the CPU updates in optimizer.step(), and not as gradients come")

    def update_early(self, host: HostParameter) -> None:
        """In a thread of its own, beside backward."""
        steps = self.steps.get(id(host.parameter))
        if not self.is_early or steps is None:
            return
        optimizer = id(steps.optimizer)
        if optimizer not in self.stepped or optimizer in self.late | self.stepping:
            return
        copy = self.last_out

        def update() -> None:
            if hasattr(copy, "synchronize"):
                copy.synchronize()
            steps.update(host.master)

        self.events.note("update", host.name)
        if isinstance(host.master, torch._subclasses.FakeTensor):
            update()  # modes of the pretended device are this thread's
            host.future = concurrent.futures.Future()
            host.future.set_result(None)
            return
        if self.worker is None:
            self.worker = concurrent.futures.ThreadPoolExecutor(1, "stowage-updates")
        host.future = self.worker.submit(update)

    def end_worker(self) -> None:
        if self.worker is not None:
            self.worker.shutdown()

    def settle(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Until no early update of the optimizer is under way."""
        for host in self.of(optimizer):
            host.wait()

    def of(self, optimizer: torch.optim.Optimizer) -> list[HostParameter]:
        """Those whose gradients have come, in the order of the optimizer."""
        masters = [one for group in optimizer.param_groups for one in group["params"]]
        hosts = [self.of_master[id(one)] for one in masters if id(one) in self.of_master]
        return [host for host in hosts
                if host.is_updated or host.is_hidden or host.master.grad is not None]

    # Gradients and steps

    def copy_out(self, host: HostParameter, gradient: torch.Tensor) -> None:
        if len(self.leaving) >= self.in_flight:
            self.copies.wait(self.leaving.popleft()[1])
        source = gradient.detach().contiguous()
        # The CPU may still read what is about to be overwritten: its last update has ended, since step
        # returned before this backward began.
        copy = self.copies.out(source, host.gradient)
        self.leaving.append((source, copy))
        self.last_out = copy
        self.events.note("gradient", host.name, gradient.numel() * gradient.element_size())

    def wait_on_host(self) -> None:
        """Until the gradients so far are on the host."""
        if self.last_out is not None and hasattr(self.last_out, "synchronize"):
            self.last_out.synchronize()

    def before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """What is updated already goes back, in the order of its updates, and is no more a gradient to
        the optimizer."""
        while self.leaving:
            self.copies.wait(self.leaving.popleft()[1])
        self.wait_on_host()
        if self.last_back is not None and hasattr(self.last_back, "synchronize"):
            self.last_back.synchronize()  # the CPU writes to what was copied from
        for host in self.of(optimizer):
            if host.is_updated and host.master.grad is None:
                refuse_early(host.name, "the gradient was dropped before optimizer.step()")
        hosts = self.of(optimizer)
        for host in reversed(hosts):  # as backward has them
            if host.is_updated:
                host.wait()
                self.bring_back(host)
        for steps in self.steps_of(optimizer):
            steps.end_round()
        for host in hosts:
            # To an optimizer with parameters on both devices those of the CPU have no gradient: it
            # chooses its kernels (foreach, fused) by where all of them are.
            if host.is_updated or not self.is_whole:
                host.master.grad, host.is_hidden = None, True
        self.stepping.add(id(optimizer))

    def after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self.stepping.discard(id(optimizer))
        for host in self.of(optimizer):
            self.stepped.add(id(optimizer))
            if host.is_hidden:
                host.master.grad = host.gradient
            if not host.is_updated:
                if not self.is_whole:
                    self.steps[id(host.parameter)].update(host.master)
                self.bring_back(host)
            host.is_hidden, host.future = False, None
        for steps in self.steps_of(optimizer):
            steps.used.clear()
        if self.last_back is not None:
            self.copies.wait(self.last_back)

    def steps_of(self, optimizer: torch.optim.Optimizer) -> list[OwnSteps]:
        return [one for one in {id(one): one for one in self.steps.values()}.values()
                if one.optimizer is optimizer]

    def bring_back(self, host: HostParameter) -> None:
        self.last_back = self.copies.into(host.master.detach(), host.parameter.detach())
        self.events.note("parameter", host.name, host.master.numel() * host.master.element_size())

    def restore(self, optimizer: torch.optim.Optimizer) -> None:
        """The optimizer has the model's parameters again, with its state and their gradients on their
        device. What is updated already has no gradient: optimizer.step() has nothing to do for it."""
        with contextlib.suppress(Exception):  # of an early update, or of a step that did not come
            self.before_step(optimizer)
        if self.last_back is not None:
            self.copies.wait(self.last_back)
        for host in self.hosts.values():
            if host.is_hidden and not host.is_updated:
                host.master.grad = host.gradient
        for host in self.hosts.values():
            if isinstance(host.parameter.grad, HostGradient):
                is_gone = host.master.grad is None or host.is_updated
                host.parameter.grad = None if is_gone else (
                    host.gradient.to(host.parameter.device).clone())
        move_optimizer(optimizer, {key: host.parameter for key, host in self.of_master.items()}, None)


class HostMemory:
    """The CPU's parameters and gradients: on CUDA two pieces of pinned memory."""

    def __init__(self, parameters: Sequence[torch.Tensor], device: torch.device) -> None:
        sizes = [one.numel() * one.element_size() for one in parameters]
        pinned = device.type == "cuda" and not torch._guards.detect_fake_mode()
        self.pieces = [PinnedMemory(sum(rounded(size) for size in sizes)) for _ in range(2)] if (
            pinned and sizes) else []
        self.masters = [self.piece(0, index, sizes, one) for index, one in enumerate(parameters)]
        self.gradients = [self.piece(1, index, sizes, one) for index, one in enumerate(parameters)]
        with torch.no_grad():
            for master, one in zip(self.masters, parameters):
                master.copy_(one.detach())

    def piece(self, number: int, index: int, sizes: list[int], like: torch.Tensor) -> torch.Tensor:
        """As `like`, contiguous, in the piece of that number."""
        if not self.pieces:
            return torch.empty(like.shape, dtype=like.dtype, device="cpu")
        begin = sum(rounded(size) for size in sizes[:index])
        part = self.pieces[number].tensor[begin:begin + sizes[index]]
        return part.view(like.dtype).view(like.shape)


def check_movable(optimizer: torch.optim.Optimizer) -> None:
    check_optimizer(optimizer)
    for group in optimizer.param_groups:
        if group.get("capturable"):
            raise StowageError("an optimizer that is capturable runs on the GPU alone",
                               "make it with capturable=False")


def move_optimizer(optimizer: torch.optim.Optimizer, instead: dict[int, torch.Tensor],
                   device: str | None) -> None:
    """Puts `instead[id(parameter)]` in each parameter's place, and its state on that device (None: the
    parameter's own)."""
    for group in optimizer.param_groups:
        for index, old in enumerate(group["params"]):
            new = instead.get(id(old))
            if new is None:
                continue
            group["params"][index] = new
            if old not in optimizer.state:
                continue
            state = optimizer.state.pop(old)
            target = device if device is not None else new.device
            # Counters of steps lie on the CPU as it is, except for fused optimizers.
            optimizer.state[new] = {
                name: value.to(target) if isinstance(value, torch.Tensor) and (
                    device is not None or value.dim() > 0 or group.get("fused")) else value
                for name, value in state.items()}
