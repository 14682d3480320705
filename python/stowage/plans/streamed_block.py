"""A block whose parameters lie in host memory, and are on the device while it runs.

On the device they are one piece of memory, in which each begins at a multiple of 512 bytes, as
PyTorch's allocator would place it: kernels choose by alignment. On the host each has memory of its own,
so that a saved state_dict has no tensors that share any. The parameter itself stays the same object,
whose `data` is the host's. While the block runs, views of the piece stand in its place in the modules:
whatever keeps one of them (torch.utils.checkpoint, in a second run) keeps the piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stowage.plans.host_pool import PinnedMemory
from stowage.plans.stash import version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stowage.plans.plan_file import Streamed
    from stowage.plans.streams import Copies

ALIGNMENT = 512  # bytes: kMinBlockSize of PyTorch's caching allocator


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def size_of(tensor: torch.Tensor) -> int:
    size: int = tensor.numel() * tensor.element_size()
    return size


def put_data(parameter: torch.Tensor, data: torch.Tensor) -> None:
    """The parameter has the contents of `data`, and stays the same object. Its version stays, too."""
    from torch._subclasses.fake_tensor import FakeTensor

    parameter.data = data
    if isinstance(parameter, FakeTensor):
        parameter.fake_device = data.fake_device


class HostCopy:
    """A parameter's memory on the host: `bytes`, a multiple of 512, of which `data` sees the parameter,
    laid out as it was."""

    def __init__(self, parameter: torch.Tensor, pinned: bool) -> None:
        size = aligned(size_of(parameter))
        self.memory = PinnedMemory(size) if pinned else None
        self.bytes = self.memory.tensor if self.memory is not None else (
            torch.empty(size, dtype=torch.uint8, device="cpu"))
        self.dtype, self.shape, self.strides = parameter.dtype, parameter.shape, parameter.stride()
        self.used = size_of(parameter)
        self.data = self.seen_in(self.bytes)
        self.data.copy_(parameter.detach())

    def seen_in(self, piece: torch.Tensor) -> torch.Tensor:
        """The parameter in a piece of so many bytes."""
        return piece[:self.used].view(self.dtype).as_strided(
            self.shape, self.strides, piece.storage_offset() // self.dtype.itemsize)

    def is_in(self, parameter: torch.Tensor) -> bool:
        return bool(parameter.untyped_storage()._cdata == self.data.untyped_storage()._cdata)


class Upload:
    """A block's parameters on the device, once `wait` was called. The memory is not let go before the
    compute stream has waited for the copy that writes it."""

    def __init__(self, block: StreamedBlock, copies: Copies) -> None:
        self.copies, self.versions = copies, block.versions()
        self.piece, self.copy = copies.back_together([host.bytes for host in block.hosts])
        self.waits = True

    def wait(self) -> None:
        if self.waits:
            self.waits = False
            self.copies.wait(self.copy)

    def __del__(self) -> None:
        if getattr(self, "waits", False):
            self.wait()


class StreamedBlock:
    """One entry of a plan's `stream`. `parameters`: {whole name: the parameter}; `owners`: the places
    where they stand, (module, name, parameter)."""

    def __init__(self, planned: Streamed, module: torch.nn.Module,
                 parameters: dict[str, torch.nn.Parameter],
                 owners: Sequence[tuple[torch.nn.Module, str, torch.nn.Parameter]], pinned: bool) -> None:
        self.planned, self.module, self.owners = planned, module, owners
        self.names, self.parameters = list(parameters), list(parameters.values())
        self.homes = [parameter.device for parameter in self.parameters]
        self.hosts = [HostCopy(parameter, pinned) for parameter in self.parameters]
        for parameter, host in zip(self.parameters, self.hosts):
            put_data(parameter, host.data)
        self.is_settled = False  # its parameters are on the device for good, or where they came from
        self.depth = 0  # so often its forward runs now
        self.views: dict[int, torch.Tensor] = {}  # in the parameters' places, by their ids
        self.writes = 0  # how often values came to the host that no version of a parameter tells of

    @property
    def path(self) -> str:
        return self.planned.module

    def versions(self) -> list[int]:
        """Equal as long as no value of a parameter has changed."""
        return [self.writes, *(version_of(parameter) for parameter in self.parameters)]

    def misfit(self) -> str:
        """Why the parameters are not those that are on the host; "": they are. Values that were put in
        their place since are taken over."""
        for place, name, parameter in self.owners:
            if place._parameters.get(name) is not parameter:
                return f"the parameter '{name}' of {self.path} was replaced by another one"
        for name, parameter, host in zip(self.names, self.parameters, self.hosts):
            if host.is_in(parameter):
                continue
            if parameter.dtype != host.dtype or parameter.shape != host.shape:
                return f"'{name}' has another type or shape than when the plan was applied"
            host.data.copy_(parameter.detach())
            put_data(parameter, host.data)
            self.writes += 1
        return ""

    def put_on_device(self, upload: Upload) -> None:
        upload.wait()
        begin = 0
        for parameter, host in zip(self.parameters, self.hosts):
            end = begin + host.bytes.numel()
            # `data`: each view has a version of its own, which tells of writes to it alone.
            self.views[id(parameter)] = host.seen_in(upload.piece[begin:end]).data
            begin = end
        for place, name, parameter in self.owners:
            place._parameters[name] = self.views[id(parameter)]

    def put_on_host(self) -> None:
        """What was written to a parameter's view is written to the parameter."""
        for place, name, parameter in self.owners:
            if place._parameters.get(name) is self.views[id(parameter)]:
                place._parameters[name] = parameter
        for parameter, host in zip(self.parameters, self.hosts):
            if version_of(self.views[id(parameter)]) > 0:
                host.data.copy_(self.views[id(parameter)])
                self.writes += 1
        self.views.clear()

    def settle(self, device: torch.device | None) -> None:
        """Its parameters have memory of their own again, on that device (None: where each came from)."""
        self.is_settled = True
        for parameter, host, home in zip(self.parameters, self.hosts, self.homes):
            if not host.is_in(parameter):
                continue
            data = torch.empty_strided(host.shape, host.strides, dtype=host.dtype, device=device or home)
            put_data(parameter, data.copy_(host.data))


def seen_by(handle: Any, piece: torch.Tensor) -> torch.Tensor:
    """A saved tensor that was a view of a piece of the same layout."""
    elements = piece.view(handle.dtype)
    return elements.as_strided(handle.shape, handle.strides, handle.offset)
