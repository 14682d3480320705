"""Blocks: groups of one structure, written once with what differs as arguments.

Each Group becomes an Instance of a Definition. Two groups share a definition if they have the same
items under the same names, joined in the same way; their numbers may differ. A group whose items
are a chain of one definition, numbered from 0, is a Chain: `repeat`.

A number is an Atom, a factor with the symbol that it multiplies. The numbers of a place in a
definition, over all its instances, are one number, an argument, or a whole multiple of one.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeAlias

from .catalogue import attributes_of
from .sizes import Size
from .tree import CONTAINERS, Group, Item

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .arguments import Argument
    from .capture import Value
    from .layers import Layer


@dataclasses.dataclass(frozen=True)
class Atom:
    """A factor and the symbol that it multiplies; without a symbol a plain number, or true or false."""

    value: Any
    symbol: str = ""


ANY = Atom(None)  # this object is the number of an absent layer: whatever the others have
Row: TypeAlias = list[Atom]  # the numbers of one place: an Atom an instance, or a link of a chain
# How an attribute is written: "one" number, ("text", what it says), or ("list", layouts...).
Layout: TypeAlias = str | tuple[Any, ...]
Read: TypeAlias = tuple[Any, ...]  # ("input", number) or ("item", number, output)
Slot: TypeAlias = tuple[str, str]  # an attribute and the text of its value


@dataclasses.dataclass(eq=False)
class Leaf:
    """A layer as an item of an instance."""

    operator: str
    places: list[tuple[str, Layout]]  # attributes
    atoms: Row  # of all places, in order
    layer: Layer


@dataclasses.dataclass(eq=False)
class Instance:
    """One group of a definition's structure."""

    definition: Definition
    parts: list[Part]  # one an item
    present: list[bool]
    arguments: Row = dataclasses.field(default_factory=list)  # of the definition's arguments


@dataclasses.dataclass(eq=False)
class Chain:
    """Instances of one definition of which each reads the one before it."""

    definition: Definition
    links: list[Instance]


@dataclasses.dataclass(eq=False)
class Definition:
    """`names`, `optional` and `reads` are by item; a read is ("input", number) or ("item", number,
    output). `slots` (arguments.py) says of each item what its attributes are written as."""

    kind: str  # the module's class
    name: str  # from its first instance
    names: list[str]
    optional: list[bool]
    reads: list[list[Read]]
    output_counts: list[int]
    inputs: int
    outputs: list[Read]
    height: int
    instances: list[Instance] = dataclasses.field(default_factory=list)
    arguments: list[Argument] = dataclasses.field(default_factory=list)
    slots: list[list[Slot]] = dataclasses.field(default_factory=list)
    block: str = ""


Part: TypeAlias = Leaf | Instance | Chain


