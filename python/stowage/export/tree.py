"""The module hierarchy around the layers.

A Group is one call of a module: its items are layers and Groups in the order in which they run,
named relative to it. A module that is one layer is that layer, under the module's name. Modules
that are never called but hold others (nn.ModuleList) become Groups too, where what they hold runs
together.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

from .layers import Layer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .capture import Value

CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")


@dataclasses.dataclass(eq=False)
class Item:
    """A layer under its name in the group; `name` is "" where PyTorch has none."""

    name: str
    layer: Layer
    absent: bool = False  # the group lacks it, and others like it do not (optional.py)

    @property
    def kind(self) -> str:
        return self.layer.operator

    def inputs(self) -> list[Value]:
        return self.layer.inputs

    def outputs(self) -> list[Value]:
        return self.layer.outputs


@dataclasses.dataclass(eq=False)
class Group:
    """One call of a module, or a container of modules that run together."""

    name: str
    kind: str  # the module's class
    items: list[Item | Group]
    absent: bool = False
    read: list[Value] = dataclasses.field(default_factory=list)  # from outside, in order
    given: list[Value] = dataclasses.field(default_factory=list)  # that are read outside

    def inputs(self) -> list[Value]:
        return self.read

    def outputs(self) -> list[Value]:
        return self.given


def build(layers: list[Layer], parent: str) -> Group:
    """The root Group; `parent` is the path of the module whose layers these are."""
    return Group("", "", grouped(layers, 0, parent))


def grouped(layers: list[Layer], at: int, parent: str) -> list[Item | Group]:
    """Items for layers whose first `at` scopes are the parent's and its parents'."""
    items: list[Item | Group] = []
    for key, found in itertools.groupby(layers, key=lambda x: x.scopes[at] if at < len(x.scopes)
                                      else None):
        run = list(found)
        if key is None:
            items += [Item(layer.called, layer) for layer in run]
            continue
        path, kind = key
        inner = grouped(run, at + 1, path)
        name = relative(path, parent)
        if len(inner) == 1 and isinstance(inner[0], Item):
            inner[0].name = name
            items.append(inner[0])
        else:
            items.append(Group(name, kind, inner))
    return containers(items)


def relative(path: str, parent: str) -> str:
    """The path below its parent's, without the mark of a second call."""
    path, parent = path.partition("@")[0], parent.partition("@")[0]
    if parent and path.startswith(parent + "."):
        return path[len(parent) + 1:]
    return path if not parent else path.rpartition(".")[2]


def containers(items: list[Item | Group]) -> list[Item | Group]:
    """Items named `blocks.0`, `blocks.1` gathered under a Group `blocks`, if they run together."""
    result: list[Item | Group] = []
    for head, found in itertools.groupby(items, key=lambda x: x.name.partition(".")[0]
                                       if "." in x.name else None):
        run = list(found)
        others = [x for x in items if x not in run and x.name.partition(".")[0] == head]
        if head is None:
            result += run
        elif others or len(run) < 2:
            for item in run:
                item.name = item.name.replace(".", "_")
            result += run
        else:
            for item in run:
                item.name = item.name.partition(".")[2]
            result.append(Group(head, head, containers(run)))
    return result


def mark_ends(root: Group, read_at_the_end: Sequence[Value]) -> None:
    """Fills `read` and `given` of every group."""
    readers: dict[Value, list[list[Group]]] = {}  # the groups around each reader

    def collect(group: Group, path: list[Group]) -> None:
        for item in group.items:
            if isinstance(item, Group):
                collect(item, path + [item])
            else:
                for value in item.inputs():
                    readers.setdefault(value, []).append(path)

    collect(root, [])

    def settle(group: Group, depth: int) -> None:
        made, read = [], []
        for item in group.items:
            if isinstance(item, Group):
                settle(item, depth + 1)
            for value in item.inputs():
                if value not in made and value not in read:
                    read.append(value)
            made += item.outputs()
        group.read = read
        if group is root:
            return

        def outside(value: Value) -> bool:
            return value in read_at_the_end or any(
                len(path) < depth or path[depth - 1] is not group
                for path in readers.get(value, []))

        group.given = [value for value in made if outside(value)] or made[-1:]

    settle(root, 0)
