"""Answers for the CUDA driver and for c10, as far as a program on fake tensors asks them.

The autograd engine asks, for each device of the device guard that FakeTensorMode installs, whether
a primary context exists. That check first compares the device's number with the number of visible
devices, which is 0 without a driver, and throws; then it loads the driver's library and asks its
function. Attention and convolutions ask for the device's properties before they choose a kernel.
So these functions are replaced in the slots through which PyTorch's own libraries call them
(elf_slots.py):

    c10::cuda::device_count           0, and many while `Driver.visible` (backward, choices)
    c10::cuda::hasPrimaryContext      never
    at::cuda::getCurrentDeviceProperties, getDeviceProperties    the pretended device's
    at::DynamicLibrary: constructor and sym    cuDevicePrimaryCtxGetState is ours: no context

PyTorch keeps the last function's pointer in a variable of its own, which is put back as well.
Nothing else of CUDA is there, so that whatever would run on a GPU still fails.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import TYPE_CHECKING

from stowage.errors import StowageError
from stowage.pretend.elf_slots import RememberedPointers, Slots, address_of, find_slots, loaded_libraries

if TYPE_CHECKING:
    from collections.abc import Iterator

CUDA_LIBRARY = "libtorch_cuda.so"
LIBRARIES = (CUDA_LIBRARY, "libtorch_cuda_linalg.so", "libtorch_python.so", "libc10_cuda.so",
             "libtorch_cpu.so")
MORE_DEVICES_THAN_THE_GUARD_HAS = 127

DEVICE_COUNT = "_ZN3c104cuda12device_countEv"
HAS_CONTEXT = "_ZN3c104cuda17hasPrimaryContextEa"
CURRENT_PROPERTIES = "_ZN2at4cuda26getCurrentDevicePropertiesEv"
PROPERTIES = "_ZN2at4cuda19getDevicePropertiesEa"
OPEN_LIBRARY = "_ZN2at14DynamicLibraryC1EPKcS2_b"
FIND_SYMBOL = "_ZN2at14DynamicLibrary3symEPKc"
NEEDED = (DEVICE_COUNT, HAS_CONTEXT, CURRENT_PROPERTIES, PROPERTIES, OPEN_LIBRARY, FIND_SYMBOL)
CONTEXT_STATE = "cuDevicePrimaryCtxGetState"

# cudaDeviceProp, by the runtime's major version: bytes, and where its numbers lie (driver_types.h
# of CUDA 12.4, 13.0 and 13.2).
PROPERTY_BYTES = 1032
WARP_SIZE_AT, MAJOR_AT, MINOR_AT = 308, 360, 364
MULTIPROCESSORS_AT = {12: 388, 13: 384}
WARP_SIZE, A100_MULTIPROCESSORS = 32, 108


def device_properties(capability: tuple[int, int], cuda_major: int) -> ctypes.Array[ctypes.c_char]:
    """A cudaDeviceProp as far as the choices of kernels read it."""
    record = ctypes.create_string_buffer(PROPERTY_BYTES)
    major, minor = capability
    for place, value in ((WARP_SIZE_AT, WARP_SIZE), (MAJOR_AT, major), (MINOR_AT, minor),
                         (MULTIPROCESSORS_AT[cuda_major], A100_MULTIPROCESSORS)):
        ctypes.c_int.from_buffer(record, place).value = value
    return record


class DynamicLibrary(ctypes.Structure):
    """at::DynamicLibrary (ATen/DynamicLibrary.h)."""

    _fields_ = [("stays_open", ctypes.c_bool), ("handle", ctypes.c_void_p)]


def open_library(this: ctypes._Pointer[DynamicLibrary], name: bytes, alternative: bytes,
                 _stays_open: bool) -> None:
    """at::DynamicLibrary's constructor; a library that is not there is the program itself, so that
    the driver's functions can be asked for where there is no driver."""
    this.contents.stays_open = True
    for file in (name, alternative):
        try:
            this.contents.handle = ctypes.CDLL(file.decode())._handle
            return
        except (OSError, AttributeError):
            continue
    this.contents.handle = ctypes.CDLL(None)._handle


def no_context(_device: int, flags: ctypes._Pointer[ctypes.c_uint],
               active: ctypes._Pointer[ctypes.c_uint]) -> int:
    """cuDevicePrimaryCtxGetState: success, and not active."""
    flags[0] = active[0] = 0
    return 0


class Driver:
    """The answers. `installed()` puts them into the slots and takes them out again."""

    def __init__(self, capability: tuple[int, int], cuda_major: int) -> None:
        self.devices = 0
        self.properties = device_properties(capability, cuda_major)
        self.remembered: RememberedPointers | None = None
        address = ctypes.addressof(self.properties)
        integer = ctypes.POINTER(ctypes.c_uint)
        self.context_state = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, integer, integer)(
            no_context)
        self.answers = {
            DEVICE_COUNT: ctypes.CFUNCTYPE(ctypes.c_byte)(lambda: self.devices),
            HAS_CONTEXT: ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_byte)(lambda _device: False),
            CURRENT_PROPERTIES: ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: address),
            PROPERTIES: ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_byte)(lambda _device: address),
            OPEN_LIBRARY: ctypes.CFUNCTYPE(
                None, ctypes.POINTER(DynamicLibrary), ctypes.c_char_p, ctypes.c_char_p,
                ctypes.c_bool)(open_library),
            FIND_SYMBOL: ctypes.CFUNCTYPE(
                ctypes.c_void_p, ctypes.POINTER(DynamicLibrary), ctypes.c_char_p)(
                    self.find_symbol),
        }

    def find_symbol(self, library: ctypes._Pointer[DynamicLibrary], name: bytes) -> int | None:
        """at::DynamicLibrary::sym"""
        if name.decode() == CONTEXT_STATE:
            if self.remembered is None:
                self.remembered = RememberedPointers(loaded_libraries([CUDA_LIBRARY])[CUDA_LIBRARY])
            return address_of(self.context_state)
        find = ctypes.CDLL(None).dlsym
        find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
        found: int | None = find(library.contents.handle, name)
        return found

    @contextlib.contextmanager
    def installed(self) -> Iterator[Driver]:
        """While active, the libraries ask this object."""
        slots = Slots()
        try:
            answered = set()
            for name, library in loaded_libraries(LIBRARIES).items():
                for symbol, addresses in find_slots(library, NEEDED).items():
                    if symbol in (OPEN_LIBRARY, FIND_SYMBOL) and name != CUDA_LIBRARY:
                        continue  # of others than the driver
                    for address in addresses:
                        slots.put(address, self.answers[symbol])
                    answered.add(symbol)
            if missing := set(NEEDED) - answered:
                raise StowageError(
                    f"this build of PyTorch calls {min(missing)} where it cannot be answered",
                    "stowage knows the wheels of torch 2.11 to 2.15; pip install torch==2.15.*")
            yield self
        finally:
            slots.restore()
            if self.remembered is not None:
                self.remembered.restore(address_of(self.context_state))
                self.remembered = None

    @contextlib.contextmanager
    def visible(self) -> Iterator[None]:
        """While active, there are devices. It nests: a checkpointed region chooses its attention
        again within backward."""
        before, self.devices = self.devices, MORE_DEVICES_THAN_THE_GUARD_HAS
        try:
            yield
        finally:
            self.devices = before
