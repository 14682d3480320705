"""The optimizer on the CPU: gradients go to host memory as they come, and the CPU updates parameters of
its own, which are copied back.

    device | backward: gradient a, gradient b, ...                        | a, b from the host
    copies |           a to the host, b to the host, ...                  | a, b to the device
    CPU    |                                          optimizer.step()

A gradient's memory is let go when two more have come, once the device has waited for its copy. In its
place `.grad` has a stand-in, which tells whether it was set to None since: the next gradient is taken as
the first one then, and is added to the one on the host otherwise. For whatever else is done with the
stand-in (clipping by the norm of all) the values come back to the device, for as long as that takes.
"""

from __future__ import annotations

import collections
import contextlib
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn
from torch.utils import _pytree as pytree

from stowage.errors import PlanWarning, StowageError
from stowage.plans.host_pool import PinnedMemory, rounded
from stowage.plans.streams import copies_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stowage.plans.events import Events

aten = torch.ops.aten


class HostGradient(torch.Tensor):
    """Stands in `.grad` for a gradient that lies on the host. It has the shape and nothing else."""

    ADDS: ClassVar[frozenset[Any]] = frozenset({aten.add_.Tensor})
    ZEROES: ClassVar[frozenset[Any]] = frozenset({aten.zero_.default, aten._foreach_zero_.default})
    LOOKS: ClassVar[frozenset[Any]] = frozenset({aten.detach.default})
    owner: HostParameter
    lies_elsewhere = True

    def __new__(cls, owner: HostParameter) -> HostGradient:
        like = owner.parameter
        made: HostGradient = torch.Tensor._make_wrapper_subclass(
            cls, like.shape, strides=like.stride(), dtype=like.dtype, device=like.device)
        made.owner = owner
        return made

    def __repr__(self) -> str:
        return f"HostGradient({tuple(self.shape)})"

    @classmethod
    def __torch_dispatch__(cls, operator: Any, types: Any, arguments: Any = (),
                           options: Any = None) -> Any:
        found = [one for one in pytree.tree_leaves((arguments, options)) if isinstance(one, cls)]
        if operator in cls.ADDS and isinstance(arguments[0], cls) and len(found) == 1 and not options:
            arguments[0].owner.arrive(arguments[1], is_first=False)
            return arguments[0]
        if operator in cls.ZEROES:
            for one in found:
                one.owner.zero()
            return arguments[0] if operator is aten.zero_.default else None
        if operator in cls.LOOKS:
            return cls(found[0].owner)
        return with_values(operator, arguments, options or {}, found)


def with_values(operator: Any, arguments: Any, options: Any, found: Sequence[HostGradient]) -> Any:
    """The operator on the gradients' values, brought to the device for it; what it writes goes back."""
    owners = {id(one.owner): one.owner for one in found}
    updates = found[0].owner.updates
    updates.say_once(f"{operator} uses gradients, which lie on the host: they come back for it")
    updates.wait_on_host()
    values = {key: owner.gradient.to(owner.parameter.device, copy=True) for key, owner in owners.items()}

    def value_of(one: Any) -> Any:
        return values[id(one.owner)] if isinstance(one, HostGradient) else one

    result = operator(*pytree.tree_map(value_of, arguments), **pytree.tree_map(value_of, options))
    written = [argument.name for argument in operator._schema.arguments
               if argument.alias_info is not None and argument.alias_info.is_write]
    given = dict(zip((argument.name for argument in operator._schema.arguments), arguments))
    for one in pytree.tree_leaves([{**given, **options}.get(name) for name in written]):
        if isinstance(one, HostGradient):
            one.owner.gradient.copy_(values[id(one.owner)])
    stand_ins = {id(values[id(one.owner)]): one for one in found}
    return pytree.tree_map(lambda one: stand_ins.get(id(one), one), result)


class HostParameter:
    """A parameter of the model, the CPU's own copy of it, and its gradient on the host."""

    def __init__(self, parameter: nn.Parameter, master: torch.Tensor, gradient: torch.Tensor,
                 updates: HostUpdates) -> None:
        self.parameter, self.updates = parameter, updates
        self.master = nn.Parameter(master)
        self.gradient = gradient

    def arrive(self, gradient: torch.Tensor, is_first: bool) -> None:
        """A gradient has come; `is_first`: `.grad` was None, so that it counts alone."""
        if is_first or self.master.grad is None:
            self.updates.copy_out(self, gradient)
            self.master.grad = self.gradient
        else:
            self.updates.wait_on_host()
            self.gradient.add_(gradient.detach().to("cpu"))

    def has_come(self, parameter: nn.Parameter) -> None:
        """After autograd has put a gradient into `.grad`."""
        gradient = parameter.grad
        if gradient is None or isinstance(gradient, HostGradient):
            return
        if gradient.layout is not torch.strided or type(gradient) is not torch.Tensor:
            if not self.updates.is_pretended(gradient):
                raise StowageError(f"a gradient of {tuple(gradient.shape)} is sparse or of a subclass: "
                                   "an update on the CPU takes plain ones", "make a plan without it")
        self.arrive(gradient, is_first=True)
        parameter.grad = HostGradient(self)

    def zero(self) -> None:
        self.updates.wait_on_host()
        self.gradient.zero_()


