"""Layers of the catalogue, made of ATen operations one by one.

`convert(captured)` gives Converted. An operation's rule is a function registered under its ATen
name (`@rule("conv2d")`); it is called with a Conversion and the operation, and either emits layers,
or says that a value is another one (`same`), or refuses (`Unsupported`). What is refused is
collected over the whole model, so that all of it is named at once. What depends on no input and no
parameter (masks, position numbers) is a constant of the final shape, however it was computed.
"""

import collections
import dataclasses

from stowage.errors import StowageError

from .capture import Operation, Value
from .catalogue import OPERATORS
from .hoist import hoist_shared
from .sizes import Size

RULES = {}
COMPOSED = []  # functions (conversion, operation) -> whether it was the start of a pattern


def rule(*names):
    def register(function):
        for name in names:
            RULES[name] = function
        return function

    return register


class Unsupported(Exception):
    """The catalogue has no layer for this operation; the message is what to call it."""


@dataclasses.dataclass(eq=False)
class Layer:
    """One layer. `attributes` hold ints, Sizes, floats, bools, words or lists of them;
    `parameters` its learned tensors as (the catalogue's name, Value); `called` is the name that
    PyTorch has for it where its module has none of its own (a parameter's)."""

    operator: str
    attributes: dict
    inputs: list
    outputs: list
    scopes: tuple
    parameters: list = dataclasses.field(default_factory=list)
    called: str = ""
    ties: dict = dataclasses.field(default_factory=dict)  # name -> (Layer, name)
    is_tied: bool = False  # another layer's `ties` name this one


@dataclasses.dataclass
class Converted:
    layers: list
    inputs: list  # Values that the layers read
    output: Value | None
    losses: list  # Layers


class Conversion:
    """The state that rules see."""

    def __init__(self, captured):
        self.captured = captured
        self.layers = []
        self.losses = []
        self.order = {}  # value -> a number that grows
        self.aliases = {}  # Value -> the Value that stands for it
        self.constants = set()  # values computed of nothing
        self.skipped = set()  # operations that a rule has taken in
        self.made = {}  # parameter or constant -> the output of its layer, by reader's scope
        self.owners = {}  # parameter -> (Layer, name)
        self.used_buffers = set()
        self.operation = None
        self.some_frozen = any(v.frozen for v in captured.parameters.values())
        self.unsupported = collections.defaultdict(list)

    # ---- what rules call

    def real(self, value):
        if not isinstance(value, Value):
            raise Unsupported(f"aten.{self.operation.name} with a number that depends on the batch")
        while value in self.aliases:
            value = self.aliases[value]
        return value

    def same(self, value, other):
        """`value` is nothing new: what reads it reads `other`."""
        self.aliases[value] = other

    def emit(self, operator, inputs, outputs, attributes=None, parameters=(), called=""):
        """A layer of the current operation; inputs that are parameters or constants get layers of
        their own before it."""
        if operator not in OPERATORS:
            raise Unsupported(f"aten.{self.operation.name}")
        read = [self.readable(value) for value in inputs]
        if operator == "reshape":
            read = [self.before_view(read[0])]
        layer = Layer(operator, attributes or {}, read, list(outputs), self.operation.scopes,
                      [(n, self.parameter(v)) for n, v in parameters if v is not None], called)
        self.own(layer)
        self.layers.append(layer)
        self.order |= {value: len(self.order) for value in outputs}
        return layer

    def own(self, layer):
        """Notes whose the layer's parameters are, and whether they are trained."""
        for name, value in layer.parameters:
            owner = self.owners.setdefault(value, (layer, name))
            if owner[0] is not layer:
                layer.ties[name] = owner
                owner[0].is_tied = True
        if self.some_frozen and layer.parameters:
            frozen = {value.frozen for _, value in layer.parameters}
            if len(frozen) > 1:
                raise Unsupported("a layer whose parameters are trained in part")
            layer.attributes["frozen"] = frozen.pop()

    def before_view(self, value):
        """What a view that only this reshape reads was a view of: one reshape does for both."""
        last = self.layers[-1] if self.layers else None
        made_by = value.producer
        if (last is None or last.operator != "reshape" or last.outputs != [value] or
                made_by is None or made_by.name not in VIEWS or self.only_reader(value) is None):
            return value
        self.layers.pop()
        return last.inputs[0]

    def middle(self, shape, like):
        """A value between two layers that stand for one operation."""
        return Value("result", tuple(shape), like.dtype, "", self.operation)

    def parameter(self, value):
        value = self.real(value)
        if value.kind != "parameter":
            raise Unsupported(f"{self.operation.name} with a computed weight")
        return value

    def readable(self, value):
        """A value that a layer can read."""
        value = self.real(value)
        if value.kind == "parameter":
            return self.parameter_layer(value)
        if value.kind in ("buffer", "constant") or value in self.constants:
            return self.constant_layer(value)
        return value

    def is_constant(self, value):
        value = self.real(value)
        return value.kind == "constant" or value in self.constants

    def only_reader(self, value):
        """The operation that reads the value, if it is the only one and nothing else does."""
        if len(value.readers) == 1 and value not in self.captured.outputs:
            return value.readers[0]
        return None

    # ---- parameters and constants as layers

    def parameter_layer(self, value):
        if value not in self.made:
            output = Value("result", value.shape, value.dtype)
            layer = Layer("parameter", {"shape": list(value.shape)}, [], [output],
                          self.operation.scopes, [("weight", value)],
                          value.name.rpartition(".")[2])
            self.own(layer)
            self.layers.append(layer)
            self.made[value] = output
        return self.made[value]

    def constant_layer(self, value):
        if value not in self.made:
            attributes = {"shape": list(value.shape), "dtype": value.dtype}
            called = ""
            if value.kind == "buffer":
                attributes["buffer"] = True
                called = value.name.rpartition(".")[2]
                self.used_buffers.add(value)
            output = Value("result", value.shape, value.dtype)
            self.layers.append(Layer("constant", attributes, [], [output], self.operation.scopes,
                                     called=called))
            self.made[value] = output
        return self.made[value]

    # ---- all operations

    def run(self):
        for operation in self.captured.operations:
            if operation in self.skipped:
                continue
            self.operation = operation
            try:
                self.convert(operation)
            except Unsupported as what:
                self.unsupported[str(what)].append(operation.path or "model")
        if self.unsupported:
            raise UnsupportedOperators(self.unsupported)
        self.drop_dead()
        hoist_shared(self.layers, set(self.made.values()))
        self.add_unused()
        output = self.captured.outputs[0] if self.captured.outputs else None
        return Converted(self.layers, self.captured.inputs,
                         self.real(output) if output else None, self.losses)

    def drop_dead(self):
        """Without layers that nothing reads and that learn nothing: PyTorch frees them at once."""
        read = {self.real(v) for v in self.captured.outputs[:1]}
        for layer in self.losses:
            read.update(layer.inputs)
        kept = []
        for layer in reversed(self.layers):
            effect = layer.parameters or layer.attributes.get("in_place") or layer.attributes.get(
                "buffer")
            if effect or any(value in read for value in layer.outputs):
                kept.append(layer)
                read.update(layer.inputs)
        self.layers = kept[::-1]

    def add_unused(self):
        """Layers for parameters and buffers that nothing reads: they take memory all the same."""
        for value in self.captured.parameters.values():
            if value not in self.owners:
                layer = Layer("parameter", {"shape": list(value.shape)}, [],
                              [Value("result", value.shape, value.dtype)], (),
                              [("weight", value)], value.name.removeprefix("model."))
                self.own(layer)
                self.layers.append(layer)
        for value in self.captured.buffers.values():
            if value not in self.used_buffers and not value.name.endswith("num_batches_tracked"):
                self.layers.append(Layer(
                    "constant", {"shape": list(value.shape), "dtype": value.dtype, "buffer": True},
                    [], [Value("result", value.shape, value.dtype)], (),
                    called=value.name.removeprefix("model.")))

    def convert(self, operation):
        if computed_of_nothing(self, operation):
            self.constants.update(operation.outputs)
            return
        if writes_a_buffer(operation) or operation.name in CHECKS:
            return
        if any(pattern(self, operation) for pattern in COMPOSED):
            return
        found = RULES.get(operation.name)
        if found is None:
            raise Unsupported("aten." + operation.name)
        if makes_squares_of_the_batch(operation):
            raise Unsupported(f"aten.{operation.name} among the samples of a batch: what it makes "
                              "grows with the square of the batch")
        found(self, operation, **operation.arguments)


