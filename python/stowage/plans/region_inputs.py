"""The inputs of a region that runs again in backward.

torch.utils.checkpoint saves the tensors among its positional arguments: the second run gets those values,
and an error where one was written in place in between. What it is given by keyword it holds itself: an
inner region's would be kept beside the outer one's inputs. So keywords' tensors, and those in tuples, are
given to it as arguments too. A tensor that the call has twice is one in the second run too: a module
may ask whether two of its inputs are the same object (nn.MultiheadAttention does), and what was saved
comes back as a new one each. Lists and dicts are copied, since a model may append to one after the call
(DenseNet does). A cache of keys and values is one of its own (region_caches.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_iter

from stowage.plans.region_caches import CacheAsFound, is_cache
from stowage.plans.stash import version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a tensor of the call is among those that the checkpoint is given."""

    index: int


class RegionInputs:
    """A call's arguments and keywords without their tensors, which it must not keep alive. Those within
    lists and the like stay where they are, and are held to their versions."""

    def __init__(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        self.arguments, self.keywords = arguments, keywords
        self.versions = [(one, version_of(one)) for one in tree_iter([arguments, keywords])
                         if isinstance(one, torch.Tensor)]

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Around the first run."""
        with contextlib.ExitStack() as stack:
            for one in tree_iter([self.arguments, self.keywords]):
                if isinstance(one, CacheAsFound):
                    stack.enter_context(one.uses())
            yield

    def given(self, tensors: tuple[torch.Tensor, ...]) -> tuple[list[Any], dict[str, Any]]:
        """The call with these tensors. Raises RuntimeError where another of its tensors was written in
        place since the first call, as PyTorch does where one was that it saved."""
        for one, version in self.versions:
            if version_of(one) != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: [{one.type()} {list(one.shape)}], which a module that runs "
                    f"again in backward got in a list, is at version {version_of(one)}; expected version "
                    f"{version} instead.")

        return [put_back(one, tensors) for one in self.arguments], {
            name: put_back(one, tensors) for name, one in self.keywords.items()}


# Functions of the module: one within another that calls itself is a cycle, which would keep the tensors.
def put_back(value: Any, tensors: tuple[torch.Tensor, ...]) -> Any:
    if isinstance(value, Place):
        return tensors[value.index]
    if isinstance(value, CacheAsFound):
        return value.again()
    return with_parts(value, lambda one: put_back(one, tensors))


def with_parts(value: Any, of_part: Callable[[Any], Any]) -> Any:
    """A list, tuple or dict with what `of_part` makes of its parts; anything else as it is."""
    if type(value) in (list, tuple):
        return type(value)(of_part(one) for one in value)
    if type(value) is dict:
        return {name: of_part(one) for name, one in value.items()}
    return value


def copied(value: Any) -> Any:
    return with_parts(value, copied)


def take(value: Any, tensors: list[torch.Tensor]) -> Any:
    """The value with places in its tensors' stead, which are appended. One that is there already is
    appended again, as autograd then saves it twice, and has the first one's place."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return Place(next(i for i, one in enumerate(tensors) if one is value))
    if is_cache(value):
        return CacheAsFound(value)
    if type(value) is tuple:
        return tuple(take(one, tensors) for one in value)
    return copied(value)


def taken_apart(arguments: tuple[Any, ...],
                keywords: dict[str, Any]) -> tuple[RegionInputs, list[torch.Tensor]]:
    """(the call without its tensors, the tensors)."""
    tensors: list[torch.Tensor] = []
    return RegionInputs([take(one, tensors) for one in arguments],
                        {name: take(one, tensors) for name, one in keywords.items()}), tensors
