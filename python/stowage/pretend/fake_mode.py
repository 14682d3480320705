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
from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@contextlib.contextmanager
def fake_tensors() -> Iterator[FakeTensorMode]:
    """While active, tensors are fake; yields the mode."""
    import torch._subclasses.fake_tensor as fake_tensor

    class WithoutDevice(fake_tensor.FakeTensorMode):
        avoid_device_init = True

    # Torch makes a real tensor on the device first, where torch.cuda.is_available().
    with mock.patch.object(fake_tensor, "init_gpu_context", lambda _device: None):
        with exceptions_not_logged(), WithoutDevice(allow_non_fake_inputs=True) as mode:
            # What FakeTensorMode remembers of an operator forgets storages larger than their
            # tensors, such as the gradient of attention's mask, whose rows have 16 elements.
            mode.cache_enabled = False
            yield mode
