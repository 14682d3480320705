"""Values of fake tensors that hang on nothing but numbers: torch.tensor([2, 7, 12]), torch.ones(2, 512).

A model reads such values back: depths of its stages while it is built, whether a mask has a zero. A fake
tensor has no values, so they are kept beside it. Known are tensors made of Python's numbers, filled ones
(ones, arange), real tensors of the CPU that meet fake ones, and what is computed of known tensors alone:
the operator runs once more, on the CPU, on the values. A tensor that something unknown or random is
written to is no longer known, nor is any other that shares its memory.
PyTorch's own `FakeTensor.constant` is of one element, and is lost on the way to a device.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from torch.utils.weak import WeakIdKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SMALL = 16 * 1024 * 1024  # bytes: a mask of every query by every key
# A filled tensor is small: a mask of every token. An optimizer's state is filled too, and is larger.
SMALL_AND_FILLED = 1024 * 1024
# Their values are what happens to lie in memory.
UNFILLED = ("aten::empty", "aten::empty_like", "aten::empty_strided", "aten::empty_permuted",
            "aten::new_empty", "aten::new_empty_strided", "aten::resize", "aten::resize_",
            "aten::resize_as_")
# The results follow from the size of a tensor alone.
OF_ITS_SIZE = ("aten::full_like", "aten::ones_like", "aten::zeros_like")
OF_ITS_TYPE = ("aten::new_full", "aten::new_ones", "aten::new_zeros")
MADE_OF_NUMBERS = (torch.ops.aten.lift_fresh.default, torch.ops.aten.lift_fresh_copy.default)
READS = torch.ops.aten._local_scalar_dense.default
UNKNOWN = object()


@functools.cache
def has_no_values(operator: Any) -> bool:
    """Whatever it is called with."""
    if not isinstance(operator, torch._ops.OpOverload):
        return True
    return bool(torch.Tag.nondeterministic_seeded in operator.tags or operator._schema.name in UNFILLED)


@functools.cache
def written_arguments(operator: torch._ops.OpOverload) -> list[tuple[int, str]]:
    """(position, name) of each argument that the operator writes to."""
    return [(number, declared.name) for number, declared in enumerate(operator._schema.arguments)
            if declared.alias_info is not None and declared.alias_info.is_write]


@functools.cache
def filling(operator: Any) -> tuple[str, ...] | None:
    """What the results follow from: OF_ITS_SIZE, OF_ITS_TYPE, () for numbers alone; None: more."""
    if has_no_values(operator) or operator._schema.is_mutable or operator.namespace != "aten":
        return None
    for kind in (OF_ITS_SIZE, OF_ITS_TYPE):
        if operator._schema.name in kind:
            return kind
    takes_tensors = any("Tensor" in str(declared.type) for declared in operator._schema.arguments)
    return None if takes_tensors else ()


def on_cpu(value: Any) -> Any:
    return torch.device("cpu") if isinstance(value, torch.device) else value


def is_small(tensor: torch.Tensor, most: int = SMALL) -> bool:
    return bool(tensor.numel() * tensor.element_size() <= most)


def is_real(tensor: torch.Tensor) -> bool:
    """Of the CPU, and not fake: a script's data, a number of HostValues."""
    return type(tensor) is torch.Tensor and tensor.device.type == "cpu"


class KnownValues:
    """The values by their fake tensors, as tensors of the CPU."""

    def __init__(self) -> None:
        self.values: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """None: unknown. `tensor.data = other`, which no dispatch sees, may have changed the type."""
        value: torch.Tensor | None = self.values.get(tensor)
        same = value is not None and value.shape == tensor.shape and value.dtype == tensor.dtype
        return value if same else None

    def value(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """As `of`; of a real tensor itself."""
        if type(tensor) is FakeTensor:
            return self.of(tensor)
        return tensor if is_real(tensor) and is_small(tensor) else None

    def evaluated(self, operator: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """What the operator makes of the values of its tensors, which it writes to where it is in place;
        UNKNOWN where one has none, or it has no tensors."""
        flat, form = tree_flatten((arguments, options))
        tensors = [one for one in flat if isinstance(one, torch.Tensor)]
        if operator in MADE_OF_NUMBERS and len(tensors) == 1 and is_real(tensors[0]):
            return tensors[0].detach().clone() if is_small(tensors[0]) else UNKNOWN
        if not tensors or has_no_values(operator):
            return UNKNOWN
        if operator._schema.is_mutable and any(is_real(one) for one in tensors):
            return UNKNOWN  # it is written to once, by PyTorch
        known = [self.value(one) if isinstance(one, torch.Tensor) else on_cpu(one) for one in flat]
        if any(one is None and isinstance(other, torch.Tensor)
               for one, other in zip(known, flat, strict=True)):
            return UNKNOWN
        positional, named = tree_unflatten(known, form)
        return operator(*positional, **named)

    def filled(self, operator: Any, arguments: Sequence[Any], options: Mapping[str, Any],
               result: Any) -> Any:
        """What an operator makes of sizes and numbers: ones, arange, zeros_like; UNKNOWN of others."""
        kind = filling(operator)
        if kind is None or type(result) is not FakeTensor or not is_small(result, SMALL_AND_FILLED):
            return UNKNOWN

        def stands_in(one: Any) -> Any:
            if not isinstance(one, torch.Tensor):
                return on_cpu(one)
            return torch.empty(one.shape if kind is OF_ITS_SIZE else (0,), dtype=one.dtype)

        flat, form = tree_flatten((arguments, options))
        with no_dispatch():
            positional, named = tree_unflatten([stands_in(one) for one in flat], form)
            return operator(*positional, **named)

    def has_unknown(self, operator: Any, arguments: Sequence[Any]) -> bool:
        """Whether a look at the call's own arguments is enough, as it is for nearly all calls."""
        if operator in MADE_OF_NUMBERS:
            return False
        return any(isinstance(one, torch.Tensor) and one not in self.values and not is_real(one)
                   for one in arguments)

    def value_of_call(self, operator: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """As `evaluated`, with nothing dispatched; UNKNOWN where the values do not allow the call, which
        then fails as without them."""
        if self.has_unknown(operator, arguments):
            return UNKNOWN
        with no_dispatch():
            try:
                return self.evaluated(operator, arguments, options)
            except (RuntimeError, ValueError, TypeError, LookupError):
                return UNKNOWN

    def forget_written(self, operator: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
        """After a call that wrote what is not known."""
        if not self.values or not isinstance(operator, torch._ops.OpOverload):
            return
        for number, name in written_arguments(operator):
            given = arguments[number] if number < len(arguments) else options.get(name)
            for tensor in tree_leaves(given):
                if isinstance(tensor, torch.Tensor):
                    self.forget(tensor)

    def forget(self, tensor: torch.Tensor) -> None:
        value = self.values.get(tensor)
        if value is None:
            return
        storage = value.untyped_storage()._cdata
        for other, its_value in list(self.values.items()):
            if its_value.untyped_storage()._cdata == storage:
                del self.values[other]

    def note(self, result: Any, value: Any) -> None:
        """The call's results, and what it made of values."""
        for tensor, known in zip(tree_leaves(result), tree_leaves(value), strict=True):
            if type(tensor) is FakeTensor and isinstance(known, torch.Tensor) and is_small(known):
                self.values[tensor] = known