class Blocks:
    """All definitions of a model; `root` is the Instance of the whole."""

    def __init__(self, root: Group) -> None:
        self.definitions: dict[tuple[Any, ...], Definition] = {}
        self.dropped: list[Definition] = []  # kept, since keys hold identities
        self.root = self.instance(root)

    def instance(self, group: Group, absent: bool = False) -> Instance:
        parts, keys = [], []
        for item in group.items:
            part, key = self.part(item, absent)
            parts.append(part)
            keys.append((item.name, key))
        origins: dict[Value, Read] = {
            value: ("item", number, at) for number, item in enumerate(group.items)
            for at, value in enumerate(item.outputs())}
        origins |= {value: ("input", number) for number, value in enumerate(group.read)
                    if value not in origins}
        reads = [[origins[v] for v in item.inputs()] for item in group.items]
        outputs = [origins[v] for v in group.given]
        own = id(group) if any(map(shares_parameters, layers_of(group))) else 0
        key = (own, group.kind, str(keys), str(reads), str(outputs), len(group.read))
        if key not in self.definitions:
            height = 1 + max((self.height(part) for part in parts), default=0)
            self.definitions[key] = Definition(
                group.kind, definition_name(group), [x.name for x in group.items],
                [False] * len(group.items), reads, [len(x.outputs()) for x in group.items],
                len(group.read), outputs, height)
        definition = self.definitions[key]
        made = Instance(definition, parts, [not x.absent for x in group.items])
        definition.optional = [o or x.absent for o, x in zip(definition.optional, group.items)]
        definition.instances.append(made)
        return made

    @staticmethod
    def height(part: Part) -> int:
        return part.definition.height if isinstance(part, (Instance, Chain)) else 0

    def part(self, item: Item | Group, absent: bool) -> tuple[Part, tuple[Any, ...]]:
        absent = absent or item.absent
        if not isinstance(item, Group):
            return self.leaf(item, absent)
        links = self.links(item, absent)
        if links:
            chain = Chain(links[0].definition, links)
            return chain, ("chain", id(chain.definition))
        instance = self.instance(item, absent)
        return instance, ("block", id(instance.definition))

    def links(self, group: Group, absent: bool) -> list[Instance] | None:
        """The Instances of a group that is a chain, else None."""
        items = group.items
        if len(items) < 2 or not numbered([x.name for x in items]):
            return None
        groups = [x for x in items if isinstance(x, Group)]
        if len(groups) < len(items) or any(x.absent or len(x.given) != 1 or not x.read
                                           for x in groups):
            return None
        for before, item in zip(groups, groups[1:]):
            if item.read[0] is not before.given[0] or item.read[1:] != groups[0].read[1:]:
                return None
        if group.read != groups[0].read or group.given != [groups[-1].given[0]]:
            return None
        known = {key: len(d.instances) for key, d in self.definitions.items()}
        links = [self.instance(x, absent) for x in groups]
        if len({id(link.definition) for link in links}) == 1:
            return links
        for key in [k for k in self.definitions if k not in known]:
            self.dropped.append(self.definitions.pop(key))  # they were only tried
        for key, count in known.items():
            del self.definitions[key].instances[count:]
        return None

    @staticmethod
    def leaf(item: Item, absent: bool) -> tuple[Leaf, tuple[Any, ...]]:
        layer = item.layer
        places, atoms = [], []
        for name, value in attributes_of(layer).items():
            written, found = atoms_of(value)
            places.append((name, written))
            atoms += found
        if absent:
            atoms = [ANY] * len(atoms)
        leaf = Leaf(layer.operator, places, atoms, layer)
        return leaf, (layer.operator, places, len(layer.inputs), bool(layer.ties))


def layers_of(group: Group) -> Iterator[Layer]:
    for item in group.items:
        if isinstance(item, Group):
            yield from layers_of(item)
        else:
            yield item.layer


def shares_parameters(layer: Layer) -> bool:
    """Whether another layer has one of its parameters: `tie` reaches no further than one list of
    layers, so that such a layer cannot stand in a block that is used twice."""
    return bool(layer.ties) or layer.is_tied


def definition_name(group: Group) -> str:
    """A container goes by its own name, where that is a word; others by their class."""
    word = group.name.rpartition("_")[2] if group.name[-1:].isdigit() else group.name
    return word if group.kind in CONTAINERS and word[:1].isalpha() else group.kind


def numbered(names: list[str]) -> bool:
    """Whether the names are 0, 1, 2... or layer_0, layer_1, layer_2..."""
    stem = names[0][:-1]
    return names == [f"{stem}{n}" for n in range(len(names))]


def atoms_of(value: Any) -> tuple[Layout, list[Atom]]:
    """(how it is written, Atoms). Words and sums of symbols belong to the structure."""
    if isinstance(value, list):
        written, atoms = [], []
        for item in value:
            how, found = atoms_of(item)
            written.append(how)
            atoms += found
        return ("list", *written), atoms
    if isinstance(value, Size):
        if len(value.terms) == 1:
            return "one", [Atom(value.terms[0][1], value.terms[0][0])]
        return ("text", str(value)), []
    if isinstance(value, str):
        return ("text", value), []
    return "one", [Atom(value)]
