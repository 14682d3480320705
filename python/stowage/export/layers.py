"""Layers of the catalogue, and what the rules of ATen operations call to make them.

An operation's rule (operators/) is a function registered under its ATen name (`@rule("conv2d")`); it
is called with a Conversion and the operation, and either emits layers, or says that a value is
another one (`same`), or refuses (`Unsupported`). convert.py calls the rules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .capture import Captured, Operation, Scopes, Value
from .catalogue import OPERATORS

if TYPE_CHECKING:
    from .sizes import Dimension

Number: TypeAlias = int | float
Numbers: TypeAlias = int | Sequence[int]  # one for all axes, or one an axis
Operand: TypeAlias = Value | int | float
RuleFunction: TypeAlias = Callable[..., None]

VIEWS = ("view", "unsqueeze", "squeeze", "unflatten")  # never copies
RULES: dict[str, RuleFunction] = {}
# Each takes (conversion, operation) and says whether that was the start of its pattern.
COMPOSED: list[Callable[[Conversion, Operation], bool]] = []


def rule(*names: str) -> Callable[[RuleFunction], RuleFunction]:
    """Registers a function as the rule of the ATen operations of these names."""
    def register(function: RuleFunction) -> RuleFunction:
        for name in names:
            RULES[name] = function
        return function

    return register


class Unsupported(Exception):
    """The catalogue has no layer for this operation; the message names it: "aten.fft"."""


@dataclasses.dataclass(eq=False)
class Layer:
    """One layer. `attributes` hold ints, Sizes, floats, bools, words or lists of them;
    `parameters` its learned tensors as (the catalogue's name, Value); `called` is the name that
    PyTorch has for it where its module has none of its own (a parameter's)."""

    operator: str
    attributes: dict[str, Any]
    inputs: list[Value]
    outputs: list[Value]
    scopes: Scopes
    parameters: list[tuple[str, Value]] = dataclasses.field(default_factory=list)
    called: str = ""
    # {name: (the layer that has the parameter, its name there)}
    ties: dict[str, tuple[Layer, str]] = dataclasses.field(default_factory=dict)
    is_tied: bool = False  # another layer's `ties` name this one
    written_name: str = ""  # its name in the description, once it is written (yaml_text.py)


@dataclasses.dataclass
class Converted:
    """The layers of a model, in the order in which they run."""

    layers: list[Layer]
    inputs: list[Value]  # that the layers read
    output: Value | None
    losses: list[Layer]


class Conversion:
    """The state that rules see."""

    operation: Operation  # whose rule runs

    def __init__(self, captured: Captured) -> None:
        self.captured = captured
        self.layers: list[Layer] = []
        self.losses: list[Layer] = []
        self.order: dict[Value, int] = {}  # of the layer that makes the value; grows
        self.aliases: dict[Value, Value] = {}  # the value that stands for another
        self.constants: set[Value] = set()  # computed from no input and no parameter
        self.skipped: set[Operation] = set()  # that another operation's rule has covered
        self.made: dict[Value, Value] = {}  # the output of a parameter's or constant's layer
        self.owners: dict[Value, tuple[Layer, str]] = {}  # the layer that has a parameter
        self.used_buffers: set[Value] = set()
        self.some_frozen = any(v.frozen for v in captured.parameters.values())

    # ---- what rules call

    def real(self, value: Any) -> Value:
        """The Value that stands for this one. Raises Unsupported where it is a number instead."""
        if not isinstance(value, Value):
            raise Unsupported(f"aten.{self.operation.name} with a number that depends on the batch")
        found = value
        while found in self.aliases:
            found = self.aliases[found]
        return found

    def same(self, value: Value, other: Value) -> None:
        """Makes `value` another name of `other`."""
        self.aliases[value] = other

    def emit(self, operator: str, inputs: Sequence[Any], outputs: Sequence[Value],
             attributes: dict[str, Any] | None = None, parameters: Sequence[tuple[str, Any]] = (),
             called: str = "") -> Layer:
        """A layer of the current operation; inputs that are parameters or constants get layers of
        their own before it."""
        if operator not in OPERATORS:
            raise Unsupported(f"aten.{self.operation.name}")
        read = [self.readable(value) for value in inputs]
        if operator == "reshape":
            read = [self.before_view(read[0])]
        layer = Layer(operator, attributes or {}, read, list(outputs), self.operation.scopes,
                      [(n, self.parameter(v)) for n, v in parameters if v is not None], called)
        self.register_parameters(layer)
        self.layers.append(layer)
        self.order |= {value: len(self.order) for value in outputs}
        return layer

    def register_parameters(self, layer: Layer) -> None:
        """Records that the layer has its parameters, or shares them with the first that has them, and
        whether they are trained."""
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

    def before_view(self, value: Value) -> Value:
        """The tensor under a view that only this reshape reads: one reshape replaces both."""
        last = self.layers[-1] if self.layers else None
        made_by = value.producer
        if (last is None or last.operator != "reshape" or last.outputs != [value] or
                made_by is None or made_by.name not in VIEWS or self.only_reader(value) is None):
            return value
        self.layers.pop()
        return last.inputs[0]

    def intermediate(self, shape: Sequence[Dimension], like: Value) -> Value:
        """A value between two layers that stand for one operation."""
        return Value("result", tuple(shape), like.dtype, "", self.operation)

    def parameter(self, value: Any) -> Value:
        """The parameter that the value is. Raises Unsupported where it is computed."""
        found = self.real(value)
        if found.kind != "parameter":
            raise Unsupported(f"{self.operation.name} with a computed weight")
        return found

    def readable(self, value: Any) -> Value:
        """A value that a layer can read."""
        found = self.real(value)
        if found.kind == "parameter":
            return self.parameter_layer(found)
        if found.kind in ("buffer", "constant") or found in self.constants:
            return self.constant_layer(found)
        return found

    def is_constant(self, value: Any) -> bool:
        value = self.real(value)
        return value.kind == "constant" or value in self.constants

    def only_reader(self, value: Value) -> Operation | None:
        """The operation that reads the value, if it is the only one and nothing else does."""
        if len(value.readers) == 1 and value not in self.captured.outputs:
            return value.readers[0]
        return None

    # ---- parameters and constants as layers

    def parameter_layer(self, value: Value) -> Value:
        if value not in self.made:
            output = Value("result", value.shape, value.dtype)
            layer = Layer("parameter", {"shape": list(value.shape)}, [], [output],
                          self.operation.scopes, [("weight", value)],
                          value.name.rpartition(".")[2])
            self.register_parameters(layer)
            self.layers.append(layer)
            self.made[value] = output
        return self.made[value]

    def constant_layer(self, value: Value) -> Value:
        if value not in self.made:
            attributes: dict[str, Any] = {"shape": list(value.shape), "dtype": value.dtype}
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
