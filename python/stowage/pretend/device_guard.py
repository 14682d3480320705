"""CUDA's device guard, put back afterwards.

Without devices FakeTensorMode replaces the guard by one that does nothing, for the rest of the
process: c10's registry of guards holds another pointer then. On a machine with a GPU that would
be wrong once the recording is over.
"""

import contextlib
import ctypes

REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
CUDA_DEVICE_TYPE = 1  # c10::DeviceType::CUDA


def guards():
    """c10's registry, as far as CUDA's entry."""
    import torch

    library = ctypes.CDLL(torch._C.__file__)  # depends on libc10, where the registry lies
    return (ctypes.c_void_p * (CUDA_DEVICE_TYPE + 1)).in_dll(library, REGISTRY)


@contextlib.contextmanager
def guard_put_back():
    """While active, the guard may be replaced."""
    registry = guards()
    before = registry[CUDA_DEVICE_TYPE]
    try:
        yield
    finally:
        registry[CUDA_DEVICE_TYPE] = before
