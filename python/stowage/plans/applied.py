"""A plan that is carried out: `apply` returns an Applied.

Saved-tensor hooks belong to the thread that calls apply. Of several plans in one thread (two models of a
GAN) one pair of hooks serves all: a tensor belongs to the plan whose model is running, outside of every
module to the one whose model ran last.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import torch

from stowage.errors import StowageError
from stowage.plans.allocator import warn_of_settings
from stowage.plans.chunks import ChunkedCalls
from stowage.plans.events import Events
from stowage.plans.module_calls import ModuleCalls, check_callable
from stowage.plans.no_hooks import stepping_aside
from stowage.plans.offload import Offloading
from stowage.plans.plan_file import Plan, PlanLike, read_plan
from stowage.plans.region_names import region_of
from stowage.plans.regions import Regions
from stowage.plans.saved_names import path_of_key
from stowage.plans.stash import SavedHandle
from stowage.plans.stream import StreamedModules
from stowage.plans.stream_places import StreamPlaces, move_staying
from stowage.plans.update_places import UpdatePlaces
from stowage.shown import printable_line
from stowage.trace.modules import ModuleStack, runs_in_sequence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Models: TypeAlias = "torch.nn.Module | dict[str, torch.nn.Module]"
Optimizers: TypeAlias = "torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None"
DEVICES = ("cuda", "cpu")


class Applied:
    """A plan at work. `remove()`, or the end of a `with` block, ends it; what the graph of a step still
    needs stays until that is gone. `bytes_out`, `bytes_back`: moved to the host and back so far.
    `fell_back`: tensors that the plan offloads and that were kept on the device, and `first_reason` why
    the first was; "" where none was."""

    def __init__(self, plan: Plan, roots: dict[str, torch.nn.Module],
                 optimizers: list[torch.optim.Optimizer], device: torch.device | None = None) -> None:
        self.plan, self.roots = plan, roots
        self.modules = ModuleStack(roots)
        self.events = Events()
        self.offloading = Offloading(plan, lambda: self.modules.path, self.device_type, self.own_tensors,
                                     self.events)
        by_path = {self.modules.names[id(part)]: uncompiled(part) for root in roots.values()
                   for part in root.modules()}
        check_plan(plan, by_path)
        self.streamed = self.streaming(by_path, device)
        self.offloading.streamed = self.streamed if self.streamed.blocks else None
        regions = Regions([region_of(name) for name in plan.checkpoint], by_path,
                          self.offloading.within_region)
        self.calls = ModuleCalls(regions, self.streamed, self.chunked(), self.offloading)
        warn_of_settings(plan, self.device_type())
        self.stepped: set[int] = set()  # optimizers, in this round
        self.seen: set[int] = set()  # entries, in this round
        self.stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            stack.callback(self.streamed.end)
            stack.enter_context(self.modules.watched())
            stack.enter_context(self.calls.watched())
            stack.enter_context(stepping_aside(HOOKS))
            self.updates = UpdatePlaces(plan, roots, optimizers, self.events,
                                        self.offloading.note_fallback)
            stack.enter_context(self.updates.at_work())
            for optimizer in optimizers:
                stack.callback(optimizer.register_step_post_hook(self.after_step).remove)
            HOOKS.add(self)
            stack.callback(HOOKS.remove, self)
            self.stack = stack.pop_all()

    def streaming(self, by_path: dict[str, torch.nn.Module],
                  device: torch.device | None) -> StreamedModules:
        """The plan's streamed blocks. `device`: where everything else goes; None: where it is."""
        names = {name for planned in self.plan.stream for name in planned.parameters}
        places = StreamPlaces(self.plan, self.roots, by_path)
        there = device or next((one.device for name, one in places.parameters.items()
                                if name not in names), None) or next(
                                    (one.device for one in places.parameters.values()),
                                    torch.device("cpu"))
        is_real = there.type == "cuda" and not torch._guards.detect_fake_mode()
        blocks = places.blocks(pinned=is_real)
        if is_real and blocks and torch.cuda.is_initialized():
            torch.cuda.empty_cache()  # segments that the parameters leave hold no piece
        streamed = StreamedModules(blocks, there, self.events, self.offloading.note_fallback)
        try:
            if device is not None:
                move_staying(self.roots, blocks, device)
        except BaseException:
            streamed.end()
            raise
        return streamed

    def chunked(self) -> dict[int, tuple[torch.nn.Module, ChunkedCalls]]:
        """The model whose inference runs in parts."""
        chunks, batch = self.plan.chunks, self.plan.micro_batch
        if chunks is None or batch is None:
            return {}
        if len(self.roots) > 1:
            raise StowageError(f"{self.plan.source} runs a model in parts, and apply got "
                               f"{len(self.roots)} models", "give it the one that was recorded")
        root = next(iter(self.roots.values()))
        check_callable(type(root).__name__, root, "run in parts", "parts of the batch")
        return {id(root): (root, ChunkedCalls(chunks, batch // chunks.parts,
                                              self.offloading.note_fallback))}

    def device_type(self) -> str:
        if self.streamed.blocks:
            return str(self.streamed.device.type)
        tensor = next((tensor for root in self.roots.values() for tensor in root.parameters()), None)
        return "cpu" if tensor is None else tensor.device.type

    def own_tensors(self) -> list[torch.Tensor]:
        return [tensor for root in self.roots.values()
                for tensor in (*root.parameters(), *root.buffers())]

    def after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """A round ends where an optimizer steps that has stepped in it: several step in turn."""
        if id(optimizer) in self.stepped:
            self.offloading.check_seen(self.seen)
            self.stepped, self.seen = set(), set()
        self.stepped.add(id(optimizer))
        self.seen |= self.offloading.step_ended()

    @property
    def bytes_out(self) -> int:
        return self.events.bytes_out

    @property
    def bytes_back(self) -> int:
        return self.events.bytes_back

    @property
    def fell_back(self) -> int:
        return self.offloading.fell_back

    @property
    def first_reason(self) -> str:
        return self.offloading.first_reason

    def remove(self) -> None:
        """Ends it. A second call does nothing."""
        if self.offloading.is_off:
            return
        if self.stepped:
            self.offloading.check_seen(self.seen)
        self.offloading.is_off = True
        self.stack.close()
        self.offloading.pools.clear()  # they live while the graph of a step needs them

    def __enter__(self) -> Applied:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class ThreadHooks(threading.local):
    """The plans that are applied in this thread, and the hooks that serve them. Hooks of others may be
    pushed between two plans; then there is another pair of ours above them. `levels` are the numbers of
    our pairs, from below."""

    def __init__(self) -> None:
        self.applied: list[Applied] = []
        self.latest: Applied | None = None  # whose model ran last
        self.pair = (self.pack, self.unpack)  # one object each, to be found again
        self.levels: list[int] = []
        self.level_of: dict[int, int] = {}  # {id of an Applied: the pair that it needs}

    def is_ours(self, pair: tuple[Any, Any] | None) -> bool:
        return pair is not None and pair[0] is self.pair[0]

    def add(self, applied: Applied) -> None:
        if not self.is_ours(torch._C._autograd._top_saved_tensors_default_hooks(True)):
            torch._C._autograd._push_saved_tensors_default_hooks(*self.pair)
            self.levels.append(self.levels[-1] + 1 if self.levels else 0)
        self.applied.append(applied)
        self.level_of[id(applied)] = self.levels[-1]

    def remove(self, applied: Applied) -> None:
        """In another thread than that of `add` the hooks stay where they are, and do nothing."""
        if applied not in self.applied:
            return
        self.applied.remove(applied)
        self.latest = None
        level = self.level_of.pop(id(applied))
        if level not in self.level_of.values():
            self.pop(len(self.levels) - self.levels.index(level))
            self.levels.remove(level)

    def pop(self, number: int) -> None:
        """Takes our pair of that number, counted from above and from 1 on, out of autograd's stack."""
        above = []
        while (top := torch._C._autograd._top_saved_tensors_default_hooks(True)) is not None:
            torch._C._autograd._pop_saved_tensors_default_hooks()
            number -= self.is_ours(top)
            if number == 0:
                break
            above.append(top)
        for pair in reversed(above):
            torch._C._autograd._push_saved_tensors_default_hooks(*pair)

    @contextlib.contextmanager
    def set_aside(self) -> Iterator[None]:
        """Our pairs that lie on top of autograd's stack are off it within."""
        taken = 0
        while self.is_ours(torch._C._autograd._top_saved_tensors_default_hooks(True)):
            torch._C._autograd._pop_saved_tensors_default_hooks()
            taken += 1
        try:
            yield
        finally:
            for _ in range(min(taken, len(self.levels))):  # a plan may have ended within
                torch._C._autograd._push_saved_tensors_default_hooks(*self.pair)

    def chosen(self) -> Applied:
        """The one to which a tensor belongs that is saved now."""
        for applied in reversed(self.applied):
            if applied.modules.path:
                self.latest = applied
                return applied
        return self.latest or self.applied[-1]

    def pack(self, tensor: torch.Tensor) -> Any:
        if not self.applied:  # backward's threads: what they save has no key
            return SavedHandle(None, tensor, None, None)
        applied = self.applied[0] if len(self.applied) == 1 else self.chosen()
        return applied.offloading.pack(tensor)

    def unpack(self, handle: SavedHandle) -> torch.Tensor:
        if handle.session is None:
            return handle.kept_tensor()
        found: torch.Tensor = handle.session.unpack(handle)
        return found


