"""Carries out a plan's offloading: the pack and unpack hooks of autograd, and the state of a pass.

pack, once for each tensor that forward saves:
    1  name it (saved_names.py); lets go what the plan releases at this name
    2  if the plan offloads it: hold it to the plan, and put it into its storage's Stash (stash.py)
    3  if the plan starts the storage's copy at this name: begin it
unpack, once for each tensor that backward needs:
    1  the first of a pass: let go what is still to be let go
    2  begin the copies back that the plan fetches at this name
    3  answer: the tensor that was kept, or the view of the storage that is back

Whatever differs from the plan is kept on the device, as if there were no plan, and never guessed: memory
is then larger than planned, and values are the same. `Offloading.fell_back` counts it.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import torch

from stowage.document.tables import type_of
from stowage.errors import PlanWarning
from stowage.plans.dimensions import fitting_batch, shown_shape
from stowage.plans.host_pool import HostPool
from stowage.plans.plan_file import Offload, Plan, PlannedTensor
from stowage.plans.region_names import input_key
from stowage.plans.saved_names import SavedNames, is_named, runs_backward
from stowage.plans.stash import SavedHandle, Stash, State, all_bytes
from stowage.plans.streams import Copies, copies_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from stowage.plans.events import Events
    from stowage.plans.stream import StreamedModules


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether bytes, sizes, strides and an offset are all there is to the tensor, but for being a lazy
    conjugate or negative: not so for subclasses (DTensor, quantised weights), nested and sparse ones."""
    from torch._subclasses.fake_tensor import FakeTensor

    return (type(tensor) in (torch.Tensor, torch.nn.Parameter, FakeTensor) and
            tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized)


class Pass:
    """One forward pass and its backward. The graph's handles keep it alive, and nothing else does, so
    that a graph that is dropped without a backward leaves nothing behind."""

    def __init__(self, entries: int) -> None:
        self.names = SavedNames()
        self.batch: int | None = None  # samples, once a planned shape has said it
        self.stashes: dict[int, weakref.ref[Stash]] = {}  # by the entry's place in the plan
        self.kept: set[int] = set()  # entries that fell back
        self.seen: set[int] = set()  # entries of which a tensor was saved
        self.entries = entries
        self.forward_is_over = False

    def stash(self, index: int) -> Stash | None:
        found = self.stashes.get(index)
        return None if found is None else found()

    def living(self) -> list[tuple[int, Stash]]:
        return [(index, stash) for index in sorted(self.stashes)
                if (stash := self.stash(index)) is not None]

    def stash_around(self, tensor: torch.Tensor) -> Stash | None:
        """The storage of the plan in which the tensor lies, while its own tensors are held."""
        address = tensor.untyped_storage()._cdata
        for _, stash in self.living():
            if stash.address == address and stash.is_in(tensor):
                return stash
        return None


class RegionCall:
    """A call of a region that runs again, and the tensors that it is given: those of its positional
    arguments first. Some releases of PyTorch save another one besides."""

    def __init__(self, name: str, inputs: tuple[Any, ...]) -> None:
        self.name = name
        self.waiting = list(enumerate(one for one in inputs if isinstance(one, torch.Tensor)))

    def key_of(self, tensor: torch.Tensor) -> str | None:
        """The key of an argument that is being saved, each once."""
        for place, (number, one) in enumerate(self.waiting):
            if one is tensor or is_same_view(one, tensor):
                del self.waiting[place]
                return input_key(self.name, number)
        return None


