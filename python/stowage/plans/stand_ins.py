"""Tensors that stand in `.grad` for a gradient that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch.utils import _pytree as pytree

from stowage.errors import StowageError

if TYPE_CHECKING:
    from typing_extensions import Self

aten = torch.ops.aten


class StandIn(torch.Tensor):
    """It has the parameter's shape and nothing else. `owner` is asked for all else: `add(gradient)`,
    `zero()`, and `use(operator, arguments, options, stand-ins)` for whatever looks at the values."""

    ADDS: ClassVar[frozenset[Any]] = frozenset({aten.add_.Tensor})
    ZEROES: ClassVar[frozenset[Any]] = frozenset({aten.zero_.default, aten._foreach_zero_.default})
    LOOKS: ClassVar[frozenset[Any]] = frozenset({aten.detach.default})
    owner: Any
    lies_elsewhere = True

    def __new__(cls, owner: Any) -> Self:
        like = owner.parameter
        made: Self = torch.Tensor._make_wrapper_subclass(
            cls, like.shape, strides=like.stride(), dtype=like.dtype, device=like.device)
        made.owner = owner
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({tuple(self.shape)})"

    @classmethod
    def __torch_dispatch__(cls, operator: Any, types: Any, arguments: Any = (),
                           options: Any = None) -> Any:
        found = [one for one in pytree.tree_leaves((arguments, options)) if isinstance(one, cls)]
        if operator in cls.ADDS and isinstance(arguments[0], cls) and len(found) == 1 and not options:
            arguments[0].owner.add(arguments[1])
            return arguments[0]
        if operator in cls.ZEROES:
            for one in found:
                one.owner.zero()
            return arguments[0] if operator is aten.zero_.default else None
        if operator in cls.LOOKS:
            return cls(found[0].owner)
        return found[0].owner.use(operator, arguments, options or {}, found)


def check_gradient(gradient: torch.Tensor, what: str) -> None:
    """Raises StowageError for one that is no plain tensor."""
    from torch._subclasses.fake_tensor import FakeTensor

    if isinstance(gradient, FakeTensor) or (
            gradient.layout is torch.strided and type(gradient) is torch.Tensor):
        return
    raise StowageError(f"a gradient of {tuple(gradient.shape)} is sparse or of a subclass: "
                       f"{what} takes plain ones", "make a plan without it")
