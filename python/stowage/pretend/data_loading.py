"""Data loaders run for real: they draw seeds, shuffle and read files, and what they yield has values.

Where a batch meets a fake tensor or goes to the device it becomes fake. A data set that was made while
the device is pretended holds fake tensors, and may ask one for NumPy's array (torchvision's MNIST): it is
of zeros.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch


def zeros_of(tensor: torch.Tensor, *, force: bool = False) -> Any:
    """Zeros in the place of a fake tensor's values, as NumPy's array."""
    import torch

    if tensor.device.type != "cpu" and not force:
        raise TypeError(f"can't convert {tensor.device} device type tensor to numpy")
    return torch.zeros(tensor.shape, dtype=tensor.dtype).numpy()


@contextlib.contextmanager
def real_tensors() -> Iterator[None]:
    """While active, tensors are made for real."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

    with (torch._C.DisableTorchFunction(), unset_fake_temporarily(),
          mock.patch.object(FakeTensor, "numpy", zeros_of)):
        yield


@contextlib.contextmanager
def real_data_loading() -> Iterator[None]:
    """While active, data loaders make tensors for real."""
    import torch.utils.data as data

    original = data.DataLoader.__iter__

    def iterate(loader: torch.utils.data.DataLoader[Any]) -> Iterator[Any]:
        pinned, loader.pin_memory = loader.pin_memory, False  # there is no device to pin for
        try:
            with real_tensors():
                iterator = original(loader)
        finally:
            loader.pin_memory = pinned
        while True:
            with real_tensors():
                try:
                    batch = next(iterator)
                except StopIteration:
                    return
            yield batch

    with mock.patch.object(data.DataLoader, "__iter__", iterate):
        yield
