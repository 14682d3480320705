"""The inputs of a region that runs again in backward.

torch.utils.checkpoint saves the tensors among its positional arguments: the second run gets those values,
and an error where one was written in place in between. What it is given by keyword it holds itself: an
inner region's would be kept beside the outer one's inputs. So keywords' tensors, and those in tuples, are
given to it as arguments too. A tensor that the call has twice is given once: a module may ask whether two
of its inputs are the same object (nn.MultiheadAttention does), and what was saved comes back as a new one
each.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch.utils._pytree import tree_iter

from stowage.plans.stash import version_of


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

        def put_back(value: Any) -> Any:
            if isinstance(value, Place):
                return tensors[value.index]
            if type(value) is tuple:
                return tuple(put_back(one) for one in value)
            return value

        return [put_back(one) for one in self.arguments], {
            name: put_back(one) for name, one in self.keywords.items()}


def taken_apart(arguments: tuple[Any, ...],
                keywords: dict[str, Any]) -> tuple[RegionInputs, list[torch.Tensor]]:
    """(the call without its tensors, the tensors, each once)."""
    tensors: list[torch.Tensor] = []
    places: dict[int, Place] = {}

    def take(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in places:
                places[id(value)] = Place(len(tensors))
                tensors.append(value)
            return places[id(value)]
        return tuple(take(one) for one in value) if type(value) is tuple else value

    rest = RegionInputs([take(one) for one in arguments],
                        {name: take(one) for name, one in keywords.items()})
    return rest, tensors
