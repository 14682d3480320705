"""Values of small fake tensors that are made of Python's numbers: torch.tensor([2, 7, 12]).

A model reads such values back: depths of its stages while it is built, the number of boxes in its loss. A
fake tensor has no values, so they are kept beside it. What is computed of known tensors alone is known
as well: the operator runs once more, on the CPU, on the values. A tensor that something unknown or random
is written to is no longer known, nor is any other that shares its memory.
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

SMALL = 4096  # elements
MADE_OF_NUMBERS = (torch.ops.aten.lift_fresh.default, torch.ops.aten.lift_fresh_copy.default)
READS = torch.ops.aten._local_scalar_dense.default
UNKNOWN = object()


def is_random(operator: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in operator.tags


@functools.cache
def written_arguments(operator: torch._ops.OpOverload) -> list[tuple[int, str]]:
    """(position, name) of each argument that the operator writes to."""
    return [(number, declared.name) for number, declared in enumerate(operator._schema.arguments)
            if declared.alias_info is not None and declared.alias_info.is_write]


def on_cpu(value: Any) -> Any:
    return torch.device("cpu") if isinstance(value, torch.device) else value


class KnownValues:
    """The values by their fake tensors, as tensors of the CPU."""

    def __init__(self) -> None:
        self.values: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """None: unknown. `tensor.data = other`, which no dispatch sees, may have changed the type."""
        value: torch.Tensor | None = self.values.get(tensor)
        same = value is not None and value.shape == tensor.shape and value.dtype == tensor.dtype
        return value if same else None

    def evaluated(self, operator: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """What the operator makes of the values of its tensors, which it writes to where it is in place;
        UNKNOWN where one has none."""
        flat, form = tree_flatten((arguments, options))
        fakes = [one for one in flat if isinstance(one, torch.Tensor)]
        if operator in MADE_OF_NUMBERS and len(fakes) == 1 and type(fakes[0]) is torch.Tensor:
            return fakes[0].detach().clone() if fakes[0].numel() <= SMALL else UNKNOWN
        if not fakes or any(type(one) is not FakeTensor or self.of(one) is None for one in fakes):
            return UNKNOWN
        if not isinstance(operator, torch._ops.OpOverload) or is_random(operator):
            return UNKNOWN
        known = [self.of(one) if isinstance(one, torch.Tensor) else on_cpu(one) for one in flat]
        positional, named = tree_unflatten(known, form)
        return operator(*positional, **named)

    def has_unknown(self, operator: Any, arguments: Sequence[Any]) -> bool:
        """Whether a look at the call's own arguments is enough, as it is for nearly all calls."""
        if operator in MADE_OF_NUMBERS:
            return False
        return not self.values or any(
            isinstance(one, torch.Tensor) and one not in self.values for one in arguments)

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
            if type(tensor) is FakeTensor and isinstance(known, torch.Tensor) and known.numel() <= SMALL:
                self.values[tensor] = known
