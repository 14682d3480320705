"""Attention, convolutions and optimizers choose their kernels as on the pretended device.

scaled_dot_product_attention asks the device which kernels it has (flash for bfloat16 and float16
without a mask, else memory-efficient). A convolution in bfloat16 is cuDNN's only on a device that
has bfloat16, and only cuDNN's lies with its channels innermost. An optimizer takes its foreach form only
for the exact types Tensor and Parameter, of which fake tensors are none.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stowage.pretend.driver import Driver


@contextlib.contextmanager
def kernels_of_device(driver: Driver) -> Iterator[None]:
    """While active, attention and convolutions see the driver's device when they choose."""
    import torch
    import torch.nn.functional as functional

    def seeing_device(function: Callable[..., Any]) -> Callable[..., Any]:
        def choose(*arguments: Any, **options: Any) -> Any:
            with driver.visible():
                return function(*arguments, **options)

        return choose

    with contextlib.ExitStack() as stack:
        for module, name in ((functional, "scaled_dot_product_attention"),
                             (torch._C, "_select_conv_backend")):
            stack.enter_context(mock.patch.object(module, name,
                                                  seeing_device(getattr(module, name))))
        yield


@contextlib.contextmanager
def foreach_for_fake_tensors() -> Iterator[None]:
    """While active, optimizers choose their foreach form for fake tensors too."""
    import torch.optim.optimizer as optimizer_module
    import torch.utils._foreach_utils as foreach_utils
    from torch._subclasses.fake_tensor import FakeTensor

    with contextlib.ExitStack() as stack:
        for module in (optimizer_module, foreach_utils):
            types = [*module._foreach_supported_types, FakeTensor]
            stack.enter_context(mock.patch.object(module, "_foreach_supported_types", types))
        yield
