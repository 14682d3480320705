"""The description's text: blocks, then layers, in the style of configs/models."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, TypeGuard

from .arguments import atom_text
from .blocks import Blocks, Definition, Instance, Leaf, Part, Read, Slot
from .catalogue import OPERATORS, defaults_of, text_of

if TYPE_CHECKING:
    from .layers import Layer

# Names that blocks may not take: operators' and keys'.
TAKEN = OPERATORS | {"layer", "input", "output", "name", "from", "repeat", "when", "index", "max", "min"}


@dataclasses.dataclass
class Line:
    """A layer. `reads` are the names of what it reads; `name` None: the reader gives it one."""

    operator: str
    name: str | None
    reads: list[str]
    attributes: list[Slot]


class LayerList:
    """The layers of a block or of the model, while they are written. A block that has one instance is
    written into the list that contains it."""

    def __init__(self, inputs: list[str]) -> None:
        self.inputs = inputs  # their texts
        self.lines: list[Line] = []
        self.names: set[str] = set()
        self.counts: dict[str, int] = {}

    def unnamed(self, operator: str) -> str:
        """The name that the reader gives the next layer of that operator."""
        return f"{operator}_{self.counts.get(operator, 0) + 1}"

    def add(self, operator: str, name: str | None, reads: list[str], attributes: list[Slot]) -> str:
        name = self.distinct(name) if name else None
        automatic = self.unnamed(operator)
        self.counts[operator] = self.counts.get(operator, 0) + 1
        if name is None and automatic in self.names:
            name = self.distinct(operator)
        self.names.add(name or automatic)
        self.lines.append(Line(operator, name, reads, attributes))
        return name or automatic

    def distinct(self, name: str) -> str:
        if name == "input":
            name = "input_layer"
        found, number = name, 2
        while found in self.names or found in self.inputs:
            found, number = f"{name}_{number}", number + 1
        return found


def layer_name(name: str, kind: str) -> str | None:
    """A module's path as a name: numbers are joined to what stands before them, or to the kind."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if not name:
        return None
    if not name[0].isalpha():
        return f"{kind}_{name.lstrip('_')}"
    return name


