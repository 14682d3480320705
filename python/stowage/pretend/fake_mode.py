"""FakeTensorMode without a device, and CUDA's device guard as it was, afterwards.

Where torch.cuda says that there is a device, FakeTensorMode makes a real tensor on it first:
`fake_tensors` prevents that. Without devices FakeTensorMode replaces the device guard by one that does
nothing, for the rest of the process: c10's registry of guards holds another pointer then. On a machine
with a GPU that would be wrong after the recording: `device_guard_restored` puts the pointer back.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch._subclasses.fake_tensor import FakeTensorMode

REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
FAKE_TENSOR_LOG = "torch._subclasses.fake_tensor"
CUDA_DEVICE_TYPE = 1  # c10::DeviceType::CUDA


def guards() -> ctypes.Array[ctypes.c_void_p]:
    """c10's registry, as far as CUDA's entry."""
    import torch

    library = ctypes.CDLL(torch._C.__file__)  # depends on libc10, where the registry lies
    return (ctypes.c_void_p * (CUDA_DEVICE_TYPE + 1)).in_dll(library, REGISTRY)


@contextlib.contextmanager
def device_guard_restored() -> Iterator[None]:
    """While active, the guard may be replaced; afterwards it is the one of before."""
    registry = guards()
    before = registry[CUDA_DEVICE_TYPE]
    try:
        yield
    finally:
        registry[CUDA_DEVICE_TYPE] = before


@contextlib.contextmanager
def exceptions_not_logged() -> Iterator[None]:
    """While active, PyTorch logs no exception on its way, as FakeTensorMode does before it raises: the
    exception's receiver says what there is to say. STOWAGE_TRACEBACK leaves the log as it is."""
    if os.environ.get("STOWAGE_TRACEBACK"):
        yield
        return

    def without_exception(record: logging.LogRecord) -> bool:
        return record.exc_info is None

    logger = logging.getLogger(FAKE_TENSOR_LOG)
    logger.addFilter(without_exception)
    try:
        yield
    finally:
        logger.removeFilter(without_exception)


def made_on_cpu_first() -> None:
    """torch.tensor(..., device="cuda") makes its tensor on the CPU and moves it, where it else asks the
    device for memory. FakeTensorMode has it so in the thread that enters the mode. A region that runs
    again, and a function's own backward, run in a thread of autograd's; there it stays so, which changes
    no tensor."""
    import torch

    if not torch._C._only_lift_cpu_tensors():
        torch._C._set_only_lift_cpu_tensors(True)


@contextlib.contextmanager
def fake_tensors() -> Iterator[FakeTensorMode]:
    """While active, tensors are fake; yields the mode."""
    import torch
    import torch._subclasses.fake_tensor as fake_tensor
    from torch.utils._pytree import tree_leaves, tree_map_only

    from stowage.pretend.known_values import READS, UNKNOWN, KnownValues

    class WithoutDevice(fake_tensor.FakeTensorMode):
        avoid_device_init = True
        known = KnownValues()

        def dispatch(self, func: Any, types: Sequence[type], args: Sequence[Any] = (),
                     kwargs: Mapping[str, Any] = MappingProxyType({})) -> Any:
            made_on_cpu_first()
            value = self.known.value_of_call(func, args, kwargs)
            if func is READS and value is not UNKNOWN:
                return value
            try:
                result = super().dispatch(func, types, args, kwargs)
            except fake_tensor.DynamicOutputShapeException:
                if value is UNKNOWN:
                    raise
                result = self.as_fake(value, args)
            if value is UNKNOWN:
                self.known.forget_written(func, args, kwargs)
                value = self.known.filled(func, args, kwargs, result)
            if value is not UNKNOWN:
                self.known.note(result, value)
            return result

        def as_fake(self, values: Any, args: Sequence[Any]) -> Any:
            """Fake tensors of the values' sizes, on the device of the arguments."""
            device = next(one.device for one in tree_leaves(args) if isinstance(one, torch.Tensor))

            def fake(value: torch.Tensor) -> torch.Tensor:
                made = self.fake_tensor_converter.from_real_tensor(self, value)
                made.fake_device = device
                return made

            return tree_map_only(torch.Tensor, fake, values)

    # Torch makes a real tensor on the device first, where torch.cuda.is_available().
    with mock.patch.object(fake_tensor, "init_gpu_context", lambda _device: None):
        with exceptions_not_logged(), WithoutDevice(allow_non_fake_inputs=True) as mode:
            # What FakeTensorMode remembers of an operator forgets storages larger than their
            # tensors, such as the gradient of attention's mask, whose rows have 16 elements.
            mode.cache_enabled = False
            yield mode