def is_same_view(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(is_plain(one) and is_plain(other) and
                one.untyped_storage()._cdata == other.untyped_storage()._cdata and
                one.dtype == other.dtype and one.shape == other.shape and
                one.stride() == other.stride() and one.storage_offset() == other.storage_offset())


class Offloading:
    """The hooks. `path()` is the innermost running module's; `device_type()` the model's;
    `own_tensors()` are its parameters and buffers."""

    def __init__(self, plan: Plan, path: Callable[[], str], device_type: Callable[[], str],
                 own_tensors: Callable[[], list[torch.Tensor]], events: Events) -> None:
        self.plan, self.path, self.device_type = plan, path, device_type
        self.own_tensors, self.events = own_tensors, events
        self.lock = threading.RLock()  # backward runs in threads of its own
        self.own: dict[str, tuple[int, PlannedTensor]] = {}
        self.start_at: dict[str, list[int]] = {}
        self.release_at: dict[str, list[int]] = {}
        self.fetch_at: dict[str, list[int]] = {}
        for index, entry in enumerate(plan.offload):
            self.own.update({one.key: (index, one) for one in entry.saved})
            for table, key in ((self.start_at, entry.start), (self.release_at, entry.release),
                               (self.fetch_at, entry.fetch)):
                if key is not None:
                    table.setdefault(key, []).append(index)
        self.latest: weakref.ref[Pass] | None = None
        self.begins_anew = True
        self.device = "cpu"
        self.pools: dict[bool, HostPool] = {}
        self.copies: dict[torch.device, Copies] = {}
        self.seen: set[int] = set()  # since the optimizer's last step
        self.own_storages: set[int] = set()
        self.streamed: StreamedModules | None = None
        self.is_off = False
        self.regions: list[RegionCall] = []  # those that run now, the innermost last
        self.fell_back, self.first_reason = 0, ""

    @property
    def in_region(self) -> int:
        """How many regions run now, one in the other."""
        return len(self.regions)

    # Pack

    def pack(self, tensor: torch.Tensor) -> SavedHandle:
        if self.is_off or runs_backward():
            return SavedHandle(self, tensor, None, None)
        with self.lock:
            owner = self.pass_now()
            if self.regions:
                return self.pack_input(owner, tensor)
            if not is_named(tensor, self.device):
                return SavedHandle(self, tensor, None, None)
            handle = self.pack_named(owner, tensor, owner.names.next_key(self.path()))
            if self.streamed is not None:
                self.streamed.join(handle)
            return handle

    def pack_named(self, owner: Pass, tensor: torch.Tensor, key: str) -> SavedHandle:
        if self.events.watchers:
            self.events.note("pack", key)
        for index in self.release_at.get(key, ()):
            self.release(owner, index)
        handle = SavedHandle(self, tensor, owner, key)
        found = self.own.get(key)
        if found is not None:
            self.add(owner, handle, *found)
        for index in self.start_at.get(key, ()):
            self.start(owner, index)
        return handle

    def pack_input(self, owner: Pass, tensor: torch.Tensor) -> SavedHandle:
        """Of a region that runs again: torch.utils.checkpoint keeps its arguments. One that the plan does
        not name, in a storage that leaves, leaves with it."""
        key = self.regions[-1].key_of(tensor) if is_named(tensor, self.device) else None
        handle = (SavedHandle(self, tensor, owner, None) if key is None else
                  self.pack_named(owner, tensor, key))
        if handle.stash is None and key not in self.own and is_plain(tensor):
            stash = owner.stash_around(tensor)
            if stash is not None:
                stash.join(handle)
        return handle

    def within_region(self, name: str, inputs: tuple[Any, ...], run: Callable[[], Any]) -> Any:
        """Runs a region that runs again in backward. Until its inside begins, what is saved are its
        inputs."""
        self.regions.append(RegionCall(name, inputs))
        try:
            return run()
        finally:
            self.regions.pop()

    def pass_now(self) -> Pass:
        """The pass to which this pack call belongs: a new one after a backward, after a step of the
        optimizer, and where the graph of the last one is gone."""
        latest = None if self.latest is None else self.latest()
        if latest is None or self.begins_anew or latest.names.is_over:
            latest = Pass(len(self.plan.offload))
            self.latest = weakref.ref(latest)
            self.begins_anew = False
            self.device = self.device_type()
            self.own_storages = {tensor.untyped_storage()._cdata for tensor in self.own_tensors()
                                 if is_plain(tensor)}
            self.events.note("pass", "")
        return latest

    def add(self, owner: Pass, handle: SavedHandle, index: int, planned: PlannedTensor) -> None:
        """Puts a tensor that the plan offloads into its storage's stash; where it is not as planned,
        none of the storage leaves."""
        owner.seen.add(index)
        self.seen.add(index)
        if index in owner.kept:
            self.fell_back += 1
            return
        stash = owner.stash(index)
        reason = self.misfit(owner, handle, planned, self.plan.offload[index], stash)
        if reason:
            self.keep(owner, index, stash, reason, more=1)
            return
        if stash is None:
            assert handle.tensor is not None
            stash = Stash(self.plan.offload[index], index, handle.tensor)
            owner.stashes[index] = weakref.ref(stash)
        stash.join(handle)

    def misfit(self, owner: Pass, handle: SavedHandle, planned: PlannedTensor, entry: Offload,
               stash: Stash | None) -> str:
        """Why the tensor is not the one of the plan, or cannot leave; "": it can."""
        tensor, key = handle.tensor, planned.key
        assert tensor is not None
        if not is_plain(tensor):
            return f"{key} is a {type(tensor).__name__}, of more than bytes and sizes"
        word, factor = type_of(tensor.dtype)
        sizes = (*tensor.shape, factor) if factor > 1 else tuple(tensor.shape)
        batch = fitting_batch(planned.shape, sizes, owner.batch)
        if word != planned.dtype or batch is None:
            at = f" at batch {owner.batch}" if owner.batch else ""
            return (f"{key} is {word} {list(sizes)}{at}, and the plan has {planned.dtype} "
                    f"{shown_shape(planned.shape)}")
        owner.batch = owner.batch or batch or None
        if stash is not None and not stash.is_in(tensor):
            return f"{key} lies in another storage than {entry.saved[0].key}"
        storage = tensor.untyped_storage()
        if storage._cdata in self.own_storages:
            return f"{key} is a parameter or buffer of the model"
        owner.batch = owner.batch or entry.bytes.batch_of(storage.nbytes())
        if storage.nbytes() != entry.bytes.at(owner.batch or 0):
            return f"{key} lies in a storage of {storage.nbytes()} bytes, and the plan has {entry.bytes}"
        return ""

    def start(self, owner: Pass, index: int) -> None:
        stash = owner.stash(index)
        if stash is None or stash.state is not State.COLLECTING:
            return
        key = stash.entry.start
        members = stash.members()
        if stash.was_written:
            self.keep(owner, index, stash, f"{key} was written in place after it was saved")
            return
        tensor = members[-1].tensor
        source = all_bytes(tensor) if tensor is not None else None
        if source is None:
            self.keep(owner, index, stash,
                      f"{key} lies in a storage that is no whole number of its elements")
            return
        pool = self.pool_of(stash.entry, owner.batch)
        buffer = pool.take(index, stash.size)
        if buffer is None:
            self.keep(owner, index, stash, f"{key}: an earlier pass, whose backward has not run, has its "
                      "host memory" if pool.taken[index] else
                      f"{key} has {stash.size} bytes, and its host memory, of the first pass's batch, "
                      f"{pool.sizes[index]}")
            return
        stash.leave(source, buffer, pool, self.copies_at(stash.device))
        self.events.note("start", key, stash.size)

    def pool_of(self, entry: Offload, batch: int | None) -> HostPool:
        """The host memory of all entries that follow the batch, or of all that do not, as this one; made
        in the first pass: for its batch, or the plan's where that is larger. An entry that follows the
        batch is saved at a known one."""
        follows = entry.bytes.slope > 0
        if follows not in self.pools:
            largest = max(batch or 0, self.plan.micro_batch or 0)
            pinned = self.device == "cuda" and not torch._guards.detect_fake_mode()
            self.pools[follows] = HostPool([
                one.bytes.at(largest) if (one.bytes.slope > 0) == follows else 0
                for one in self.plan.offload], pinned)
        return self.pools[follows]

    def copies_at(self, device: torch.device) -> Copies:
        if device not in self.copies:
            self.copies[device] = copies_for(device)
        return self.copies[device]

    def release(self, owner: Pass, index: int) -> None:
        """Lets a storage go whose copy was begun."""
        stash = owner.stash(index)
        if stash is None or stash.state is not State.LEAVING:
            return
        if stash.was_written:
            self.keep(owner, index, stash,
                      f"{stash.entry.start} was written in place after its copy had begun")
            return
        stash.let_go()
        self.events.note("release", stash.entry.start, stash.size)

    def keep(self, owner: Pass, index: int, stash: Stash | None, reason: str, more: int = 0) -> None:
        """The entry falls back. `more`: tensors of it that are in no stash."""
        owner.kept.add(index)
        tensors = more
        if stash is not None and stash.is_held:  # else it is away: what left comes back
            tensors += sum(1 for handle in stash.members() if handle.key in self.own)
            stash.keep()
        self.note_fallback(tensors, reason)

    def note_fallback(self, tensors: int, reason: str,
                      what: str = "keeps tensors on the device that {} offloads") -> None:
        """Counts it, and says it if it is the first; {}: the plan."""
        self.fell_back += tensors
        if not self.first_reason:
            self.first_reason = reason
            warnings.warn(f"stowage.apply {what.format(self.plan.source)}: {reason}. Values are as "
                          "without the plan; memory is larger than planned", PlanWarning, stacklevel=4)

    # Unpack

    def unpack(self, handle: SavedHandle) -> torch.Tensor:
        owner: Pass | None = handle.owner
        with self.lock:
            if owner is not None and runs_backward() and not self.is_off:
                self.unpacked(owner, handle.key)
            if handle.visit is not None:
                return handle.visit.tensor_of(handle)
            stash = handle.stash
            if stash is None or handle.tensor is not None:
                return handle.kept_tensor()
            if stash.state is State.AWAY:
                self.fetch(stash)
            return stash.tensor_of(handle)

    def unpacked(self, owner: Pass, key: str | None) -> None:
        if not owner.forward_is_over:
            owner.forward_is_over = True
            owner.names.was_unpacked()
            self.end_forward(owner)
        if key is None:
            return
        if self.events.watchers:
            self.events.note("unpack", key)
        for index in self.fetch_at.get(key, ()):
            stash = owner.stash(index)
            if stash is not None and stash.state is State.AWAY:
                self.fetch(stash)

    def end_forward(self, owner: Pass) -> None:
        for index, stash in owner.living():
            if stash.state is State.COLLECTING:
                self.keep(owner, index, stash, f"{stash.entry.start} was not saved in this pass")
            self.release(owner, index)

    def fetch(self, stash: Stash) -> None:
        stash.fetch()
        self.events.note("fetch", stash.entry.start, stash.size)

    # Steps

    def step_ended(self) -> set[int]:
        """The optimizer stepped. Returns the entries of which a tensor was saved since it did last."""
        with self.lock:
            self.begins_anew = True
            seen, self.seen = self.seen, set()
            return seen

    def check_seen(self, seen: set[int]) -> None:
        """Says it where a step saved nothing of an entry."""
        if not self.plan.offload or len(seen) == len(self.plan.offload):
            return
        if not seen:
            self.note_fallback(0, "a step saved none of the plan's tensors: does it run in another "
                               "thread, or inside of other saved_tensors_hooks?")
            return
        missing = next(entry for index, entry in enumerate(self.plan.offload) if index not in seen)
        self.note_fallback(0, f"{missing.start} was not saved: the step differs from the recorded one")