class HostUpdates:
    """Takes the parameters of the optimizers over, until `restore`. `in_flight`: so many gradients may
    lie on the device while they are copied. Raises StowageError for an optimizer that cannot run on
    the CPU."""

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer], in_flight: int,
                 events: Events) -> None:
        self.optimizers, self.in_flight, self.events = optimizers, in_flight, events
        for optimizer in optimizers:
            check_optimizer(optimizer)
        parameters = [one for optimizer in optimizers for group in optimizer.param_groups
                      for one in group["params"] if one.requires_grad]
        self.device = parameters[0].device if parameters else torch.device("cpu")
        self.copies = copies_for(self.device)
        self.leaving: collections.deque[tuple[torch.Tensor, Any]] = collections.deque()
        self.has_said = False
        self.last_out: Any = None
        self.last_back: Any = None
        self.memory = HostMemory(parameters, self.device)
        self.hosts = {id(one): HostParameter(one, self.memory.masters[index],
                                             self.memory.gradients[index], self)
                      for index, one in enumerate(parameters)}
        self.of_master = {id(host.master): host for host in self.hosts.values()}

    def is_pretended(self, tensor: torch.Tensor) -> bool:
        from torch._subclasses.fake_tensor import FakeTensor

        return isinstance(tensor, FakeTensor)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """The optimizers have the CPU's parameters within."""
        with contextlib.ExitStack() as stack:
            for host in self.hosts.values():
                if host.parameter.grad is not None:
                    host.has_come(host.parameter)
                stack.callback(host.parameter.register_post_accumulate_grad_hook(host.has_come).remove)
            for optimizer in self.optimizers:
                move_optimizer(optimizer, {key: host.master for key, host in self.hosts.items()}, "cpu")
                stack.callback(self.restore, optimizer)
                stack.callback(optimizer.register_step_pre_hook(self.before_step).remove)
                stack.callback(optimizer.register_step_post_hook(self.after_step).remove)
            yield

    def say_once(self, what: str) -> None:
        if not self.has_said:
            self.has_said = True
            warnings.warn(f"{what}. Further such uses are not reported", PlanWarning, stacklevel=3)

    def copy_out(self, host: HostParameter, gradient: torch.Tensor) -> None:
        if len(self.leaving) >= self.in_flight:
            self.copies.wait(self.leaving.popleft()[1])
        source = gradient.detach().contiguous()
        # The CPU may still read what is about to be overwritten: its last update has ended, since step
        # returned before this backward began.
        copy = self.copies.out(source, host.gradient)
        self.leaving.append((source, copy))
        self.last_out = copy
        self.events.note("gradient", "", gradient.numel() * gradient.element_size())

    def wait_on_host(self) -> None:
        """Until the gradients so far are on the host."""
        if self.last_out is not None and hasattr(self.last_out, "synchronize"):
            self.last_out.synchronize()

    def before_step(self, *_: Any) -> None:
        while self.leaving:
            self.copies.wait(self.leaving.popleft()[1])
        self.wait_on_host()
        if self.last_back is not None and hasattr(self.last_back, "synchronize"):
            self.last_back.synchronize()  # the CPU writes to what was copied from

    def after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups:
            for master in group["params"]:
                host = self.of_master.get(id(master))
                if host is None or master.grad is None:
                    continue
                self.last_back = self.copies.into(master.detach(), host.parameter.detach())
                self.events.note("parameter", "", master.numel() * master.element_size())
        if self.last_back is not None:
            self.copies.wait(self.last_back)

    def restore(self, optimizer: torch.optim.Optimizer) -> None:
        """The optimizer has the model's parameters again, with its state and their gradients on their
        device."""
        self.before_step()
        for host in self.hosts.values():
            if isinstance(host.parameter.grad, HostGradient):
                is_gone = host.master.grad is None
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


def check_optimizer(optimizer: torch.optim.Optimizer) -> None:
    if not type(optimizer).__module__.startswith("torch.optim"):
        raise StowageError(f"{type(optimizer).__name__} is no optimizer of torch.optim: it is not moved "
                           "to the CPU", "make a plan without an optimizer on the CPU")
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
