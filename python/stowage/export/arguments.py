"""Which numbers of a block are its arguments, and how each place is written.

`find_arguments(blocks)` goes from the innermost definitions to the root. For each it collects the entries
of all items (an attribute of a layer, an argument of a block within, a condition, a number of
repetitions); an entry has one number an instance, or a few where it depends on `index`. Then every
such row of numbers is a constant, an argument, or a multiple of an argument.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeAlias

from .blocks import ANY, Atom, Blocks, Chain, Definition, Instance, Layout, Leaf, Row, Slot
from .catalogue import text_of
from .sequences import sequence_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WIDTHS = ("heads", "channels", "features", "groups", "shape", "count", "sizes")


@dataclasses.dataclass
class Argument:
    """An argument of a definition: `row` has its number in each instance."""

    name: str
    family: str
    row: Row
    default: Atom | None = None


# (the argument or None, its factor or the constant, the symbol that multiplies it)
Form: TypeAlias = "tuple[Argument | None, Any, str]"


@dataclasses.dataclass
class Entry:
    """`rows` are of numbers, an Atom an instance; `write` makes the text of those of the rows."""

    item: int
    label: str
    rows: list[Row]
    write: Callable[..., str]


def find_arguments(blocks: Blocks) -> None:
    """Fills `slots` and `arguments` of all definitions, and the instances' arguments."""
    definitions = sorted(blocks.definitions.values(), key=lambda d: d.height)
    for definition in definitions:
        if definition.instances:
            ArgumentFinder(definition).run()


def family_of(label: str) -> str:
    """Widths may stand for one another; other numbers only for those of their own name."""
    last = label.rpartition("_")[2]
    return "width" if last in WIDTHS else last


def atom_text(atom: Atom) -> str:
    """The atom as a description writes it: "3", "seq", "4 * seq"."""
    text = text_of(atom.value)
    if not atom.symbol:
        return text
    return atom.symbol if text == "1" else f"{text} * {atom.symbol}"


