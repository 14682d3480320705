"""model.cuda(), model.to(...), model.half() on fake tensors.

nn.Module would swap the tensors, which it refuses where somebody has a weak reference, as
FakeTensorMode does. Here a parameter stays the same object, as on a real device, so that an
optimizer that was made before keeps it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch


def moved(tensor: torch.Tensor, applied: torch.Tensor) -> torch.Tensor:
    """The tensor with the contents of `applied`; where it cannot hold them, `applied`."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    if applied is tensor:
        return tensor
    if isinstance(tensor, FakeTensor) and isinstance(applied, FakeTensor):
        tensor.data = applied
        tensor.fake_device = applied.fake_device
        return tensor
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(applied, tensor.requires_grad)
    return applied


def apply_to_module(module: torch.nn.Module, function: Callable[..., Any],
                    recurse: bool = True) -> torch.nn.Module:
    """What nn.Module._apply does."""
    import torch

    if recurse:
        for child in module.children():
            child._apply(function)
    for name, parameter in module._parameters.items():
        if parameter is not None:
            with torch.no_grad():
                module._parameters[name] = moved(parameter, function(parameter))
                if parameter.grad is not None:
                    module._parameters[name].grad = function(parameter.grad)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = function(buffer)
    return module


@contextlib.contextmanager
def in_place_module_moves() -> Iterator[None]:
    """While active, a module that moves keeps its Parameter objects."""
    import torch

    with mock.patch.object(torch.nn.Module, "_apply", apply_to_module):
        yield
