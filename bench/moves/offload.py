"""Two ways to hold less of a step on the GPU, as people write them by hand; for costs.py alone.

`Streams` offloads what autograd saves: one stream each way, events instead of record_stream, buffers of
pinned memory that are used again from step to step, and uploads that run ahead of backward. It is no
product: `costs.py` asks what such a scheme can reach at best.
"""

from __future__ import annotations

import contextlib
from collections import deque

import torch
import torch.utils.checkpoint

_SMALLEST = 1 << 20  # bytes; smaller tensors stay
_AHEAD = 3  # tensors that are brought back before they are asked for
_UNDER_WAY = 4  # tensors whose download has not ended; they are still on the GPU
_BLOCKS = ("Bottleneck", "EncoderBlock", "GPT2Block")


def checkpoint_blocks(network: torch.nn.Module) -> None:
    """Runs each block again in backward, by torch.utils.checkpoint."""
    for module in network.modules():
        if type(module).__name__ in _BLOCKS:
            inner = module.forward
            module.forward = (lambda *words, inner=inner, **named:
                              torch.utils.checkpoint.checkpoint(inner, *words, use_reentrant=False,
                                                                **named))


class _Saved:
    """One tensor that left: its buffer, and where it is on the way back."""

    def __init__(self, buffer, like: torch.Tensor):
        self.buffer, self.like = buffer, (like.shape, like.dtype)
        self.back = self.ready = None


class Streams:
    def __init__(self, device: str):
        self.on_gpu = device == "cuda"
        self.down = torch.cuda.Stream() if self.on_gpu else None
        self.up = torch.cuda.Stream() if self.on_gpu else None
        self.free: dict[int, list[torch.Tensor]] = {}
        self.moved = self.tensors = 0

    @contextlib.contextmanager
    def step(self):
        self.order: list[_Saved | None] = []
        self.under_way: deque = deque()
        self.known: dict = {}
        self.moved = self.tensors = 0
        with torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack):
            yield
        self.order, self.known = [], {}
        self.under_way.clear()

    def _leaves(self, tensor: torch.Tensor) -> bool:
        return (tensor.is_cuda == self.on_gpu and tensor.nbytes >= _SMALLEST
                and not isinstance(tensor, torch.nn.Parameter) and tensor.is_contiguous()
                and tensor._base is None and tensor.untyped_storage().nbytes() == tensor.nbytes)

    def pack(self, tensor: torch.Tensor):
        if not self._leaves(tensor):
            return tensor
        # The key is safe while the tensor is held: until its download has ended.
        key = (tensor.data_ptr(), tensor._version, tensor.shape)
        if key in self.known:
            return self.known[key]
        buffers = self.free.setdefault(tensor.nbytes, [])
        buffer = buffers.pop() if buffers else torch.empty(
            tensor.nbytes, dtype=torch.uint8, pin_memory=self.on_gpu)
        saved = _Saved(buffer, tensor)
        target = buffer.view(tensor.dtype).view(tensor.shape)
        self.moved += tensor.nbytes
        self.tensors += 1
        if not self.on_gpu:
            target.copy_(tensor)
        else:
            self.down.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.down):
                target.copy_(tensor, non_blocking=True)
                done = self.down.record_event()
            self.known[key] = saved
            self.under_way.append((done, tensor.detach(), key))
            self._let_go()
        self.order.append(saved)
        saved.index = len(self.order) - 1
        return saved

    def _let_go(self) -> None:
        """The memory of what has been copied: the compute stream waits before it is used again."""
        while self.under_way and (len(self.under_way) > _UNDER_WAY or self.under_way[0][0].query()):
            done, _, key = self.under_way.popleft()
            torch.cuda.current_stream().wait_event(done)
            self.known.pop(key, None)

    def _bring_back(self, saved: _Saved) -> None:
        if saved.back is not None:
            return
        shape, kind = saved.like
        saved.back = torch.empty(shape, dtype=kind, device="cuda" if self.on_gpu else "cpu")
        source = saved.buffer.view(kind).view(shape)
        if not self.on_gpu:
            saved.back.copy_(source)
            return
        self.up.wait_stream(torch.cuda.current_stream())
        if self.under_way:
            self.up.wait_stream(self.down)
        with torch.cuda.stream(self.up):
            saved.back.copy_(source, non_blocking=True)
            saved.ready = self.up.record_event()

    def unpack(self, saved):
        if not isinstance(saved, _Saved):
            return saved
        self._bring_back(saved)
        for index in range(saved.index - 1, max(-1, saved.index - 1 - _AHEAD), -1):
            if self.order[index] is not None:
                self._bring_back(self.order[index])
        if saved.ready is not None:
            torch.cuda.current_stream().wait_event(saved.ready)
        if self.order[saved.index] is not None:
            self.order[saved.index] = None
            self.free[saved.buffer.numel()].append(saved.buffer)
        return saved.back
