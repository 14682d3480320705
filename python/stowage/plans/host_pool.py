"""Host memory for the storages that a plan offloads: a slot for each, allocated once.

On CUDA the slots lie in one piece of pinned memory. PyTorch's own pinned allocations are rounded up to
powers of two (2.25 GiB take 4), and each takes milliseconds in the middle of a step; so the piece is
ordinary memory, which is registered with the driver, in the first pass and never again.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch

from stowage.errors import StowageError

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = 4096  # bytes; slots begin at multiples of it
PORTABLE = 1  # cudaHostRegisterPortable: pinned for every device of the process


def rounded(size: int) -> int:
    return -(-size // PAGE) * PAGE


class PinnedMemory:
    """Memory that the driver knows, for as long as this object lives. `tensor` has its bytes. Raises
    StowageError where the driver cannot pin as much."""

    def __init__(self, size: int) -> None:
        whole = torch.empty(rounded(size) + PAGE, dtype=torch.uint8, device="cpu")
        shift = -whole.data_ptr() % PAGE
        self.tensor = whole[shift:shift + size]
        self.registered = False
        code = int(torch.cuda.cudart().cudaHostRegister(self.tensor.data_ptr(), rounded(size), PORTABLE))
        if code:
            raise StowageError(f"the driver cannot pin {size} bytes of host memory (CUDA error {code})",
                               "make a plan that offloads less, or raise the limit of locked memory")
        self.registered = True

    def __del__(self) -> None:
        if getattr(self, "registered", False):
            with contextlib.suppress(AttributeError, RuntimeError, TypeError):  # as the process ends
                torch.cuda.synchronize()  # a copy may still read it
                torch.cuda.cudart().cudaHostUnregister(self.tensor.data_ptr())


class HostPool:
    """A slot of so many bytes for each entry of `sizes`. `pinned`: in one piece of pinned memory; else
    each is allocated when it is first taken."""

    def __init__(self, sizes: Sequence[int], pinned: bool) -> None:
        self.sizes = list(sizes)
        self.taken = [False] * len(self.sizes)
        self.slots: list[torch.Tensor | None] = [None] * len(self.sizes)
        self.memory = PinnedMemory(sum(rounded(size) for size in self.sizes)) if pinned and any(
            self.sizes) else None
        if self.memory is not None:
            begin = 0
            for index, size in enumerate(self.sizes):
                self.slots[index] = self.memory.tensor[begin:begin + size]
                begin += rounded(size)

    def take(self, index: int, size: int) -> torch.Tensor | None:
        """The first `size` bytes of the slot, which is taken until `give_back`; None: it is taken, or
        smaller."""
        if self.taken[index] or size > self.sizes[index]:
            return None
        self.taken[index] = True
        slot = self.slots[index]
        if slot is None:
            slot = self.slots[index] = torch.empty(self.sizes[index], dtype=torch.uint8, device="cpu")
        return slot[:size]

    def give_back(self, index: int) -> None:
        self.taken[index] = False
