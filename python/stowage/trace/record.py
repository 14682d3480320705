"""What a recording leaves: plain values, without tensors.

Nodes are numbered within their step, storages within the whole recording. A storage that dies
between two nodes died after the first of them; before node 0 that is -1.
"""

import dataclasses
from typing import Any, NamedTuple


class View(NamedTuple):
    """A tensor argument: a storage, and how it is seen. Strides and offset in elements."""

    storage: int
    dtype: Any
    shape: tuple
    strides: tuple
    offset: int
    is_view: bool  # in autograd's sense


class Moment(NamedTuple):
    """A node of a step."""

    step: int
    node: int


@dataclasses.dataclass
class StorageRecord:
    bytes: int
    born: Moment
    died: Moment | None = None  # right after this node; None: it is alive at the end


@dataclasses.dataclass
class NodeRecord:
    kernel: str  # the schema's name: "aten::add.Tensor"
    phase: str
    layer: str  # the module's path
    place: str  # "net.py:12"
    reads: list
    writes: list
    arguments: str  # names of `reads`: "input,weight"; a list: "tensors:3"
    results: str  # positions of `writes` among the results: "0,1"; written arguments by their names
    attributes: dict
    flops: int = 0
    recomputed: bool = False  # forward, run again within backward
    accumulates: bool = False  # the engine puts a gradient that arrived into .grad
    micro_batch: int = 0


class SavedRecord(NamedTuple):
    """A storage that autograd keeps, by the node that saved it."""

    node: int
    storage: int
    role: str


@dataclasses.dataclass
class StepRecord:
    """One step. `marks` say what a storage is, by storage: ("gradient", parameter's name), ..."""

    index: int
    batch: int
    nodes: list = dataclasses.field(default_factory=list)
    saved: list = dataclasses.field(default_factory=list)
    inputs: list = dataclasses.field(default_factory=list)  # views
    losses: list = dataclasses.field(default_factory=list)
    output: View | None = None
    gradients: dict = dataclasses.field(default_factory=dict)  # parameter's name: view
    optimizer_state: dict = dataclasses.field(default_factory=dict)  # storage: name
    host_state_bytes: int = 0
    layers: dict = dataclasses.field(default_factory=dict)  # name: (type, output's shape, parameters)
