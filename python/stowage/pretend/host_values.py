"""Small tensors of the CPU keep their values, as a script that is not recorded would find them.

Models look at values while they are built and while they run: rates of stochastic depth out of a
linspace, LayerDrop's torch.rand([]). Fake tensors have none. So what makes such tensors runs for
real where it is small and on the CPU, and so does what is computed from real tensors alone; where
one meets a fake tensor, FakeTensorMode makes it fake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_iter

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = 4096  # elements
# Factories whose results are numbers to be read. Others (zeros, empty, randn) make parameters.
NUMBERS = {torch.linspace, torch.logspace, torch.arange}


def is_small(arguments: tuple[Any, ...]) -> bool:
    sizes = [a for a in arguments if isinstance(a, (int, float))]
    return all(abs(size) <= SMALL for size in sizes)


def on_cpu(options: dict[str, Any]) -> bool:
    device = options.get("device")
    if device is None:
        device = torch.get_default_device()
    return bool(torch.device(device).type == "cpu")


class HostValues(TorchFunctionMode):
    """Lies above FakeTensorMode: it sees calls as they are written."""

    def __torch_function__(self, function: Callable[..., Any], types: Any,
                           arguments: tuple[Any, ...] = (),
                           options: dict[str, Any] | None = None) -> Any:
        options = options or {}
        if self.runs_for_real(function, arguments, options):
            with unset_fake_temporarily():
                return function(*arguments, **options)
        return function(*arguments, **options)

    @staticmethod
    def runs_for_real(function: Callable[..., Any], arguments: tuple[Any, ...],
                      options: dict[str, Any]) -> bool:
        if function in NUMBERS:
            return is_small(arguments) and on_cpu(options)
        if function is torch.rand:
            return on_cpu(options) and list(arguments) in ([[]], [()], [1], [[1]])
        tensors = [t for t in tree_iter((arguments, options)) if isinstance(t, torch.Tensor)]
        if not tensors or any(type(t) is FakeTensor or isinstance(t, torch.nn.Parameter) or
                              t.device.type != "cpu" or t.numel() > SMALL for t in tensors):
            return False
        name = resolve_name(function) or ""
        moves = any(part in name for part in (".to", ".cuda", "__get__"))
        return not moves and "cuda" not in str(options.get("device", ""))
