"""The inputs of a region that runs again in backward.

torch.utils.checkpoint saves the tensors among its positional arguments: the second run gets those values,
and an error where one was written in place in between. So keywords are given to it as arguments too. A
tensor that the call has twice is given once: a module may ask whether two of its inputs are the same
object (nn.MultiheadAttention does), and what was saved comes back as a new one each.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_iter

from stowage.plans.stash import version_of


class RegionInputs:
    """A call's arguments and keywords. `tensors` are those among them, each once; those within lists and
    the like stay where they are, and are held to their versions."""

    def __init__(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.arguments, self.keywords = arguments, keywords
        given = [one for one in (*arguments, *keywords.values()) if isinstance(one, torch.Tensor)]
        self.tensors = list({id(one): one for one in given}.values())
        self.places = {id(one): place for place, one in enumerate(self.tensors)}
        within = [one for one in (*arguments, *keywords.values()) if not isinstance(one, torch.Tensor)]
        self.versions = [(one, version_of(one)) for one in tree_iter(within)
                         if isinstance(one, torch.Tensor)]

    def given(self, tensors: tuple[torch.Tensor, ...]) -> tuple[list[Any], dict[str, Any]]:
        """The call with these in place of its own. Raises RuntimeError where another of its tensors was
        written in place since the first call, as PyTorch does where one was that it saved."""
        for one, version in self.versions:
            if version_of(one) != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: [{one.type()} {list(one.shape)}], which a module that runs "
                    f"again in backward got in a list, is at version {version_of(one)}; expected version "
                    f"{version} instead.")

        def one_of(value: Any) -> Any:
            return tensors[self.places[id(value)]] if isinstance(value, torch.Tensor) else value

        return [one_of(one) for one in self.arguments], {
            name: one_of(one) for name, one in self.keywords.items()}