class Description:
    """The blocks of a description, each written once."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.block_names: dict[Definition, str] = {}
        # The lines of each, and the texts of its outputs; None while it is being written.
        self.written_blocks: dict[Definition, tuple[LayerList, list[str]] | None] = {}

    def block_name(self, definition: Definition) -> str:
        if definition not in self.block_names:
            name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_",
                          definition.name or "block").lower()
            name = re.sub(r"[^a-z0-9_]", "_", name).strip("_")
            name = name if name[:1].isalpha() else f"block_{name}"
            name = f"{name}_block" if name in TAKEN else name
            found, number = name, 2
            while found in self.block_names.values():
                found, number = f"{name}_{number}", number + 1
            self.block_names[definition] = found
        return self.block_names[definition]

    def is_inlined(self, part: Part) -> TypeGuard[Instance]:
        """Whether it is a block of one instance, which is written where it stands."""
        return isinstance(part, Instance) and len(part.definition.instances) == 1

    def write_items(self, definition: Definition, parts: list[Part], at: LayerList, prefix: str,
                inputs: list[str]) -> list[str]:
        """Writes the definition's items into the list `at`; returns the names of its outputs."""
        ends: list[list[str]] = []  # by item, the texts of its outputs

        def text(read: Read) -> str:
            return inputs[read[1]] if read[0] == "input" else ends[read[1]][read[2]]

        for number, part in enumerate(parts):
            reads = [text(read) for read in definition.reads[number]]
            raw = definition.names[number]
            name = f"{prefix}_{raw}" if prefix and raw else raw
            slots = definition.slots[number]
            if ("when", "false") in slots:
                ends.append(reads[:1])
                continue
            if self.is_inlined(part) and not definition.optional[number]:
                ends.append(self.write_items(part.definition, part.parts, at,
                                         name or part.definition.kind.lower(), reads))
                continue
            ends.append(self.item(at, part, name, reads, slots, definition.output_counts[number]))
        return [text(output) for output in definition.outputs]

    def item(self, at: LayerList, part: Part, name: str, reads: list[str], slots: list[Slot],
             outputs: int) -> list[str]:
        if isinstance(part, Leaf):
            operator = part.operator
            attributes = without_defaults(operator, slots)
            if part.layer.ties:
                attributes.append(("tie", self.tie(part.layer)))
            found = at.add(operator, layer_name(name, operator), reads, attributes)
            part.layer.written_name = found
        else:
            self.write_block(part.definition)
            operator = self.block_name(part.definition)
            defaults = {a.name: atom_text(a.default) for a in part.definition.arguments
                        if a.default is not None}
            attributes = [(n, t) for n, t in slots if defaults.get(n) != t and (n, t) != (
                "when", "true")]
            found = at.add(operator, layer_name(name, "layer"), reads, attributes)
        splits = outputs > 1 or operator == "split"
        return [f"{found}.{n}" for n in range(outputs)] if splits else [found]

    def tie(self, layer: Layer) -> str:
        ties = {name: f"{owner.written_name}.{theirs}"
                for name, (owner, theirs) in layer.ties.items()}
        return "{" + ", ".join(f"{k}: {v}" for k, v in ties.items()) + "}"

    # ---- blocks

    def write_block(self, definition: Definition) -> None:
        if definition in self.written_blocks:
            return
        self.written_blocks[definition] = None
        inputs = (["input"] if definition.inputs == 1 else
                  [f"input.{n}" for n in range(definition.inputs)])
        at = LayerList(inputs)
        parts = definition.instances[0].parts
        outputs = self.write_items(definition, parts, at, "", inputs)
        # Blocks that this one uses were written meanwhile: it comes after them.
        del self.written_blocks[definition]
        self.written_blocks[definition] = (at, outputs)

    def lists(self) -> list[LayerList]:
        """The layers of all blocks, as LayerLists."""
        return [block[0] for block in self.written_blocks.values() if block is not None]

    def block_lines(self) -> list[str]:
        return [line for definition, block in self.written_blocks.items() if block is not None
                for line in self.lines_of(definition, *block)]

    def lines_of(self, definition: Definition, at: LayerList, outputs: list[str]) -> list[str]:
        lines = [f"  {self.block_name(definition)}:"]
        if definition.arguments:
            lines.append("    arguments: {" + ", ".join(
                f"{a.name}: {atom_text(a.default) if a.default is not None else ''}"
                for a in definition.arguments) + "}")
        lines.append("    layers:")
        lines += layer_lines(at, outputs, "      ")
        if outputs != [last_name(at)]:
            text = outputs[0] if len(outputs) == 1 else f"[{', '.join(outputs)}]"
            lines.append(f"    output: {text}")
        return lines


def without_defaults(operator: str, slots: list[Slot]) -> list[Slot]:
    defaults = defaults_of(operator)
    result = []
    for name, text in slots:
        if name == "when" and text == "true":
            continue
        default = defaults.get(name)
        if default is not None and text == text_of(default):
            continue
        result.append((name, text))
    return result


def automatic_names(at: LayerList) -> list[str]:
    """The name of each line, with those that the reader gives."""
    counts: dict[str, int] = {}
    names = []
    for line in at.lines:
        counts[line.operator] = counts.get(line.operator, 0) + 1
        names.append(line.name or f"{line.operator}_{counts[line.operator]}")
    return names


def last_name(at: LayerList) -> str | None:
    names = automatic_names(at)
    return names[-1] if names else None


def layer_lines(at: LayerList, outputs: list[str], indent: str) -> list[str]:
    """The lines; `from` where a layer reads something else than the one before it, and a name where
    it is read by another than the next."""
    names = automatic_names(at)
    read: set[str] = set()
    previous = at.inputs[0] if len(at.inputs) == 1 else None
    sources = []
    for number, line in enumerate(at.lines):
        implied = previous is not None and line.reads == [previous]
        sources.append(None if implied or not line.reads else line.reads)
        if not implied:
            read.update(text.partition(".")[0] for text in line.reads)
        previous = names[number]
    read.update(text.partition(".")[0] for text in outputs if text != names[-1])
    lines = []
    for line, source, full in zip(at.lines, sources, names):
        words = []
        if line.name or full in read:
            words.append(f"name: {full}")
        if source:
            words.append(f"from: {source[0] if len(source) == 1 else '[' + ', '.join(source) + ']'}")
        words += [f"{k}: {v}" for k, v in line.attributes]
        lines.append(f"{indent}- {line.operator}" + (": {" + ", ".join(words) + "}" if words else ""))
    return lines
