"""From a Source to the text of a description: all steps of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stowage.errors import StowageError
from stowage.sources.source import OtherBatchFails

from . import arguments, blocks, capture, convert, optional, shared_defaults, tree, yaml_text
from .catalogue import defaults_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from stowage.sources.source import Example, Source

    from .capture import Value
    from .layers import Converted, Layer

BATCHES = (2, 3)


class WithLoss(torch.nn.Module):
    """The model and its loss as one module, so that both are traced."""

    def __init__(self, model: torch.nn.Module, loss: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, arguments: tuple[Any, ...], keywords: dict[str, Any],
                target: Any) -> tuple[Any, Any]:
        output = self.model(*arguments, **keywords)
        return output, self.loss(output, target)


def example_inputs(example: Example) -> tuple[Any, ...]:
    return (example.arguments, example.keywords, example.target)


def converted(source: Source,
              other_seq: tuple[int, Callable[[int], Example]] | None = None) -> Converted:
    """The layers of a Source. `other_seq` is (length, example): the same model's inputs at another
    length, where its sequence length shall be a symbol."""
    if source.loss is None:
        raise StowageError(f"{source.name} has no loss", "a Source has one: loss(output, target)")
    if source.fixed is not None:
        raise StowageError(source.fixed.reason or "no input follows the batch", source.fixed.hint)
    module = WithLoss(source.model.train(), source.loss)
    points = [(batch, source.seq or 0) for batch in BATCHES]
    examples = {points[0]: source.example, points[1]: source.example}
    if other_seq is not None:
        points.append((BATCHES[0], other_seq[0]))
        examples[points[2]] = other_seq[1]

    def inputs_at(batch: int, seq: int) -> tuple[Any, ...]:
        made = examples[batch, seq](batch)
        module.loss = made.loss or module.loss
        return example_inputs(made)

    try:
        captured = capture.capture(module, inputs_at, points)
    except OtherBatchFails as failure:
        raise StowageError(f"{source.name} has no description: {failure}",
                           "record it at the batch that is asked for") from None
    if captured.unexplained:
        raise StowageError("sizes depend on the batch in no way that a description can say: in "
                           + ", ".join(dict.fromkeys(captured.unexplained)))
    found = convert.convert(captured)
    if not found.losses:
        raise StowageError("the catalogue does not have the model's loss",
                           "choose one: --loss cross_entropy, mse, l1, bce or bce_with_logits")
    return found


def input_names(found: Converted) -> dict[Value, str]:
    """Short names: of keywords their own, else image or input, and label for the loss's target."""
    targets = {value for layer in found.losses for value in layer.inputs[1:]}
    names: dict[Value, str] = {}
    for value in found.inputs:
        word = value.name.rpartition("keywords_")[2] if "keywords_" in value.name else ""
        name = word or ("label" if value in targets or value.name.startswith("target") else
                        "image" if len(value.shape) == 4 else
                        "tokens" if "int" in value.dtype else "input")
        count = 2
        wanted = name
        while name in names.values():
            name, count = f"{wanted}_{count}", count + 1
        names[value] = name
    return names


def description(name: str, source_text: str, found: Converted, seq: int | None = None) -> str:
    """The YAML text of a description."""
    names = input_names(found)
    end = [found.output] if found.output is not None else []
    read_last = end + [v for layer in found.losses for v in layer.inputs]
    for layer in found.layers:
        layer.scopes = tuple(s for s in layer.scopes if s[0] not in ("", "model"))
    root = tree.build(found.layers, "model")
    tree.mark_ends(root, read_last)
    renamed = optional.unify(root)
    found = renamed_ends(found, renamed)
    read_last = [renamed.get(v, v) for v in read_last]
    root.read = list(dict.fromkeys([*[v for v in root.read if v in names]]))
    made = blocks.Blocks(root)
    arguments.find_arguments(made)
    text = yaml_text.Description(made)
    at = yaml_text.LayerList([names[v] for v in root.read])
    at.names.update(names.values())
    text.write_items(made.root.definition, made.root.parts, at, "", [names[v] for v in root.read])
    ends = names_of_values(root, made, text, at, names, read_last)
    return description_text(name, source_text, found, names, text, at, ends, seq)


def renamed_ends(found: Converted, renamed: dict[Value, Value]) -> Converted:
    """The model, with the new values in place of those that the loss reads and the model returns."""
    for layer in found.losses:
        layer.inputs = [renamed.get(v, v) for v in layer.inputs]
    if found.output is not None:
        found.output = renamed.get(found.output, found.output)
    return found


def names_of_values(root: tree.Group, made: blocks.Blocks, text: yaml_text.Description,
                    at: yaml_text.LayerList, names: dict[Value, str],
                    values: list[Value]) -> dict[Value, str]:
    """{value: its name in the list of the model's own layers}."""
    # Written out again with the values as the root's outputs, which only looks names up.
    definition = made.root.definition
    produced = {v: ("item", n, k) for n, item in enumerate(root.items)
                for k, v in enumerate(item.outputs())}
    definition.outputs = [produced[v] for v in values if v in produced]
    scratch = yaml_text.LayerList(at.inputs)
    scratch.names.update(names.values())
    found = iter(text.write_items(definition, made.root.parts, scratch, "",
                              [names[v] for v in root.read]))
    ends = {}
    for value in values:
        name = next(found) if value in produced else names.get(value)
        if name is not None:
            ends[value] = name
    return ends


def description_text(name: str, source_text: str, found: Converted, names: dict[Value, str],
              text: yaml_text.Description, at: yaml_text.LayerList, ends: dict[Value, str],
              seq: int | None) -> str:
    lines = [f"model: {name}", f"source: {source_text}"]
    if seq:
        lines.append(f"symbols: {{seq: {seq}}}")
    lines.append("inputs:")
    for value, word in names.items():
        shape = ", ".join(map(str, value.shape))
        kind = "" if value.dtype == "float32" else f", dtype: {value.dtype}"
        lines.append(f"  {word}: {{shape: [{shape}]{kind}}}")
    defaults = shared_defaults.share_defaults([*text.lists(), at])
    if defaults:
        lines.append("defaults:")
        lines += [f"  {operator}: {{" + ", ".join(f"{k}: {v}" for k, v in shared.items()) + "}"
                  for operator, shared in defaults.items()]
    losses = [loss_line(layer, ends) for layer in found.losses]
    reads = [ends[v] for layer in found.losses for v in layer.inputs]
    body = yaml_text.layer_lines(at, [r for r in reads if r not in names.values()], "  ")
    block_lines = text.block_lines()
    if block_lines:
        lines += ["blocks:", *block_lines]
    lines += ["layers:", *body]
    first = ends[found.losses[0].inputs[0]]
    output = ends.get(found.output) if found.output is not None else None
    if output and output != first:
        lines.append(f"output: {output}")
    if len(losses) == 1:
        lines += ["loss:", f"  {losses[0]}"]
    else:
        lines += ["loss:", *(f"  - {loss}" for loss in losses)]
    return "\n".join(lines) + "\n"


def loss_line(layer: Layer, ends: dict[Value, str]) -> str:
    defaults = defaults_of(layer.operator)
    words = [f"from: [{', '.join(ends[v] for v in layer.inputs)}]"]
    words += [f"{k}: {text_of(v)}" for k, v in layer.attributes.items()
              if v != defaults.get(k)]
    return f"{layer.operator}: {{{', '.join(words)}}}"