HOOKS = ThreadHooks()


def uncompiled(module: torch.nn.Module) -> torch.nn.Module:
    """What torch.compile was given, where the module is its result."""
    is_result = type(module).__name__ == "OptimizedModule"
    found: torch.nn.Module = module._orig_mod if is_result else module
    return found


def check_plan(plan: Plan, by_path: dict[str, torch.nn.Module]) -> None:
    """Raises StowageError for a plan that names modules which the models do not have."""
    for key in keys_of(plan):
        path = path_of_key(key)
        if path and path not in by_path and path not in plan.checkpoint:
            refuse_model(plan, f"its tensor '{key}' is of a module '{path}'")
    for name in plan.checkpoint:
        region = region_of(name)
        if region.path not in by_path:
            refuse_model(plan, f"it checkpoints a module '{region.path}'")
        module = by_path[region.path]
        check_callable(region.path, module, "checkpointed", "checkpoints")
        if region.row is None:
            continue
        if not runs_in_sequence(module):
            refuse_model(plan, f"it checkpoints '{name}', children in a row of an nn.Sequential")
        if region.row[1] > len(module._modules):
            refuse_model(plan, f"it checkpoints the children '{name}'")


def refuse_model(plan: Plan, difference: str) -> NoReturn:
    raise StowageError(f"{plan.source} is for another model ('{plan.model}'): {difference}, which this "
                       "model does not have", "record this model's step, and plan it")


