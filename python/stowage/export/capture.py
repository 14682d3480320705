"""A model as a list of ATen operations, by torch.export.

The module is exported in the mode that it is in, before autograd's decompositions, so that an
operation is what eager PyTorch dispatches (aten.batch_norm, aten.relu_, aten.dropout) and what
autograd would save is what it saves in the user's own loop. It is traced once a point (batch, seq);
the graphs must be the same but for numbers, which become Sizes (sizes.py).

Values have no data. A module that only passes its input on in this configuration (stochastic depth
at rate 0) leaves no operation; `IDENTITY_MODULES` marks them, so that chains of equal modules stay equal.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import os
import sys
from typing import TYPE_CHECKING, Any, TypeAlias
from unittest import mock

import torch

from stowage.errors import StowageError

from . import sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .sizes import Dimension, Point, Shape

Inputs: TypeAlias = tuple[Any, ...] | dict[str, Any]  # of a model: arguments, or keywords
Scopes: TypeAlias = tuple[tuple[str, str], ...]  # (path, class name) of modules, outermost first

IDENTITY_MODULES = ("DropPath", "StochasticDepth")


class NotExportable(StowageError):
    """The model cannot be written as a description; the message says why."""


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor. `kind` is input, parameter, buffer, constant (lifted by export) or result; `name`
    is the module path of a parameter or buffer, the argument's name of an input."""

    kind: str
    shape: Shape
    dtype: str
    name: str = ""
    producer: Operation | None = dataclasses.field(default=None, repr=False)  # it names its Values
    index: int = 0
    frozen: bool = False  # a parameter that is not trained
    order: tuple[int, ...] = ()  # axes of more than one element, outermost in memory first
    readers: list[Operation] = dataclasses.field(default_factory=list, repr=False)


@dataclasses.dataclass(eq=False)
class Operation:
    """One call. `arguments` are by the schema's names, all of them; `scopes` are the modules that
    were running, outermost first, as (path, class name)."""

    name: str
    overload: str
    arguments: dict[str, Any]
    outputs: list[Value]
    scopes: Scopes

    def inputs(self) -> list[Value]:
        return values_in(self.arguments)

    @property
    def path(self) -> str:
        return self.scopes[-1][0] if self.scopes else ""


@dataclasses.dataclass
class Captured:
    """A traced model."""

    operations: list[Operation]
    inputs: list[Value]
    outputs: list[Value]
    parameters: dict[str, Value]  # by name
    buffers: dict[str, Value]
    unexplained: list[str]  # paths of operations whose sizes are no sums of symbols


def order_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The order in which the tensor's axes lie in memory."""
    axes = [axis for axis, size in enumerate(tensor.shape) if size != 1]
    return tuple(sorted(axes, key=lambda axis: -tensor.stride(axis)))


def same_memory_format(a: Value, b: Value) -> bool:
    """Whether a sum of the two lies in memory the same way, whichever stands first."""
    return a.shape != b.shape or not a.order or not b.order or a.order == b.order


def values_in(tree: Any) -> list[Value]:
    if isinstance(tree, Value):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return [value for item in tree for value in values_in(item)]
    return []


@contextlib.contextmanager
def as_eager() -> Iterator[None]:
    """While active, code that asks whether it is being traced is told no, as in a training loop;
    and transformers finds no packed sequences in position ids, which have no values here."""

    def no(*_arguments: object) -> bool:
        return False

    def nothing(*_arguments: object) -> None:
        return None

    with contextlib.ExitStack() as stack:
        for name in ("is_compiling", "is_dynamo_compiling", "is_exporting"):
            if hasattr(torch.compiler, name):
                stack.enter_context(mock.patch.object(torch.compiler, name, no))
        masks = sys.modules.get("transformers.masking_utils")
        for name in ("is_tracing", "find_packed_sequence_indices"):
            if hasattr(masks, name):
                answer = no if name == "is_tracing" else nothing
                stack.enter_context(mock.patch.object(masks, name, answer))
        yield


@contextlib.contextmanager
def marking_identities(model: torch.nn.Module) -> Iterator[None]:
    """While active, modules of IDENTITY_MODULES at rate 0 leave an aten.alias."""
    changed = []
    for module in model.modules():
        rate = getattr(module, "drop_prob", getattr(module, "p", None))
        if type(module).__name__ in IDENTITY_MODULES and not rate and "forward" not in vars(module):
            module.forward = torch.ops.aten.alias.default
            changed.append(module)
    try:
        yield
    finally:
        for module in changed:
            del module.forward


@contextlib.contextmanager
def without_dumps() -> Iterator[None]:
    """While active, what is written to stderr is left out, unless STOWAGE_TRACEBACK asks for it:
    torch.export dumps the graph there before it raises."""
    if os.environ.get("STOWAGE_TRACEBACK"):
        yield
        return
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(disabled)


def traced(model: torch.nn.Module, inputs: Inputs) -> torch.export.ExportedProgram:
    """The exported program for the given example inputs (a tuple, or a dict of keywords)."""
    arguments = (inputs, None) if isinstance(inputs, tuple) else ((), inputs)
    with marking_identities(model), as_eager(), without_dumps():
        return torch.export.export(model, *arguments, strict=False)


def capture(model: torch.nn.Module, example: Callable[[int, int], Inputs],
            points: Sequence[Point]) -> Captured:
    """`example(batch, seq)` gives the inputs at a point; returns Captured."""
    programs = [traced(model, example(*point)) for point in points]
    return JoinedGraphs(model, programs, tuple(points)).captured


def dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


