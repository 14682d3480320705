"""The pretended device, of all its parts: `with pretended_cuda() as session`."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from stowage.errors import StowageError
from stowage.one_at_a_time import DEVICE
from stowage.pretend.cuda_module import cuda_module
from stowage.pretend.data_loading import real_data_loading
from stowage.pretend.driver import Driver
from stowage.pretend.fake_mode import device_guard_restored, fake_tensors
from stowage.pretend.fused_optimizers import fused_steps
from stowage.pretend.kernel_choice import foreach_for_fake_tensors, kernels_of_device
from stowage.pretend.module_moves import in_place_module_moves
from stowage.pretend.recurrent import cudnn_recurrent
from stowage.pretend.value_checks import (
    without_overflow_checks,
    without_packed_sequences,
    without_rejected_samples,
)
from stowage.pretend.wheel import check_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_CAPABILITY = (8, 6)


@dataclasses.dataclass(frozen=True)
class Session:
    """The pretended device, while it is active."""

    driver: Driver
    mode: Any  # the FakeTensorMode
    capability: tuple[int, int]


@contextlib.contextmanager
def pretended_cuda(capability: tuple[int, int] = DEFAULT_CAPABILITY) -> Iterator[Session]:
    """While active, device "cuda" has fake tensors, and code that asks for the device finds one of that
    compute capability, (major, minor). Afterwards everything is as it was, also after an exception.
    Raises StowageError where the process uses a GPU already or pretends one in another thread, or
    recording does not work with this PyTorch."""
    import torch

    with contextlib.ExitStack() as stack:
        stack.enter_context(DEVICE.exclusively())
        if torch.cuda.is_initialized():
            raise StowageError("this process uses a GPU already, which cannot be pretended away",
                               "record in a process of its own, before anything runs on the GPU")
        driver = Driver(capability, check_wheel(torch))
        from stowage.pretend.host_values import HostValues

        stack.enter_context(driver.installed())
        stack.enter_context(device_guard_restored())
        stack.enter_context(cuda_module(capability))
        stack.enter_context(foreach_for_fake_tensors())
        stack.enter_context(kernels_of_device(driver))
        stack.enter_context(cudnn_recurrent())
        stack.enter_context(fused_steps())
        stack.enter_context(without_overflow_checks())
        stack.enter_context(without_rejected_samples())
        stack.enter_context(in_place_module_moves())
        stack.enter_context(real_data_loading())
        stack.enter_context(without_packed_sequences())
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        mode = stack.enter_context(fake_tensors())
        stack.enter_context(HostValues())
        yield Session(driver, mode, capability)
