"""The regions that a plan runs again in backward, in a model (region_names.py)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from stowage.plans.checkpoint import run_checkpointed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stowage.plans.region_names import Region


class Regions:
    """The regions of a plan in a model. `within(name, inputs, run)` runs a region that has begun."""

    def __init__(self, regions: Sequence[Region], by_path: dict[str, torch.nn.Module],
                 within: Callable[[str, tuple[Any, ...], Callable[[], Any]], Any]) -> None:
        self.within = within
        self.modules = [by_path[one.path] for one in regions]
        self.whole = {id(by_path[one.path]): one for one in regions if one.row is None}
        self.rows: dict[int, list[tuple[int, int, Region]]] = {}  # by the module's id
        for one in regions:
            if one.row is not None:
                self.rows.setdefault(id(by_path[one.path]), []).append((*one.row, one))
        for rows in self.rows.values():
            rows.sort(key=lambda row: row[0])

    def inside(self, module: torch.nn.Module, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The module's forward, with its rows of children under checkpoints."""
        return self.in_rows if id(module) in self.rows else forward

    def around(self, module: torch.nn.Module, forward: Callable[..., Any]) -> Callable[..., Any]:
        """That forward, under a checkpoint if the whole module is a region."""
        region = self.whole.get(id(module))
        if region is None:
            return forward

        def checkpointed(module: torch.nn.Module, *arguments: Any, **keywords: Any) -> Any:
            return self.run(region, [module], functools.partial(forward, module), arguments, keywords)

        return checkpointed

    def in_rows(self, module: torch.nn.Sequential, value: Any) -> Any:
        children, place = list(module), 0
        for first, end, region in self.rows[id(module)]:
            value = in_sequence(children[place:first], value)
            value = self.run(region, children[first:end],
                             functools.partial(in_sequence, children[first:end]), (value,), {})
            place = end
        return in_sequence(children[place:], value)

    def run(self, region: Region, parts: Sequence[torch.nn.Module], forward: Callable[..., Any],
            arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return self.within(region.name, arguments,
                           lambda: run_checkpointed(parts, forward, arguments, keywords))


def in_sequence(children: Sequence[torch.nn.Module], value: Any) -> Any:
    for child in children:
        value = child(value)
    return value