def squares_the_batch(shape):
    return sum(isinstance(size, Size) and any("batch" in symbol for symbol, _ in size.terms)
               for size in shape) > 1


def makes_squares_of_the_batch(operation):
    """Where they begin: what reads them does no worse."""
    return (any(squares_the_batch(value.shape) for value in operation.outputs) and
            not any(squares_the_batch(value.shape) for value in operation.inputs()))


CHECKS = ("_assert_tensor_metadata", "_assert_async", "_assert_scalar", "sym_constrain_range")
VIEWS = ("view", "unsqueeze", "squeeze", "unflatten")  # never copies
RANDOM = ("bernoulli", "bernoulli_", "rand", "randn", "rand_like", "randn_like", "uniform_",
          "normal_", "dropout", "native_dropout", "exponential_", "randint", "randperm")
# Of their input they take the type and the device at most, and the size.
FACTORIES = ("new_zeros", "new_ones", "new_empty", "new_full", "zeros_like", "ones_like",
             "empty_like", "full_like")


def computed_of_nothing(conversion, operation):
    if operation.name in FACTORIES:
        return True
    inputs = operation.inputs()
    return (operation.name not in RANDOM and
            all(conversion.is_constant(value) for value in inputs) and
            not any(conversion.real(v).kind == "buffer" for v in inputs))


def writes_a_buffer(operation):
    """Batch norm's counter of batches and the like: nothing that a layer reads."""
    first = next(iter(operation.arguments.values()), None)
    return (operation.name.endswith("_") and isinstance(first, Value) and first.kind == "buffer"
            and not any(v.readers for v in operation.outputs))


class UnsupportedOperators(StowageError):
    """All of them, with how often and where."""

    def __init__(self, found):
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


def convert(captured):
    from . import operators  # registers the rules

    del operators
    return Conversion(captured).run()


__all__ = ["Converted", "Layer", "Operation", "Unsupported", "UnsupportedOperators", "convert",
           "rule"]