class ArgumentFinder:
    """Finds the arguments of one definition."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.instances = definition.instances
        self.arguments: list[Argument] = []

    def run(self) -> None:
        entries = [e for item in range(len(self.definition.names)) for e in self.entries(item)]
        texts = self.texts([(row, e.label, e.item) for e in entries for row in e.rows])
        slots: list[list[Slot]] = [[] for _ in self.definition.names]
        for entry in entries:
            own = [next(texts) for _ in entry.rows]
            if ABSENT_TEXT not in own:
                slots[entry.item].append((entry.label, entry.write(*own)))
        self.definition.slots = slots
        self.give_defaults()
        self.definition.arguments = self.arguments
        for number, instance in enumerate(self.instances):
            instance.arguments = [a.row[number] for a in self.arguments]

    # ---- entries

    def entries(self, item: int) -> Iterator[Entry]:
        parts = [instance.parts[item] for instance in self.instances]
        if self.definition.optional[item]:
            row = [Atom(instance.present[item]) for instance in self.instances]
            yield Entry(item, "when", [row], lambda text: text)
        # All instances of a definition have a part of the same kind here.
        if chains := [part for part in parts if isinstance(part, Chain)]:
            yield from self.chain_entries(item, chains)
        elif instances := [part for part in parts if isinstance(part, Instance)]:
            for number, argument in enumerate(instances[0].definition.arguments):
                yield Entry(item, argument.name, [[p.arguments[number] for p in instances]],
                            lambda text: text)
        else:
            yield from leaf_entries(item, [part for part in parts if isinstance(part, Leaf)])

    def chain_entries(self, item: int, parts: list[Chain]) -> Iterator[Entry]:
        yield Entry(item, "repeat", [[Atom(len(p.links)) for p in parts]], lambda text: text)
        for number, argument in enumerate(parts[0].definition.arguments):
            rows, write = sequence_form([[link.arguments[number] for link in p.links]
                                         for p in parts])
            yield Entry(item, argument.name, rows, write)

    # ---- rows of numbers

    def texts(self, rows: list[tuple[Row, str, int]]) -> Iterator[str]:
        """An iterator over the text of each row. Small widths come first, so that the others are
        their multiples."""
        order = sorted(range(len(rows)), key=lambda n: size_of_row(rows[n][0]))
        forms = {number: self.form(*rows[number]) for number in order}
        position = {id(a): n for n, a in enumerate(self.arguments)}
        firsts = {}
        for number in range(len(rows)):
            argument = forms[number][0]
            if argument is not None and id(argument) not in firsts:
                firsts[id(argument)] = (number, position[id(argument)])
        self.arguments.sort(key=lambda a: firsts[id(a)])
        self.label_arguments(rows, forms)
        return iter([text_of_form(*forms[number]) for number in range(len(rows))])

    def form(self, row: Row, label: str, item: int) -> Form:
        """(argument or None, factor or constant, symbol)."""
        known = [atom for atom in row if atom is not ANY]
        if not known:
            return None, ANY, ""
        if len(set(map(atom_text, known))) == 1:
            return None, known[0], ""
        symbols = {atom.symbol for atom in known}
        symbol = symbols.pop() if len(symbols) == 1 else ""
        plain = [atom if atom is ANY or not symbol else Atom(atom.value) for atom in row]
        family = family_of(label)
        for argument in self.arguments:
            factor = factor_of(argument, plain, family)
            if factor is not None:
                argument.row = [a if a is not ANY or p is ANY else divided(p, factor)
                                for a, p in zip(argument.row, plain)]
                return argument, factor, symbol
        argument = Argument("", family, plain)
        self.arguments.append(argument)
        return argument, 1, symbol

    def label_arguments(self, rows: list[tuple[Row, str, int]], forms: dict[int, Form]) -> None:
        """Names: the attribute's, with the item's before it where that is taken."""
        taken = set()
        for argument in self.arguments:
            number = next(n for n in range(len(rows)) if forms[n][0] is argument)
            label, item = rows[number][1:]
            owner = self.definition.names[item]
            if label == "when":
                wished = [f"has_{owner if owner[:1].isalpha() else self.kind_of(item)}"]
            elif label == "repeat":
                wished = [f"{owner}_repeat" if owner else "repeats"]
            else:
                wished = [label]
            if owner[:1].isalpha():
                wished.append(f"{owner}_{label}")
            name = next((w for w in map(identifier, wished) if w not in taken), None)
            count = 2
            while name is None or name in taken:
                name, count = f"{identifier(wished[0])}_{count}", count + 1
            taken.add(name)
            argument.name = name

    def kind_of(self, item: int) -> str:
        part = self.instances[0].parts[item]
        return getattr(part, "operator", "block")

    def give_defaults(self) -> None:
        """A default where most instances agree, or where an absent layer has no number to give."""
        for argument in self.arguments:
            known = [atom_text(a) for a in argument.row if a is not ANY]
            best = max(known, key=known.count)
            often = known.count(best) > 1 and 2 * known.count(best) > len(known)
            if often or len(known) < len(argument.row):
                argument.default = next(a for a in argument.row
                                        if a is not ANY and atom_text(a) == best)


ABSENT_TEXT = "?"  # what an absent layer would have
RESERVED = ("batch", "seq", "index", "if", "else", "and", "or", "not", "true", "false", "input")


def identifier(name: str) -> str:
    name = "".join(c if c.isalnum() else "_" for c in name)
    if name in RESERVED:
        return name + "_"
    return name if name[:1].isalpha() else f"of_{name}"


def size_of_row(row: Row) -> float:
    numbers = [a.value for a in row if a is not ANY and isinstance(a.value, (int, float))]
    return sum(map(abs, numbers)) / max(len(numbers), 1)


def factor_of(argument: Argument, row: Row, family: str) -> int | None:
    """The whole number that makes the row of the argument's, or None."""
    if argument.family != family:
        return None
    factors = set()
    for theirs, ours in zip(argument.row, row):
        if theirs is ANY or ours is ANY:
            continue
        if theirs == ours and type(theirs.value) is type(ours.value):
            factors.add(1 if theirs.value != 0 or family != "width" else None)
            continue
        whole = all(type(a.value) is int and not a.symbol for a in (theirs, ours))
        if family != "width" or not whole or theirs.value == 0 or ours.value % theirs.value:
            return None
        factors.add(ours.value // theirs.value)
    factors.discard(None)
    factor = factors.pop() if len(factors) == 1 else None
    open_places = [b for a, b in zip(argument.row, row) if a is ANY and b is not ANY]
    if factor != 1 and any(type(b.value) is not int or b.symbol or b.value % (factor or 1)
                           for b in open_places):
        return None
    return factor


def divided(atom: Atom, factor: int) -> Atom:
    return atom if factor == 1 else Atom(atom.value // factor)


def text_of_form(argument: Argument | None, factor: Any, symbol: str) -> str:
    if argument is None:
        return ABSENT_TEXT if factor is ANY else atom_text(factor)
    text = argument.name if factor == 1 else f"{factor} * {argument.name}"
    return f"{text} * {symbol}" if symbol else text


def leaf_entries(item: int, parts: list[Leaf]) -> Iterator[Entry]:
    """An entry an attribute; a list has a row an element."""
    at = 0
    for label, how in parts[0].places:
        count = numbers_in(how)
        rows = [[p.atoms[at + n] for p in parts] for n in range(count)]
        at += count
        yield Entry(item, label, rows, lambda *texts, how=how: attribute_text(how, list(texts)))


def numbers_in(how: Layout) -> int:
    if how == "one":
        return 1
    return sum(map(numbers_in, how[1:])) if how[0] == "list" else 0


def attribute_text(how: Layout, texts: list[str]) -> str:
    """The text of an attribute of that form, from those of its numbers."""
    if how == "one":
        return texts.pop(0)
    if how[0] == "text":
        return how[1]
    return f"[{', '.join(attribute_text(inner, texts) for inner in how[1:])}]"
