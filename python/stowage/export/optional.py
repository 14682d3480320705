"""Modules of one chain that differ in what some of them lack.

The first block of a stage has a projection of its shortcut, a block at rate 0 has no scale. Where
leaving such items out, so that their name stands for what they read first, gives the other module
exactly, the two are one block whose items have a condition (`when`).
"""

import copy

from .capture import Value
from .tree import Group, Item


def unify_chain(group):
    """Gives the numbered items of a group one structure, if they are of one class."""
    for item in group.items:
        if isinstance(item, Group):
            unify_chain(item)
    alike = [x for x in group.items if isinstance(x, Group) and x.name[-1:].isdigit()]
    if len(alike) < 2 or len({x.kind for x in alike}) > 1:
        return
    longest = max(alike, key=lambda x: len(x.items))
    for other in alike:
        if other is not longest and len(other.items) < len(longest.items):
            completed(other, longest)


def same_item(a, b):
    return a.name == b.name and a.kind == b.kind and isinstance(a, Group) == isinstance(b, Group)


def matched(short, long):
    """For each item of the longer list the one of the shorter that it is, or None; None where the
    shorter has others."""
    result, at = [], 0
    for item in long:
        if at < len(short) and same_item(short[at], item):
            result.append(short[at])
            at += 1
        else:
            result.append(None)
    return result if at == len(short) else None


def phantom(item, values):
    """A copy of the item; `values` maps the original's Values to ours."""
    made = copy.copy(item)
    for value in item.outputs():
        values.setdefault(value, Value("result", value.shape, value.dtype))
    if isinstance(item, Group):
        inner = dict(values)
        made.items = [phantom(x, inner) for x in item.items]
        made.read = [values.get(v, v) for v in item.read]
        made.given = [values[v] for v in item.given]
        return made
    made.layer = copy.copy(item.layer)
    made.layer.inputs = [values.get(v, v) for v in item.layer.inputs]
    made.layer.outputs = [values[v] for v in item.layer.outputs]
    return made


def completed(short, long):
    """Adds to `short` what only `long` has, as absent items, if they can be passed by."""
    pairs = matched(short.items, long.items)
    if pairs is None or len(short.read) != len(long.read):
        return
    values = dict(zip(long.read, short.read))
    passed_by = {}  # output of an absent item -> what it stands for
    items, rewrites = [], []
    for item, own in zip(long.items, pairs):
        if own is None:
            made = phantom(item, values)
            made.absent = made.optional = True
            if not made.inputs() or len(made.outputs()) != 1:
                return
            passed_by[made.outputs()[0]] = made.inputs()[0]
            items.append(made)
            continue
        if len(own.inputs()) != len(item.inputs()) or len(own.outputs()) != len(item.outputs()):
            return
        for place, theirs in enumerate(item.inputs()):
            expected, actual = values.get(theirs), own.inputs()[place]
            through = expected
            while through in passed_by:
                through = passed_by[through]
            if expected is None or through is not actual:
                return
            if expected is not actual:
                rewrites.append((own, actual, expected))
        values.update(zip(item.outputs(), own.outputs()))
        items.append(own)
    if [values.get(v) for v in long.given] != short.given:
        return
    for own, actual, expected in rewrites:
        redirect(own, actual, expected)
    for item, own in zip(long.items, pairs):
        item.optional = item.optional or own is None
    short.items = items


def redirect(item, actual, expected):
    """What read `actual` reads `expected`."""
    if isinstance(item, Item):
        item.layer.inputs = [expected if v is actual else v for v in item.layer.inputs]
        return
    item.read = [expected if v is actual else v for v in item.read]
    for inner in item.items:
        redirect(inner, actual, expected)
