"""The data of a recording: plain values, without tensors.

Nodes are numbered within their step, storages within the whole recording. A storage that dies
between two nodes died after the first of them; before node 0 that is -1.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch


class View(NamedTuple):
    """A tensor argument: a storage, and how it is seen. Strides and offset in elements."""

    storage: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    is_view: bool  # in autograd's sense


class ModelTensor(NamedTuple):
    """A parameter or buffer of the model. `kind` is "trained", "frozen" or "buffer"."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    kind: str
    view: View


class Moment(NamedTuple):
    """A node of a step."""

    step: int
    node: int


@dataclasses.dataclass
class StorageRecord:
    """A storage of the device: its largest size in bytes, and when it lived."""

    bytes: int
    born: Moment
    died: Moment | None = None  # right after this node; None: it is alive at the end


@dataclasses.dataclass
class NodeRecord:
    """A call of a kernel."""

    kernel: str  # the schema's name: "aten::add.Tensor"
    phase: str
    layer: str  # the module's path
    place: str  # "net.py:12"
    reads: list[View]
    writes: list[View]
    arguments: str  # names of `reads`: "input,weight"; a list: "tensors:3"
    results: str  # positions of `writes` among the results: "0,1"; written arguments by their names
    attributes: dict[str, Any]
    flops: int = 0
    recomputed: bool = False  # forward, run again within backward
    accumulates: bool = False  # the engine puts a gradient that arrived into .grad
    micro_batch: int = 0


NOT_UNPACKED = UNKNOWN = -1


@dataclasses.dataclass(eq=False)
class SavedTensor:
    """One pack call of a step's first pass, by its key (plans/saved_names.py)."""

    key: str
    view: View
    packed_after: int  # the last node that had run; -1: none
    unpacked_before: int = NOT_UNPACKED  # the first node that ran after it was first unpacked
    held_until: int = UNKNOWN  # the last node during which something besides autograd held its storage


@dataclasses.dataclass(eq=False)
class SavedRecord:
    """A storage that autograd keeps, by the node that saved it. `named`: as a tensor of the first
    pass."""

    node: int
    storage: int
    role: str
    named: SavedTensor | None = None


class LayerRecord(NamedTuple):
    """What a leaf module returned at its first call."""

    kind: str  # its class
    shape: tuple[int, ...]  # of its first result
    parameters: int  # elements


@dataclasses.dataclass
class ModuleInput:
    """A tensor of the device among a module's positional arguments, with its number among the tensors
    there."""

    number: int
    view: View
    held_until: int = UNKNOWN  # as SavedTensor's


@dataclasses.dataclass
class ModuleCall:
    """A module's call in forward. `is_sequence`: an nn.Sequential runs its children one after the
    other. `calls`: so often it ran in the step's first pass; the rest is of the first time."""

    is_sequence: bool
    inputs: list[ModuleInput]
    calls: int = 1


@dataclasses.dataclass
class StepRecord:
    """One step."""

    index: int
    batch: int
    nodes: list[NodeRecord] = dataclasses.field(default_factory=list)
    saved: list[SavedRecord] = dataclasses.field(default_factory=list)
    inputs: list[View] = dataclasses.field(default_factory=list)
    losses: list[View] = dataclasses.field(default_factory=list)
    output: View | None = None
    # {parameter's name: view}
    gradients: dict[str, View] = dataclasses.field(default_factory=dict)
    # {storage: (name, name of the parameter whose state it is)}
    optimizer_state: dict[int, tuple[str, str]] = dataclasses.field(default_factory=dict)
    host_state_bytes: int = 0
    # names of trained parameters that got a gradient and were not updated
    not_updated: list[str] = dataclasses.field(default_factory=list)
    layers: dict[str, LayerRecord] = dataclasses.field(default_factory=dict)  # by the module's path
    modules: dict[str, ModuleCall] = dataclasses.field(default_factory=dict)  # those that ran, by path