class JoinedGraphs:
    """Walks the graphs of all points side by side."""

    def __init__(self, model: torch.nn.Module, programs: list[torch.export.ExportedProgram],
                 points: tuple[Point, ...]) -> None:
        self.points = points
        self.values: dict[torch.fx.Node, Any] = {}  # of the first graph: a Value, or a list of them
        self.captured = Captured([], [], [], {}, {}, [])
        self.signature = programs[0].graph_signature
        self.specs = {spec.arg.name: spec for spec in self.signature.input_specs}
        self.path = ""
        tensors = [*model.named_parameters(remove_duplicate=False),
                   *model.named_buffers(remove_duplicate=False)]
        names: dict[int, str] = {}
        self.first_name = {name: names.setdefault(id(tensor), name) for name, tensor in tensors}
        self.frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
        graphs = [list(program.graph.nodes) for program in programs]
        if len({tuple(str(n.target) for n in g if n.op != "placeholder") for g in graphs}) > 1:
            raise NotExportable("the operations that run depend on the batch or sequence length")
        for nodes in zip(*graphs):
            getattr(self, nodes[0].op)(nodes)

    def shape_of(self, tensors: Sequence[torch.Tensor]) -> Shape:
        return tuple(self.number(at) for at in zip(*(t.shape for t in tensors)))

    def number(self, numbers: Sequence[int]) -> Dimension:
        size = sizes.size_of(tuple(int(n) for n in numbers), self.points)
        if size is None:
            self.captured.unexplained.append(self.path)
            return int(numbers[0])
        return size

    def placeholder(self, nodes: tuple[torch.fx.Node, ...]) -> None:
        node = nodes[0]
        spec = self.specs[node.name]
        kind = {"PARAMETER": "parameter", "BUFFER": "buffer",
                "USER_INPUT": "input"}.get(spec.kind.name, "constant")
        if not isinstance(node.meta.get("val"), torch.Tensor):
            self.values[node] = node.meta.get("val")  # a number or None given as an input
            return
        name = self.first_name.get(spec.target, node.name)
        known = self.captured.parameters.get(name) or self.captured.buffers.get(name)
        if known is not None:  # a tensor under another of its names
            self.values[node] = known
            return
        value = Value(kind, self.shape_of([n.meta["val"] for n in nodes]),
                      dtype_name(node.meta["val"]), name)
        self.values[node] = value
        if kind == "parameter":
            value.frozen = value.name in self.frozen
            self.captured.parameters[value.name] = value
        elif kind == "buffer":
            self.captured.buffers[value.name] = value
        elif kind == "input":
            self.captured.inputs.append(value)

    def get_attr(self, nodes: tuple[torch.fx.Node, ...]) -> None:
        tensor = nodes[0].meta.get("val")
        if isinstance(tensor, torch.Tensor):
            self.values[nodes[0]] = Value("constant", tuple(tensor.shape), dtype_name(tensor),
                                          str(nodes[0].target))

    def call_function(self, nodes: tuple[torch.fx.Node, ...]) -> None:
        node = nodes[0]
        if "getitem" in str(node.target):
            self.values[node] = self.values[node.args[0]][node.args[1]]
            return
        stack = node.meta.get("nn_module_stack", {}).values()
        scopes = tuple((path.partition("@")[0], str(name).rpartition(".")[2])
                       for path, name in stack)
        self.path = scopes[-1][0] if scopes else ""
        if not hasattr(node.target, "_schema"):
            raise NotExportable(f"{self.path or 'the model'} calls {node.target}, which is no "
                                "operator of PyTorch's")
        schema = node.target._schema
        operation = Operation(schema.name.removeprefix("aten::"), schema.overload_name,
                              self.bound(schema, nodes), [], scopes)
        self.values[node] = self.results(operation, nodes)
        for value in operation.inputs():
            value.readers.append(operation)
        self.captured.operations.append(operation)

    def results(self, operation: Operation, nodes: tuple[torch.fx.Node, ...]) -> Any:
        results = [n.meta.get("val") for n in nodes]
        several = isinstance(results[0], (list, tuple))
        rows = list(zip(*results)) if several else [results]
        for index, tensors in enumerate(rows):
            if isinstance(tensors[0], torch.Tensor):
                operation.outputs.append(Value("result", self.shape_of(tensors),
                                               dtype_name(tensors[0]), "", operation, index,
                                               order=order_of(tensors[0])))
        if several:
            return operation.outputs
        return operation.outputs[0] if operation.outputs else None

    def bound(self, schema: torch.FunctionSchema,
              nodes: tuple[torch.fx.Node, ...]) -> dict[str, Any]:
        """The arguments by name, with the schema's defaults."""
        result = {}
        for position, argument in enumerate(schema.arguments):
            if position < len(nodes[0].args):
                given = [n.args[position] for n in nodes]
            elif argument.name in nodes[0].kwargs:
                given = [n.kwargs[argument.name] for n in nodes]
            else:
                result[argument.name] = argument.default_value
                continue
            result[argument.name] = self.joined(given)
        return result

    def joined(self, given: Sequence[Any]) -> Any:
        first = given[0]
        if isinstance(first, torch.fx.Node):
            return self.values.get(first)
        if isinstance(first, (list, tuple)):
            return [self.joined(items) for items in zip(*given)]
        if isinstance(first, int) and not isinstance(first, bool):
            return self.number(given)
        return first

    def output(self, nodes: tuple[torch.fx.Node, ...]) -> None:
        for node in tensors_of(nodes[0].args):
            if isinstance(self.values.get(node), Value):
                self.captured.outputs.append(self.values[node])


def tensors_of(tree: Any) -> list[torch.fx.Node]:
    if isinstance(tree, torch.fx.Node):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [n for item in tree for n in tensors_of(item)] if isinstance(tree, (list, tuple)) else []
