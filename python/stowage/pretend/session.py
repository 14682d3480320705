"""All of the pretence together: `with pretended_cuda() as session`."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from stowage.errors import StowageError
from stowage.pretend.cuda_module import cuda_module
from stowage.pretend.data_loading import loaders_load
from stowage.pretend.driver import Driver
from stowage.pretend.fake_mode import fake_tensors, guard_put_back
from stowage.pretend.kernel_choice import choosing_by_device, foreach_for_fake_tensors
from stowage.pretend.module_moves import modules_move
from stowage.pretend.recurrent import cudnn_recurrent
from stowage.pretend.value_checks import without_overflow_checks, without_packed_sequences
from stowage.pretend.wheel import check_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

USUAL_CAPABILITY = (8, 6)


@dataclasses.dataclass(frozen=True)
class Session:
    """What is there while the device is pretended."""

    driver: Driver
    mode: Any  # the FakeTensorMode
    capability: tuple[int, int]


@contextlib.contextmanager
def pretended_cuda(capability: tuple[int, int] = USUAL_CAPABILITY) -> Iterator[Session]:
    """While active, device "cuda" has fake tensors, and all that asks for the device finds one of
    that compute capability. Everything is as it was afterwards, also after an exception."""
    import torch

    if torch.cuda.is_initialized():
        raise StowageError("this process uses a GPU already, which cannot be pretended away",
                           "record in a process of its own, before anything runs on the GPU")
    driver = Driver(capability, check_wheel(torch))
    from stowage.pretend.host_values import HostValues

    with contextlib.ExitStack() as stack:
        stack.enter_context(driver.installed())
        stack.enter_context(guard_put_back())
        stack.enter_context(cuda_module(capability))
        stack.enter_context(foreach_for_fake_tensors())
        stack.enter_context(choosing_by_device(driver))
        stack.enter_context(cudnn_recurrent())
        stack.enter_context(without_overflow_checks())
        stack.enter_context(modules_move())
        stack.enter_context(loaders_load())
        stack.enter_context(without_packed_sequences())
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        mode = stack.enter_context(fake_tensors())
        stack.enter_context(HostValues())
        yield Session(driver, mode, capability)
