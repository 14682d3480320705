"""From ATen operations to layers of the catalogue, one by one.

`convert(captured)` gives Converted. What the rules refuse is collected over the whole model, so that
all of it is named at once. What depends on no input and no parameter (masks, position numbers) is a
constant of the final shape, however it was computed.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from stowage.errors import StowageError

from . import operators
from .capture import Captured, Operation, Scopes, Value
from .layers import COMPOSED, RULES, Conversion, Converted, Layer, Unsupported
from .sizes import Shape, Size

if TYPE_CHECKING:
    from collections.abc import Sequence

del operators  # importing it registers the rules

CHECKS = ("_assert_tensor_metadata", "_assert_async", "_assert_scalar", "sym_constrain_range")
RANDOM = ("bernoulli", "bernoulli_", "rand", "randn", "rand_like", "randn_like", "uniform_",
          "normal_", "dropout", "native_dropout", "exponential_", "randint", "randperm")
# Of their input they take the type and the device at most, and the size.
FACTORIES = ("new_zeros", "new_ones", "new_empty", "new_full", "zeros_like", "ones_like",
             "empty_like", "full_like")


class UnsupportedOperators(StowageError):
    """All operations that the catalogue has no layer for. `found` maps what each is called to the
    paths of the modules that run it, one entry a call."""

    def __init__(self, found: dict[str, list[str]]) -> None:
        self.found = {what: list(paths) for what, paths in found.items()}
        lines = []
        for what, paths in sorted(self.found.items(), key=lambda item: (-len(item[1]), item[0])):
            distinct = list(dict.fromkeys(path.removeprefix("model.") for path in paths))
            distinct = ["the model itself" if path == "model" else path for path in distinct]
            shown = ", ".join(distinct[:3]) + (f" and {len(distinct) - 3} others"
                                               if len(distinct) > 3 else "")
            lines.append(f"  {len(paths):5}  {what}  in {shown}")
        super().__init__("the catalogue of layers lacks what this model runs:\n" + "\n".join(lines),
                         "record the model instead: python -m stowage record takes any operator")


def convert(captured: Captured) -> Converted:
    """The layers of a captured model. Raises UnsupportedOperators where any operation has none."""
    conversion = Conversion(captured)
    unsupported = collections.defaultdict(list)
    for operation in captured.operations:
        if operation in conversion.skipped:
            continue
        conversion.operation = operation
        try:
            convert_operation(conversion, operation)
        except Unsupported as what:
            unsupported[str(what)].append(operation.path or "model")
    if unsupported:
        raise UnsupportedOperators(unsupported)
    drop_unread(conversion)
    hoist_shared(conversion.layers, set(conversion.made.values()))
    add_unused(conversion)
    output = captured.outputs[0] if captured.outputs else None
    return Converted(conversion.layers, captured.inputs,
                     conversion.real(output) if output else None, conversion.losses)


def convert_operation(conversion: Conversion, operation: Operation) -> None:
    """Adds the operation's layers to the conversion. Raises Unsupported where it has no rule."""
    if depends_on_nothing(conversion, operation):
        conversion.constants.update(operation.outputs)
        return
    if writes_a_buffer(operation) or operation.name in CHECKS:
        return
    if any(pattern(conversion, operation) for pattern in COMPOSED):
        return
    found = RULES.get(operation.name)
    if found is None:
        raise Unsupported("aten." + operation.name)
    if makes_squares_of_the_batch(operation):
        raise Unsupported(f"aten.{operation.name} among the samples of a batch: what it makes "
                          "grows with the square of the batch")
    found(conversion, operation, **operation.arguments)


def squares_the_batch(shape: Shape) -> bool:
    return sum(isinstance(size, Size) and any("batch" in symbol for symbol, _ in size.terms)
               for size in shape) > 1


def makes_squares_of_the_batch(operation: Operation) -> bool:
    """Whether a result grows with the square of the batch and no input does. An operation that reads
    such a tensor is not refused again."""
    return (any(squares_the_batch(value.shape) for value in operation.outputs) and
            not any(squares_the_batch(value.shape) for value in operation.inputs()))


def depends_on_nothing(conversion: Conversion, operation: Operation) -> bool:
    """Whether the results depend on no input and no parameter."""
    if operation.name in FACTORIES:
        return True
    inputs = operation.inputs()
    return (operation.name not in RANDOM and
            all(conversion.is_constant(value) for value in inputs) and
            not any(conversion.real(v).kind == "buffer" for v in inputs))


def writes_a_buffer(operation: Operation) -> bool:
    """Whether it only updates a buffer, such as batch norm's counter of batches, that no layer
    reads."""
    first = next(iter(operation.arguments.values()), None)
    return (operation.name.endswith("_") and isinstance(first, Value) and first.kind == "buffer"
            and not any(v.readers for v in operation.outputs))


def drop_unread(conversion: Conversion) -> None:
    """Removes layers that nothing reads and that learn nothing: PyTorch frees their results at
    once."""
    read = {conversion.real(v) for v in conversion.captured.outputs[:1]}
    for layer in conversion.losses:
        read.update(layer.inputs)
    kept = []
    for layer in reversed(conversion.layers):
        effect = layer.parameters or layer.attributes.get("in_place") or layer.attributes.get(
            "buffer")
        if effect or any(value in read for value in layer.outputs):
            kept.append(layer)
            read.update(layer.inputs)
    conversion.layers = kept[::-1]


def add_unused(conversion: Conversion) -> None:
    """Adds layers for parameters and buffers that nothing reads: they take memory all the same."""
    for value in conversion.captured.parameters.values():
        if value not in conversion.owners:
            layer = Layer("parameter", {"shape": list(value.shape)}, [],
                          [Value("result", value.shape, value.dtype)], (),
                          [("weight", value)], value.name.removeprefix("model."))
            conversion.register_parameters(layer)
            conversion.layers.append(layer)
    for value in conversion.captured.buffers.values():
        if value not in conversion.used_buffers and not value.name.endswith("num_batches_tracked"):
            conversion.layers.append(Layer(
                "constant", {"shape": list(value.shape), "dtype": value.dtype, "buffer": True},
                [], [Value("result", value.shape, value.dtype)], (),
                called=value.name.removeprefix("model.")))


def hoist_shared(layers: list[Layer], made: set[Value]) -> None:
    """Moves the layer of each parameter or constant that several modules share out of the first, so
    that it stands in the module that holds all of its readers, before the first."""
    readers: dict[Value, list[Layer]] = {}
    for layer in layers:
        for value in layer.inputs:
            if value in made:
                readers.setdefault(value, []).append(layer)
    for layer in [x for x in layers if x.outputs and x.outputs[0] in readers]:
        scopes = [reader.scopes for reader in readers[layer.outputs[0]]]
        depth = shared_depth([layer.scopes, *scopes])
        if depth == len(layer.scopes):
            continue
        inner, at = layer.scopes[:depth + 1], layers.index(layer)
        while at > 0 and layers[at - 1].scopes[:depth + 1] == inner:
            at -= 1
        layers.remove(layer)
        layers.insert(at, layer)
        layer.scopes = layer.scopes[:depth]


def shared_depth(several: Sequence[Scopes]) -> int:
    """How many scopes all of them begin with."""
    depth = 0
    while all(len(s) > depth for s in several) and len({s[depth] for s in several}) == 1:
        depth += 1
    return depth
