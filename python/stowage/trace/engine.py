"""What PyTorch does in place when no dispatch mode is active.

Where a tensor has several users, the autograd engine sums their gradients, in place if it holds the
only reference to the first. While a dispatch mode is active it never does, so the recorder does it
in the engine's stead. And a linear layer of an input that does not lie contiguously adds its bias in
place, though not for subclasses of Tensor, as fake ones are (ATen/native/Linear.cpp).
tests/reference/verify_trace.py checks both against the profiler, which needs no mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from types import FrameType

USES_OF_AN_UNSHARED_STORAGE = 2  # the tensor's own and the one of its Python wrapper
ENGINE = "_engine_run_backward"
# What PyTorch puts around __torch_dispatch__ to keep its compiler out.
WRAPPERS = ("torch/_compile.py", "torch/_dynamo/eval_frame.py", "torch/utils/_python_dispatch.py")


def called_by_engine(frame: FrameType | None) -> bool:
    """Whether the engine itself made the call, not Python code that it runs (hooks, custom functions).
    The frames between the two are then only those that wrap every dispatch."""
    while frame is not None and frame.f_code.co_filename.endswith(WRAPPERS):
        frame = frame.f_back
    return frame is None or frame.f_code.co_name == ENGINE


def called_by_torch_optimizer(frame: FrameType | None) -> bool:
    """Whether an optimizer of torch.optim made the call. Adafactor reads the value of a norm for its step
    size, which decides neither what runs nor how large results are."""
    while frame is not None and (frame.f_code.co_filename.endswith(WRAPPERS) or
                                 "__torch_function__" == frame.f_code.co_name):
        frame = frame.f_back
    return frame is not None and "/torch/optim/" in frame.f_code.co_filename


def gradient_sum(first: torch.Tensor,
                 second: torch.Tensor) -> tuple[torch._ops.OpOverload, torch.Tensor]:
    """The engine's sum of two gradients: (operator, result)."""
    uses = torch._C._storage_Use_Count(first.untyped_storage()._cdata)
    if first._is_view() or uses > USES_OF_AN_UNSHARED_STORAGE:
        operator = torch.ops.aten.add.Tensor
    else:
        operator = torch.ops.aten.add_.Tensor
    return operator, operator(first, second)


def adds_bias_of_linear(operator: torch._ops.OpOverload, arguments: tuple[Any, ...],
                        last: torch._ops.OpOverload | None, inside_linear: bool) -> bool:
    """Whether this is linear's addition of its bias to a product of more than two axes."""
    return (inside_linear and operator is torch.ops.aten.add.Tensor and
            last is torch.ops.aten._unsafe_view.default and
            isinstance(arguments[1], torch.Tensor) and arguments[1].dim() == 1 and
            arguments[0].dim() > 2)
