"""Checks of tensors' values that are skipped: fake tensors have no values.

GradScaler steps without asking whether gradients overflowed; transformers does not search position
ids for packed sequences; torch.nn.init.trunc_normal_ does not draw again what lies beyond its bounds.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch


@contextlib.contextmanager
def without_overflow_checks() -> Iterator[None]:
    """While active, GradScaler always steps."""
    import torch.amp.grad_scaler as module

    def step(_scaler: object, optimizer: torch.optim.Optimizer, _state: object, *arguments: Any,
             **options: Any) -> Any:
        return optimizer.step(*arguments, **options)

    with mock.patch.object(module.GradScaler, "_maybe_opt_step", step):
        yield


@contextlib.contextmanager
def without_rejected_samples() -> Iterator[None]:
    """While active, trunc_normal_ leaves fake tensors as they are. Others are drawn."""
    import torch.nn.init as module
    from torch._subclasses.fake_tensor import FakeTensor

    draw = module._no_grad_trunc_normal_

    def initialise(tensor: torch.Tensor, *arguments: Any, **options: Any) -> Any:
        return tensor if isinstance(tensor, FakeTensor) else draw(tensor, *arguments, **options)

    with mock.patch.object(module, "_no_grad_trunc_normal_", initialise):
        yield


@contextlib.contextmanager
def without_packed_sequences() -> Iterator[None]:
    """While active, transformers finds no packed sequences. Without effect where transformers is not
    loaded, or does not search for them."""
    module = sys.modules.get("transformers.masking_utils")
    if module is None or not hasattr(module, "find_packed_sequence_indices"):
        yield
        return
    with mock.patch.object(module, "find_packed_sequence_indices",
                           lambda *_arguments, **_options: None):
        yield
