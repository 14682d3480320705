"""Modules of one chain that differ in what some of them lack.

The first block of a stage has a projection of its shortcut, a block at rate 0 has no scale. Where
leaving such items out, so that their name stands for what they read first, gives the other module
exactly, the two are one block whose items have a condition (`when`).
"""

from __future__ import annotations

import copy
from typing import Any

from .capture import Value, same_memory_format
from .tree import CONTAINERS, Group, Item


def unify(root: Group) -> dict[Value, Value]:
    """Gives the groups of one class one structure, innermost first, each after the longest of
    them. Returns what became of values that are read outside: {value: its new name in the tree}."""
    classes: dict[str, list[Group]] = {}

    def collect(group: Group) -> None:
        for item in group.items:
            if isinstance(item, Group):
                collect(item)
                if item.kind not in CONTAINERS and item.kind != item.name:
                    classes.setdefault(item.kind, []).append(item)

    collect(root)
    renamed = {}
    for groups in classes.values():
        longest = max(groups, key=lambda x: len(x.items))
        for other in groups:
            if other is not longest and len(other.items) < len(longest.items):
                found = completed(other, longest)
                if found:
                    rename(root, other, *found)
                    renamed[found[0]] = found[1]
    return renamed


def rename(group: Group, except_in: Group, old: Value, new: Value) -> None:
    """What reads `old` outside the group `except_in` reads `new`."""
    if group is except_in:
        return
    group.read = [new if v is old else v for v in group.read]
    group.given = [new if v is old else v for v in group.given]
    for item in group.items:
        if isinstance(item, Group):
            rename(item, except_in, old, new)
        else:
            item.layer.inputs = [new if v is old else v for v in item.layer.inputs]


def same_item(a: Item | Group, b: Item | Group) -> bool:
    return a.name == b.name and a.kind == b.kind and isinstance(a, Group) == isinstance(b, Group)


def matched(short: list[Item | Group],
            long: list[Item | Group]) -> list[Item | Group | None] | None:
    """For each item of the longer list the one of the shorter that it is, or None; None where the
    shorter has others."""
    result: list[Item | Group | None] = []
    at = 0
    for item in long:
        if at < len(short) and same_item(short[at], item):
            result.append(short[at])
            at += 1
        else:
            result.append(None)
    return result if at == len(short) else None


def phantom(item: Item | Group, values: dict[Value, Value]) -> Item | Group:
    """A copy of the item; `values` maps the original's Values to ours."""
    for value in item.outputs():
        values.setdefault(value, Value("result", value.shape, value.dtype))
    if isinstance(item, Group):
        inner = dict(values)
        group = copy.copy(item)
        group.items = [phantom(x, inner) for x in item.items]
        group.read = [values.get(v, v) for v in item.read]
        group.given = [values[v] for v in item.given]
        return group
    made = copy.copy(item)
    made.layer = copy.copy(item.layer)
    made.layer.inputs = [values.get(v, v) for v in item.layer.inputs]
    made.layer.outputs = [values[v] for v in item.layer.outputs]
    return made


def completed(short: Group, long: Group) -> tuple[Value, Value] | None:
    """Adds to `short` what only `long` has, as absent items, if they can be passed by. Where the
    last of them is the group's output, returns (its output before, its output now)."""
    pairs = matched(short.items, long.items)
    if pairs is None or len(short.read) != len(long.read) or len(short.given) != len(long.given):
        return None
    values = dict(zip(long.read, short.read))
    passed_by = {}  # output of an absent item -> what it stands for
    items, rewrites = [], []
    for item, own in zip(long.items, pairs):
        if own is None:
            made = phantom(item, values)
            made.absent = True
            if len(made.outputs()) != 1:
                return None
            if made.inputs():
                passed_by[made.outputs()[0]] = made.inputs()[0]
            items.append(made)
            continue
        if len(own.inputs()) != len(item.inputs()) or len(own.outputs()) != len(item.outputs()):
            return None
        swap_sum(item, own, values, passed_by)
        for place, theirs in enumerate(item.inputs()):
            expected, actual = values.get(theirs), own.inputs()[place]
            if expected is None or through(expected, passed_by) is not actual:
                return None
            if expected is not actual:
                rewrites.append((own, actual, expected))
        values.update(zip(item.outputs(), own.outputs()))
        items.append(own)
    if any(v not in values for v in long.given):
        return None
    given = [values[v] for v in long.given]
    if [through(v, passed_by) for v in given] != short.given:
        return None
    for own, actual, expected in rewrites:
        redirect(own, actual, expected)
    short.items = items
    if given == short.given or len(given) != 1:
        return None
    before, short.given = short.given[0], given
    return before, given[0]


def swap_sum(item: Item | Group, own: Item | Group, values: dict[Value, Value],
             passed_by: dict[Value, Value]) -> None:
    """Turns the sides of our sum where that makes it read what the other's does, and leaves it as
    it lies in memory."""
    if not isinstance(item, Item) or not isinstance(own, Item):
        return
    if item.kind != "add" or item.layer.attributes.get("in_place") or not same_memory_format(
            *own.inputs()):
        return
    wanted = [through(values.get(v), passed_by) for v in item.inputs()]
    if own.inputs() != wanted and own.inputs()[::-1] == wanted:
        own.layer.inputs = own.layer.inputs[::-1]


def through(value: Any, passed_by: dict[Value, Value]) -> Any:
    while value in passed_by:
        value = passed_by[value]
    return value


def redirect(item: Item | Group, actual: Value, expected: Value) -> None:
    """What read `actual` reads `expected`."""
    if isinstance(item, Item):
        item.layer.inputs = [expected if v is actual else v for v in item.layer.inputs]
        return
    item.read = [expected if v is actual else v for v in item.read]
    for inner in item.items:
        redirect(inner, actual, expected)
