"""A model's own tensors, replaced by fake ones on the pretended device while it is recorded.

Its parameters and buffers may be on "meta" or hold real values on the CPU; neither is copied. They
are back in their places afterwards.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import torch

from stowage.pretend.recurrent import flatten_weights
from stowage.training.parameter_hooks import copy_hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def fake_like(tensor: torch.Tensor, dtype: torch.dtype | None = None,
              shape: Sequence[int] | None = None,
              device: torch.device | str = "cuda") -> torch.Tensor:
    """A fake tensor of that layout; a floating-point one in `dtype` if given."""
    kept = dtype if dtype and tensor.is_floating_point() else tensor.dtype
    if shape is not None and tuple(shape) != tuple(tensor.shape):
        return torch.empty(shape, dtype=kept, device=device)
    if tensor.layout is not torch.strided:
        raise NotImplementedError(f"a tensor of layout {tensor.layout}")
    dense = torch.empty_like(tensor, device="meta").stride()
    return torch.empty_strided(tensor.shape, dense, dtype=kept, device=device)


def on_device(tree: Any, place: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The tree with `place(tensor)` for each tensor. A tensor that stands in it twice is one tensor
    afterwards too, as it is after `x = x.cuda()`."""
    from torch.utils._pytree import tree_map

    placed: dict[int, torch.Tensor] = {}

    def one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in placed:
            placed[id(value)] = place(value)
        return placed[id(value)]

    return tree_map(one, tree)


def is_on_device(model: torch.nn.Module) -> bool:
    """Whether all of its tensors are fake ones on the pretended device."""
    from torch._subclasses.fake_tensor import FakeTensor

    tensors = [*model.parameters(), *model.buffers()]
    return bool(tensors) and all(isinstance(t, FakeTensor) and t.device.type == "cuda"
                                 for t in tensors)


class WeightlessModel:
    """The model; `fakes` are {id of an own parameter: its fake one}. `hook_results` has the names of
    parameters of which a hook returned what PyTorch refuses (parameter_hooks.py)."""

    def __init__(self, model: torch.nn.Module, dtype: torch.dtype | None = None) -> None:
        self.model = model
        self.fakes: dict[int, torch.Tensor] = {}
        self.hook_results: dict[str, None] = {}  # in this order
        self.names = {id(tensor): name for name, tensor in model.named_parameters()}
        # What `restore` puts back: (module's table, name, tensor), (module, attribute, tensor).
        self.before: list[tuple[dict[str, Any], str, torch.Tensor]] = []
        self.kept: list[tuple[torch.nn.Module, str, torch.Tensor]] = []
        if is_on_device(model):
            return
        for module in model.modules():
            self.replace_tensors(module, dtype)
        for module in model.modules():
            if isinstance(module, torch.nn.RNNBase):
                flatten_weights(module)

    def replace_tensors(self, module: torch.nn.Module, dtype: torch.dtype | None) -> None:
        for table in (module._parameters, module._buffers):
            for name, tensor in table.items():
                if tensor is None:
                    continue
                self.before.append((table, name, tensor))
                if id(tensor) not in self.fakes:
                    fake = fake_like(tensor, dtype)
                    if table is module._parameters:
                        fake = torch.nn.Parameter(fake, tensor.requires_grad)
                    for key, value in vars(tensor).items():
                        if key not in vars(fake):  # marks that libraries leave on parameters
                            setattr(fake, key, value)
                    copy_hooks(tensor, fake, functools.partial(
                        self.hook_results.setdefault, self.names.get(id(tensor), name)))
                    self.fakes[id(tensor)] = fake
                table[name] = self.fakes[id(tensor)]
        for name, value in list(vars(module).items()):
            if type(value) is torch.Tensor and value.device.type == "meta":
                self.kept.append((module, name, value))
                setattr(module, name, fake_like(value, device="cpu"))

    def restore(self) -> None:
        for table, name, tensor in self.before:
            table[name] = tensor
        for module, name, value in self.kept:
            setattr(module, name, value)


@contextlib.contextmanager
def weightless(model: torch.nn.Module,
               dtype: torch.dtype | None = None) -> Iterator[WeightlessModel]:
    """The WeightlessModel while active. A model that is on the pretended device already, as in a
    script that is recorded whole, stays as it is."""
    fake = WeightlessModel(model, dtype)
    try:
        yield fake
    finally:
        fake.restore()
