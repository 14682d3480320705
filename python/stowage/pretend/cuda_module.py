"""torch.cuda says that there is one device, of the pretended compute capability.

Scripts choose their device by torch.cuda.is_available(), autocast and GradScaler switch themselves
off without one, and figures of memory are printed along the way: all of them find an answer.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

PRETENDED_BYTES = 80 * 2 ** 30


class DeviceProperties:
    """What torch.cuda.get_device_properties returns."""

    def __init__(self, capability: tuple[int, int]) -> None:
        self.major, self.minor = capability
        self.name = "pretended by stowage.record"
        self.total_memory = PRETENDED_BYTES
        self.multi_processor_count = 108
        self.warp_size = 32
        self.regs_per_multiprocessor = 65536
        self.max_threads_per_multi_processor = 2048
        self.shared_memory_per_block = 49152
        self.shared_memory_per_block_optin = 166912
        self.L2_cache_size = 40 * 2 ** 20
        self.is_integrated = self.is_multi_gpu_board = 0
        self.gcnArchName = ""


class FakeEvent:
    """A torch.cuda.Event or Stream that measures no time."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        self.device = None

    def elapsed_time(self, _other: object) -> float:
        return 0.0

    def query(self) -> bool:
        return True

    def _nothing(self, *_arguments: Any, **_options: Any) -> None:
        return None

    record = wait = synchronize = wait_stream = wait_event = record_event = _nothing

    def __enter__(self) -> FakeEvent:
        return self

    def __exit__(self, *_error: object) -> None:
        return None


def cuda_answers(capability: tuple[int, int]) -> dict[str, Any]:
    """{name in torch.cuda: what it is while a device is pretended}."""
    nothing = {name: lambda *_arguments, **_options: None
               for name in ("_lazy_init", "init", "synchronize", "empty_cache", "set_device",
                            "reset_peak_memory_stats", "reset_max_memory_allocated", "manual_seed",
                            "manual_seed_all", "ipc_collect")}
    zero = {name: lambda *_arguments, **_options: 0
            for name in ("current_device", "memory_allocated", "max_memory_allocated",
                         "memory_reserved", "max_memory_reserved", "utilization")}
    return {
        **nothing, **zero,
        "is_available": lambda: True,
        "is_current_stream_capturing": lambda: False,
        "is_initialized": lambda: False,  # fake tensors would ask for the current device
        "device_count": lambda: 1,
        "get_device_capability": lambda _device=None: capability,
        "get_device_name": lambda _device=None: DeviceProperties(capability).name,
        "get_device_properties": lambda _device=None: DeviceProperties(capability),
        "is_bf16_supported": lambda *_arguments, **_options: capability >= (8, 0),
        "mem_get_info": lambda _device=None: (PRETENDED_BYTES, PRETENDED_BYTES),
        "memory_stats": lambda _device=None: {},
        "Event": FakeEvent, "Stream": FakeEvent,
        "current_stream": FakeEvent, "default_stream": FakeEvent,
        "stream": lambda _stream: contextlib.nullcontext(),
        "device": lambda _device: contextlib.nullcontext(),
    }


def accelerator_answers(torch: ModuleType) -> dict[str, Any]:
    """The same for torch.accelerator."""
    return {"is_available": lambda: True, "device_count": lambda: 1,
            "current_device_index": lambda: 0, "synchronize": lambda *_arguments: None,
            "current_accelerator": lambda *_arguments, **_options: torch.device("cuda")}


@contextlib.contextmanager
def cuda_module(capability: tuple[int, int]) -> Iterator[None]:
    """While active, torch.cuda answers for a device."""
    import torch

    with contextlib.ExitStack() as stack:
        for module, replaced in ((torch.cuda, cuda_answers(capability)),
                                 (torch.accelerator, accelerator_answers(torch))):
            for name, answer in replaced.items():
                if hasattr(module, name):
                    stack.enter_context(mock.patch.object(module, name, answer))
        stack.enter_context(mock.patch.object(torch.Tensor, "pin_memory",
                                              lambda tensor, *_arguments: tensor))
        stack.enter_context(mock.patch.object(torch.Tensor, "record_stream",
                                              lambda _tensor, _stream: None))
        yield