def keys_of(plan: Plan) -> Iterable[str]:
    for entry in plan.offload:
        yield from (one.key for one in entry.saved)
        yield from (key for key in (entry.release, entry.fetch) if key is not None)


def roots_of(model: Any) -> dict[str, torch.nn.Module]:
    """{prefix: model}, by the rule of recordings: one model has no prefix. What DistributedDataParallel
    wraps stands for it."""
    models = model if isinstance(model, dict) else {"": model}
    for name, one in models.items():
        if not isinstance(one, torch.nn.Module) or not isinstance(name, str):
            raise StowageError(f"apply takes a model, or {{name: model}}, not a {type(one).__name__}")
    if not models:
        raise StowageError("apply takes a model, and got none")
    whole = {name: one.module if isinstance(one, torch.nn.parallel.DistributedDataParallel) else one
             for name, one in models.items()}
    return {"": next(iter(whole.values()))} if len(whole) == 1 else whole


def check_replicas(model: Any, plan: Plan) -> None:
    """DistributedDataParallel shares a gradient among processes after hooks have seen it."""
    for one in model.values() if isinstance(model, dict) else (model,):
        moves = plan.early_updates or plan.gradients_in_flight is not None
        if moves and isinstance(one, torch.nn.parallel.DistributedDataParallel):
            raise StowageError(f"{plan.source} takes gradients as they come, before "
                               "DistributedDataParallel has summed those of all processes",
                               "make a plan with neither early updates nor an optimizer on the CPU")


def optimizers_of(optimizer: Any) -> list[torch.optim.Optimizer]:
    found = [] if optimizer is None else (
        list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer])
    # A wrapper (accelerate's) calls the optimizer that it holds.
    found = [one if hasattr(one, "_optimizer_step_post_hooks") else getattr(one, "optimizer", one)
             for one in found]
    for one in found:
        if not hasattr(one, "_optimizer_step_post_hooks"):
            raise StowageError(f"apply takes optimizers of torch.optim, not a {type(one).__name__}",
                               "give it the optimizer itself, or None")
    return found


def applied_plan(model: Models, optimizer: Optimizers, plan: PlanLike,
                 device: torch.device | str | None = None) -> Applied:
    """See stowage.apply."""
    read = read_plan(plan)
    check_replicas(model, read)
    roots, optimizers = roots_of(model), optimizers_of(optimizer)
    target = None if device is None else device_of(device)
    for root in roots.values():
        for name, tensor in root.named_parameters():
            if tensor.device.type not in (*DEVICES, "meta"):
                raise StowageError(f"{name} is on {tensor.device}: plans are carried out on cuda and cpu")
    return Applied(read, roots, optimizers, target)


def device_of(device: Any) -> torch.device:
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise StowageError(f"'{printable_line(str(device)[:40])}' is no device",
                           "device=\"cuda\", or \"cpu\"") from None
    if found.type not in DEVICES:
        raise StowageError(f"plans are carried out on cuda and cpu, not on {found}")
    return found
