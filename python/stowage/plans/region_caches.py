"""A cache of keys and values (transformers' `Cache`) that a region is given, for its second run.

A block writes its keys and values to the cache as it runs (`use_cache`, which transformers sets in
training too). A second run that wrote to the same cache would find its own keys there already, and would
add them again; and the cache, kept for it, would keep the keys of all blocks until backward. So the
second run gets a cache like the one that the first run found, of the tensors that the first run used.
Those of other blocks are not in it, and live as long as the script keeps the cache itself.
"""

from __future__ import annotations

import copy
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_iter

if TYPE_CHECKING:
    from collections.abc import Callable

CACHE = ("transformers.cache_utils", "Cache")
PARTS = (CACHE, ("transformers.cache_utils", "CacheLayerMixin"))


def is_one_of(value: Any, kinds: tuple[tuple[str, str], ...]) -> bool:
    """By name: transformers need not be there."""
    return any((kind.__module__, kind.__name__) in kinds for kind in type(value).__mro__)


def is_cache(value: Any) -> bool:
    return is_one_of(value, (CACHE,))


def copied(value: Any, of_tensor: Callable[[Any], Any]) -> Any:
    """A copy of a cache and its layers, with other leaves in its tensors' places; `of_tensor` is asked
    about each leaf."""
    if type(value) in (list, tuple):
        return type(value)(copied(one, of_tensor) for one in value)
    if type(value) is dict:
        return {name: copied(one, of_tensor) for name, one in value.items()}
    if not is_one_of(value, PARTS):
        return of_tensor(value)
    made = copy.copy(value)
    made.__dict__.update((name, copied(one, of_tensor)) for name, one in vars(value).items())
    return made


class Found:
    """A tensor that the first run found in a cache; `used`: it, if the first run used it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.reference = weakref.ref(tensor)
        self.used: torch.Tensor | None = None


class Uses(TorchFunctionMode):
    """While it is entered, what is done with the tensors is noted."""

    def __init__(self, found: dict[int, Found]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, function: Callable[..., Any], types: Any,
                           arguments: tuple[Any, ...] = (),
                           options: dict[str, Any] | None = None) -> Any:
        for one in tree_iter((arguments, options)):
            if isinstance(one, torch.Tensor) and id(one) in self.found:
                self.found[id(one)].used = one
        return function(*arguments, **(options or {}))


class CacheAsFound:
    """A cache as the first run found it."""

    def __init__(self, cache: Any) -> None:
        self.found: dict[int, Found] = {}
        self.cache = copied(cache, self.note)

    def note(self, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return self.found.setdefault(id(leaf), Found(leaf))

    def again(self) -> Any:
        """One for a second run. It has None for a tensor that the first run did not use, and that is
        gone."""
        def tensor(leaf: Any) -> Any:
            if not isinstance(leaf, Found):
                return leaf
            return leaf.used if leaf.used is not None else leaf.reference()

        return copied(self.cache, tensor)

    def uses(self) -> Uses:
        """Around the first run."""
        return Uses(self.found)

