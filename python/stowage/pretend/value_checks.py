"""Checks of tensors' values that are skipped: fake tensors have no values.

GradScaler steps without asking whether gradients overflowed; transformers does not search position
ids for packed sequences; torch.nn.init.trunc_normal_ does not draw again what lies beyond its bounds.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import sys
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    import importlib.machinery
    import types
    from collections.abc import Callable, Iterator, Sequence

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


class OnImport(importlib.abc.MetaPathFinder):
    """Calls `loaded` with a module when it is imported."""

    def __init__(self, name: str, loaded: Callable[[types.ModuleType], None]) -> None:
        self.name, self.loaded = name, loaded

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: types.ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            self.loaded(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


@contextlib.contextmanager
def without_packed_sequences() -> Iterator[None]:
    """While active, transformers finds no packed sequences, also where a script imports it only then.
    Without effect where it does not search for them."""
    name = "transformers.masking_utils"
    with contextlib.ExitStack() as patches:
        def patch(module: types.ModuleType) -> None:
            if hasattr(module, "find_packed_sequence_indices"):
                patches.enter_context(mock.patch.object(module, "find_packed_sequence_indices",
                                                        lambda *_arguments, **_options: None))

        if name in sys.modules:
            patch(sys.modules[name])
        finder = OnImport(name, patch)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
