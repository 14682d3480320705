"""Random weights made quickly, for networks of hundreds of millions of them.

The libraries draw every weight, often twice, on the CPU: seconds for a large network. Nothing that is
measured depends on the values, so here a large tensor gets one block of random values, of the
distribution asked for, over and over. What is built, its sizes, its buffers and its tied weights are as
ever, since the libraries' own code runs.
"""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_BLOCK = 1 << 16  # values


class RepeatedBlocks(TorchDispatchMode):
    """Within it, normal_ and uniform_ of a large contiguous CPU tensor repeat one block of values."""

    _DRAWS = (torch.ops.aten.normal_.default, torch.ops.aten.uniform_.default)

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        options = options or {}
        if function in self._DRAWS and _is_large(arguments[0]):
            return _repeat(function, arguments[0], arguments[1:], options)
        return function(*arguments, **options)


def _is_large(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.is_contiguous() and tensor.numel() > 2 * _BLOCK


def _repeat(draw, tensor: torch.Tensor, arguments, options) -> torch.Tensor:
    values = tensor.view(-1)
    block = values[:_BLOCK]
    draw(block, *arguments, **options)
    whole = len(values) // _BLOCK * _BLOCK
    values[_BLOCK:whole].view(-1, _BLOCK).copy_(block)
    values[whole:].copy_(block[:len(values) - whole])
    return tensor
