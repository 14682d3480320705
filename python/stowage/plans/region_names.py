"""The names of regions, which a plan runs again in backward, and of what they are given.

A region is a module by its path, or children in a row of an nn.Sequential, as Python names them:
"features[0:5]" are the children 0 to 4 of `features`. Regions may lie in others: then the second run of
the outer one checkpoints the inner ones. Rows of one nn.Sequential do not overlap.

The tensors among a region's positional arguments have keys, as saved tensors do (saved_names.py): the
region's name and the number of the tensor, "layer1.0#input0".
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROW = re.compile(r"(.+)\[([0-9]{1,9}):([0-9]{1,9})\]", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Region:
    """`path` is the module's. `row`: of its children, from the first to one past the last; None: the
    whole module."""

    name: str
    path: str
    row: tuple[int, int] | None = None


def region_of(name: str) -> Region:
    found = ROW.fullmatch(name)
    if found is None:
        return Region(name, name)
    return Region(name, found[1], (int(found[2]), int(found[3])))


def faulty_row(regions: Iterable[Region]) -> tuple[int, str] | None:
    """The number of the first region that cannot be, and what is wrong with it; None: all can."""
    rows: dict[str, list[Region]] = {}
    for number, region in enumerate(regions):
        if region.row is None:
            continue
        first, end = region.row
        if end <= first:
            return number, f"'{region.name}' has no children"
        for other in rows.setdefault(region.path, []):
            assert other.row is not None
            if first < other.row[1] and other.row[0] < end:
                return number, f"'{region.name}' overlaps '{other.name}'"
        rows[region.path].append(region)
    return None


def input_key(region: str, number: int) -> str:
    return f"{region}#input{number}"


def is_key(text: str) -> bool:
    """Whether it is one of a saved tensor's or of a region's input."""
    _, mark, number = text.rpartition("#")
    number = number.removeprefix("input")
    return bool(mark) and number.isdecimal() and number.isascii()
