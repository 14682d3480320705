"""Blocks of one class, of which some lack layers that the others have.

The first block of a stage has a projection of its shortcut, a block at rate 0 has no scale. If leaving
such layers out of the longer block, so that their readers read their first input instead, gives the
shorter one exactly, the two become one block whose optional layers have a condition (`when`).
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
                found = complete(other, longest)
                if found:
                    replace_readers(root, other, *found)
                    renamed[found[0]] = found[1]
    return renamed


def replace_readers(group: Group, except_in: Group, old: Value, new: Value) -> None:
    """Replaces `old` by `new` wherever it is read outside the group `except_in`."""
    if group is except_in:
        return
    group.read = [new if v is old else v for v in group.read]
    group.given = [new if v is old else v for v in group.given]
    for item in group.items:
        if isinstance(item, Group):
            replace_readers(item, except_in, old, new)
        else:
            item.layer.inputs = [new if v is old else v for v in item.layer.inputs]


def same_item(a: Item | Group, b: Item | Group) -> bool:
    return a.name == b.name and a.kind == b.kind and isinstance(a, Group) == isinstance(b, Group)


def matched(short: list[Item | Group],
            long: list[Item | Group]) -> list[Item | Group | None] | None:
    """For each item of the longer list the same item of the shorter, or None where that lacks it; None
    for all where the shorter list has items that the longer lacks."""
    result: list[Item | Group | None] = []
    at = 0
    for item in long:
        if at < len(short) and same_item(short[at], item):
            result.append(short[at])
            at += 1
        else:
            result.append(None)
    return result if at == len(short) else None


def absent_copy(item: Item | Group, values: dict[Value, Value]) -> Item | Group:
    """A copy of the item for a group that lacks it; `values` maps the original's Values to the copy's."""
    for value in item.outputs():
        values.setdefault(value, Value("result", value.shape, value.dtype))
    if isinstance(item, Group):
        inner = dict(values)
        group = copy.copy(item)
        group.items = [absent_copy(x, inner) for x in item.items]
        group.read = [values.get(v, v) for v in item.read]
        group.given = [values[v] for v in item.given]
        return group
    made = copy.copy(item)
    made.layer = copy.copy(item.layer)
    made.layer.inputs = [values.get(v, v) for v in item.layer.inputs]
    made.layer.outputs = [values[v] for v in item.layer.outputs]
    return made


def complete(short: Group, long: Group) -> tuple[Value, Value] | None:
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
            made = absent_copy(item, values)
            made.absent = True
            if len(made.outputs()) != 1:
                return None
            if made.inputs():
                passed_by[made.outputs()[0]] = made.inputs()[0]
            items.append(made)
            continue
        if len(own.inputs()) != len(item.inputs()) or len(own.outputs()) != len(item.outputs()):
            return None
        swap_operands_of_sum(item, own, values, passed_by)
        for place, theirs in enumerate(item.inputs()):
            expected, actual = values.get(theirs), own.inputs()[place]
            if expected is None or without_absent(expected, passed_by) is not actual:
                return None
            if expected is not actual:
                rewrites.append((own, actual, expected))
        values.update(zip(item.outputs(), own.outputs()))
        items.append(own)
    if any(v not in values for v in long.given):
        return None
    given = [values[v] for v in long.given]
    if [without_absent(v, passed_by) for v in given] != short.given:
        return None
    for own, actual, expected in rewrites:
        replace_inputs(own, actual, expected)
    short.items = items
    if given == short.given or len(given) != 1:
        return None
    before, short.given = short.given[0], given
    return before, given[0]


def swap_operands_of_sum(item: Item | Group, own: Item | Group, values: dict[Value, Value],
             passed_by: dict[Value, Value]) -> None:
    """Swaps the operands of the sum `own` where it then reads what `item` reads, and its result keeps its
    memory format."""
    if not isinstance(item, Item) or not isinstance(own, Item):
        return
    if item.kind != "add" or item.layer.attributes.get("in_place") or not same_memory_format(
            *own.inputs()):
        return
    wanted = [without_absent(values.get(v), passed_by) for v in item.inputs()]
    if own.inputs() != wanted and own.inputs()[::-1] == wanted:
        own.layer.inputs = own.layer.inputs[::-1]


def without_absent(value: Any, passed_by: dict[Value, Value]) -> Any:
    """The value that is read where absent items are left out."""
    while value in passed_by:
        value = passed_by[value]
    return value


def replace_inputs(item: Item | Group, actual: Value, expected: Value) -> None:
    """Replaces `actual` by `expected` among the inputs of the item and of its items."""
    if isinstance(item, Item):
        item.layer.inputs = [expected if v is actual else v for v in item.layer.inputs]
        return
    item.read = [expected if v is actual else v for v in item.read]
    for inner in item.items:
        replace_inputs(inner, actual, expected)
