"""A storage on its way to the host and back, and the saved tensors in it.

The autograd graph holds a SavedHandle in the place of each saved tensor, and the handles of offloaded
ones hold their Stash: it lives as long as the graph needs it, and nothing else keeps it. States:

    COLLECTING   its tensors are being saved; each handle holds its own
    LEAVING      the copy to the host was begun; the handles still hold their tensors
    AWAY         the handles hold none: the storage is let go, unless the script holds it
    BACK         memory was allocated and the copy into it was begun
    KEPT         it fell back: the handles hold their tensors to the end
"""

from __future__ import annotations

import enum
import weakref
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from stowage.plans.host_pool import HostPool
    from stowage.plans.plan_file import Offload
    from stowage.plans.stream import Visit
    from stowage.plans.streams import Copies


class State(enum.Enum):
    COLLECTING = enum.auto()
    LEAVING = enum.auto()
    AWAY = enum.auto()
    BACK = enum.auto()
    KEPT = enum.auto()


def version_of(tensor: torch.Tensor) -> int:
    """How often it was written in place; views of one tensor share the count."""
    return 0 if tensor.is_inference() else tensor._version


def held(tensor: torch.Tensor) -> torch.Tensor:
    """What is held of a tensor that is being saved. An operator's result gets its history after that:
    holding it, and not an alias, would be a circle. Where an alias would lose a subclass of Tensor, the
    tensor is an argument."""
    if tensor.requires_grad and tensor.is_leaf:
        return tensor
    alias = tensor.detach()
    return alias if type(alias) is type(tensor) else tensor


class SavedHandle:
    """What the graph holds. `tensor`: the saved one, None once its storage was let go. `owner` is the
    pass (offload.py), None: of a tensor without a key."""

    __slots__ = ("__weakref__", "dtype", "is_lazy", "key", "offset", "owner", "session", "shape", "stash",
                 "strides", "tensor", "version", "visit")

    def __init__(self, session: Any, tensor: torch.Tensor, owner: Any, key: str | None) -> None:
        self.tensor: torch.Tensor | None = held(tensor)
        self.version = version_of(self.tensor)
        self.session, self.owner, self.key = session, owner, key
        self.stash: Stash | None = None
        self.visit: Visit | None = None  # of a streamed parameter

    def remember_layout(self) -> None:
        """Notes how the tensor sees its storage, before it is let go."""
        assert self.tensor is not None
        self.dtype, self.shape = self.tensor.dtype, tuple(self.tensor.shape)
        self.strides, self.offset = self.tensor.stride(), self.tensor.storage_offset()
        self.is_lazy = (self.tensor.is_conj(), self.tensor.is_neg())

    @property
    def was_written(self) -> bool:
        """Whether the tensor was written in place since it was saved."""
        return self.tensor is not None and version_of(self.tensor) != self.version

    def kept_tensor(self) -> torch.Tensor:
        """The tensor. Raises RuntimeError where it was written in place since, as PyTorch does without
        hooks."""
        assert self.tensor is not None
        if self.was_written:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace "
                f"operation: [{self.tensor.type()} {list(self.tensor.shape)}] is at version "
                f"{version_of(self.tensor)}; expected version {self.version} instead.")
        return self.tensor


def seen_lazily(tensor: torch.Tensor, conjugate: bool, negative: bool) -> torch.Tensor:
    """The conjugate, the negative of a tensor, as a view of the same bytes; of one that is such a view,
    what lies there."""
    tensor = tensor.conj() if conjugate else tensor
    return torch._neg_view(tensor) if negative else tensor


def all_bytes(tensor: torch.Tensor) -> torch.Tensor | None:
    """The whole storage as a tensor of bytes; None where it is no whole number of the tensor's
    elements."""
    size, item = tensor.untyped_storage().nbytes(), tensor.element_size()
    if size % item:
        return None
    stored = seen_lazily(tensor.detach(), tensor.is_conj(), tensor.is_neg())
    return stored.as_strided((size // item,), (1,), 0).view(torch.uint8)


class Stash:
    """One storage of one pass. `index` is its entry's place in the plan, and its slot's in the pool."""

    def __init__(self, entry: Offload, index: int, tensor: torch.Tensor) -> None:
        self.entry, self.index = entry, index
        self.state = State.COLLECTING
        storage = tensor.untyped_storage()
        self.size = storage.nbytes()
        self.device = tensor.device
        self.storage: weakref.ref[Any] | None = weakref.ref(storage)
        self.address = storage._cdata
        self.handles: list[weakref.ref[SavedHandle]] = []
        self.pool: HostPool | None = None
        self.copies: Copies | None = None
        self.buffer: torch.Tensor | None = None
        self.copy: Any = None  # the last one that was begun
        self.waits = False  # the compute stream has not waited for it
        self.bytes: torch.Tensor | None = None  # the storage, once it is back

    def is_in(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor lies in this storage. An address alone says nothing: allocators reuse
        them."""
        if self.storage is None or self.storage() is None:
            return False
        return bool(tensor.untyped_storage()._cdata == self.address)

    @property
    def is_held(self) -> bool:
        """Whether the handles still hold their tensors."""
        return self.state in (State.COLLECTING, State.LEAVING)

    def join(self, handle: SavedHandle) -> None:
        handle.stash = self
        self.handles.append(weakref.ref(handle))

    def members(self) -> list[SavedHandle]:
        return [handle for one in self.handles if (handle := one()) is not None]

    @property
    def was_written(self) -> bool:
        return any(handle.was_written for handle in self.members())

    def leave(self, tensor: torch.Tensor, buffer: torch.Tensor, pool: HostPool, copies: Copies) -> None:
        """Begins the copy to the host; `tensor` is the storage as bytes."""
        self.pool, self.copies, self.buffer = pool, copies, buffer
        self.copy, self.waits = copies.out(tensor, buffer), True
        self.state = State.LEAVING

    def wait(self) -> None:
        if self.waits and self.copies is not None:
            self.copies.wait(self.copy)
        self.copy, self.waits = None, False

    def let_go(self) -> None:
        """Lets the compute stream wait for the copy, then drops the tensors."""
        self.wait()
        for handle in self.members():
            handle.remember_layout()
            handle.tensor = None
        self.storage = None
        self.state = State.AWAY

    def give_back_slot(self) -> None:
        """The host memory is not needed any more: nothing reads or writes it that the compute stream has
        not waited for."""
        if self.pool is not None and self.buffer is not None:
            self.buffer = None
            self.pool.give_back(self.index)

    def keep(self) -> None:
        """The handles keep their tensors."""
        self.wait()
        self.give_back_slot()
        for handle in self.members():
            handle.stash = None
        self.state = State.KEPT

    def fetch(self) -> None:
        """Allocates memory and begins the copy into it."""
        assert self.copies is not None and self.buffer is not None
        self.bytes, self.copy = self.copies.back(self.buffer)
        self.waits = True
        self.state = State.BACK

    def tensor_of(self, handle: SavedHandle) -> torch.Tensor:
        """The handle's tensor, as a view of the storage that is back."""
        assert self.bytes is not None
        self.wait()
        self.give_back_slot()
        item = handle.dtype.itemsize
        elements = self.bytes[:self.size // item * item].view(handle.dtype)
        stored = elements.as_strided(handle.shape, handle.strides, handle.offset)
        return seen_lazily(stored, *handle.is_lazy)

    def __del__(self) -> None:
        # Memory is not let go before the compute stream has waited for the copy that writes it.
        if getattr(self, "buffer", None) is not None:
            self.wait()
            self.give_back_slot()
