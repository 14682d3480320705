"""Attention and convolutions choose their kernels as on the pretended device.

scaled_dot_product_attention asks the device which kernels it has (flash for bfloat16 and float16
without a mask, else memory-efficient). A convolution in bfloat16 is cuDNN's only on a device that
has bfloat16, and only cuDNN's lies with its channels innermost.
"""

import contextlib
from unittest import mock


@contextlib.contextmanager
def choosing_by_device(driver):
    """While active, both see the driver's device while they choose."""
    import torch
    import torch.nn.functional as functional

    def seeing_device(function):
        def choose(*arguments, **options):
            with driver.visible():
                return function(*arguments, **options)

        return choose

    with contextlib.ExitStack() as stack:
        for module, name in ((functional, "scaled_dot_product_attention"),
                             (torch._C, "_select_conv_backend")):
            stack.enter_context(mock.patch.object(module, name,
                                                  seeing_device(getattr(module, name))))
        yield
