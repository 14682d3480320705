"""The description's text: blocks, then layers, in the style of configs/models."""

import re

from .arguments import written
from .blocks import Chain, Instance, Leaf
from .catalogue import OPERATORS, defaults_of
from .yaml_values import text_of

# Names that blocks may not take: operators' and keys'.
TAKEN = OPERATORS | {"layer", "input", "output", "name", "from", "repeat", "when", "index", "max", "min"}


class Written:
    """One list of layers in the making: of a block, or of the model, into which blocks of one
    instance are written out."""

    def __init__(self, inputs):
        self.inputs = inputs  # their texts
        self.lines = []  # [operator, name or None, reads (texts), attributes]
        self.names = set()
        self.counts = {}
        self.wanted = set()  # lines whose name another reads

    def unnamed(self, operator):
        """The name that the reader gives the next layer of that operator."""
        return f"{operator}_{self.counts.get(operator, 0) + 1}"

    def add(self, operator, name, reads, attributes):
        name = self.distinct(name) if name else None
        automatic = self.unnamed(operator)
        self.counts[operator] = self.counts.get(operator, 0) + 1
        if name is None and automatic in self.names:
            name = self.distinct(operator)
        self.names.add(name or automatic)
        self.lines.append([operator, name, reads, attributes])
        return name or automatic

    def distinct(self, name):
        if name == "input":
            name = "input_layer"
        found, number = name, 2
        while found in self.names or found in self.inputs:
            found, number = f"{name}_{number}", number + 1
        return found


def layer_name(name, kind):
    """A module's path as a name: numbers are joined to what stands before them, or to the kind."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if not name:
        return None
    if not name[0].isalpha():
        return f"{kind}_{name.lstrip('_')}"
    return name


class Description:
    def __init__(self, blocks):
        self.blocks = blocks
        self.block_names = {}
        self.written_blocks = {}  # Definition -> (its Written, the texts of its outputs)

    def block_name(self, definition):
        if definition not in self.block_names:
            name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_",
                          definition.called or "block").lower()
            name = re.sub(r"[^a-z0-9_]", "_", name).strip("_")
            name = name if name[:1].isalpha() else f"block_{name}"
            name = f"{name}_block" if name in TAKEN else name
            found, number = name, 2
            while found in self.block_names.values():
                found, number = f"{name}_{number}", number + 1
            self.block_names[definition] = found
        return self.block_names[definition]

    def is_inlined(self, part):
        return isinstance(part, Instance) and len(part.definition.instances) == 1

    def ends_of(self, definition, parts, at, prefix, inputs):
        """Writes the definition's items into the list `at`; returns the texts of its outputs."""
        ends = []  # by item, the texts of its outputs

        def text(read):
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
                ends.append(self.ends_of(part.definition, part.parts, at,
                                         name or part.definition.kind.lower(), reads))
                continue
            ends.append(self.item(at, part, name, reads, slots, definition.output_counts[number]))
        return [text(output) for output in definition.outputs]

    def item(self, at, part, name, reads, slots, outputs):
        if isinstance(part, Leaf):
            operator = part.operator
            attributes = without_defaults(operator, slots)
            if part.layer.ties:
                attributes.append(("tie", self.tie(part.layer)))
            name = layer_name(name, operator)
        else:
            self.write_block(part.definition)
            operator = self.block_name(part.definition)
            defaults = {a.name: written(a.default) for a in part.definition.arguments
                        if a.default is not None}
            attributes = [(n, t) for n, t in slots if defaults.get(n) != t and (n, t) != (
                "when", "true")]
            name = layer_name(name, "layer")
        found = at.add(operator, name, reads, attributes)
        if isinstance(part, Leaf):
            self.named(part.layer, found)
        splits = outputs > 1 or operator == "split"
        return [f"{found}.{n}" for n in range(outputs)] if splits else [found]

    def named(self, layer, name):
        layer.written_name = name

    def tie(self, layer):
        ties = {name: f"{owner.written_name}.{theirs}"
                for name, (owner, theirs) in layer.ties.items()}
        return "{" + ", ".join(f"{k}: {v}" for k, v in ties.items()) + "}"

    # ---- blocks

    def write_block(self, definition):
        if definition in self.written_blocks:
            return
        self.written_blocks[definition] = None
        inputs = (["input"] if definition.inputs == 1 else
                  [f"input.{n}" for n in range(definition.inputs)])
        at = Written(inputs)
        parts = definition.instances[0].parts
        outputs = self.ends_of(definition, parts, at, "", inputs)
        # Blocks that this one uses were written meanwhile: it comes after them.
        del self.written_blocks[definition]
        self.written_blocks[definition] = (at, outputs)

    def lists(self):
        """The layers of all blocks, as Written."""
        return [at for at, _ in self.written_blocks.values()]

    def block_lines(self):
        return [line for definition, (at, outputs) in self.written_blocks.items()
                for line in self.lines_of(definition, at, outputs)]

    def lines_of(self, definition, at, outputs):
        lines = [f"  {self.block_name(definition)}:"]
        if definition.arguments:
            lines.append("    arguments: {" + ", ".join(
                f"{a.name}: {written(a.default) if a.default is not None else ''}"
                for a in definition.arguments) + "}")
        lines.append("    layers:")
        lines += layer_lines(at, outputs, "      ")
        if outputs != [last_name(at)]:
            text = outputs[0] if len(outputs) == 1 else f"[{', '.join(outputs)}]"
            lines.append(f"    output: {text}")
        return lines


def without_defaults(operator, slots):
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


def automatic_names(at):
    """The name of each line, with those that the reader gives."""
    counts, names = {}, []
    for operator, name, _, _ in at.lines:
        counts[operator] = counts.get(operator, 0) + 1
        names.append(name or f"{operator}_{counts[operator]}")
    return names


def last_name(at):
    names = automatic_names(at)
    return names[-1] if names else None


def layer_lines(at, outputs, indent):
    """The lines; `from` where a layer reads something else than the one before it, and a name where
    it is read by another than the next."""
    names = automatic_names(at)
    read = set()
    previous = at.inputs[0] if len(at.inputs) == 1 else None
    sources = []
    for number, (_, _, reads, _) in enumerate(at.lines):
        implied = previous is not None and reads == [previous]
        sources.append(None if implied or not reads else reads)
        if not implied:
            read.update(text.partition(".")[0] for text in reads)
        previous = names[number]
    read.update(text.partition(".")[0] for text in outputs if text != names[-1])
    lines = []
    for (operator, name, _, attributes), source, full in zip(at.lines, sources, names):
        words = []
        if name or full in read:
            words.append(f"name: {full}")
        if source:
            words.append(f"from: {source[0] if len(source) == 1 else '[' + ', '.join(source) + ']'}")
        words += [f"{k}: {v}" for k, v in attributes]
        lines.append(f"{indent}- {operator}" + (": {" + ", ".join(words) + "}" if words else ""))
    return lines
