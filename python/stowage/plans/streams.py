"""Copies of storages to host memory and back, beside the computation.

On CUDA each direction has a stream of its own, which first waits for what the compute stream has queued:

    compute   | kernel that writes x |  ......................  | wait(event) | x is let go, reused
    out                              | copy x to the host | event

    compute   | x is allocated | kernels that do not read x ... | wait(event) | kernel that reads x
    back                       | copy x from the host | event

Memory is allocated, and let go, in the compute stream's order: it is never let go before that stream
waits for the copy, so that no Tensor.record_stream is needed, which would keep memory for an unknown
time. On the pretended device (stowage/pretend) the same calls are made and nothing is copied. On the CPU
copies are plain ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence


class Copies(Protocol):
    """Both directions; `back` allocates, and so does `back_together`, one tensor for all buffers, one
    behind the other; `into` does not. Tensors of both are of bytes and one-dimensional. What the copies
    return besides is for `wait`, which lets the stream that computes now wait for the copy's end."""

    def out(self, source: torch.Tensor, buffer: torch.Tensor) -> Any: ...

    def back(self, buffer: torch.Tensor) -> tuple[torch.Tensor, Any]: ...

    def back_together(self, buffers: Sequence[torch.Tensor]) -> tuple[torch.Tensor, Any]: ...

    def into(self, buffer: torch.Tensor, target: torch.Tensor) -> Any: ...

    def wait(self, copy: Any) -> None: ...


class PlainCopies:
    """Of a step that runs on the CPU: a copy has ended when it returns."""

    def out(self, source: torch.Tensor, buffer: torch.Tensor) -> None:
        buffer.copy_(source)

    def back(self, buffer: torch.Tensor) -> tuple[torch.Tensor, None]:
        return buffer.clone(), None

    def back_together(self, buffers: Sequence[torch.Tensor]) -> tuple[torch.Tensor, None]:
        return torch.cat(list(buffers)), None

    def into(self, buffer: torch.Tensor, target: torch.Tensor) -> None:
        target.copy_(buffer)

    def wait(self, copy: None) -> None:
        del copy


class StreamCopies:
    """Of a step on one CUDA device. Buffers are pinned."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.out_stream = torch.cuda.Stream(device=device)
        self.back_stream = torch.cuda.Stream(device=device)

    def out(self, source: torch.Tensor, buffer: torch.Tensor) -> torch.cuda.Event:
        return self.copy(self.out_stream, buffer, source)

    def back(self, buffer: torch.Tensor) -> tuple[torch.Tensor, torch.cuda.Event]:
        target = torch.empty(buffer.shape, dtype=torch.uint8, device=self.device)
        return target, self.copy(self.back_stream, target, buffer)

    def back_together(self, buffers: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.cuda.Event]:
        target = torch.empty(sum(one.numel() for one in buffers), dtype=torch.uint8, device=self.device)
        parts = target.split([one.numel() for one in buffers])
        return target, self.copy_all(self.back_stream, parts, buffers)

    def into(self, buffer: torch.Tensor, target: torch.Tensor) -> torch.cuda.Event:
        return self.copy(self.back_stream, target, buffer)

    def copy(self, stream: torch.cuda.Stream, target: torch.Tensor,
             source: torch.Tensor) -> torch.cuda.Event:
        return self.copy_all(stream, [target], [source])

    def copy_all(self, stream: torch.cuda.Stream, targets: Sequence[torch.Tensor],
                 sources: Sequence[torch.Tensor]) -> torch.cuda.Event:
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            for target, source in zip(targets, sources):
                target.copy_(source, non_blocking=True)
            event = torch.cuda.Event()
            event.record(stream)
        return event

    def wait(self, copy: torch.cuda.Event) -> None:
        torch.cuda.current_stream(self.device).wait_event(copy)


def copies_for(device: torch.device) -> Copies:
    return StreamCopies(device) if device.type == "cuda" else PlainCopies()
