"""What autograd keeps for backward.

Autograd saves an operator's arguments before it calls the kernel and its results after. So what is
saved between two nodes is a result of the last one, where its function keeps results, or an argument of
the next.
Those of a step's first pass have keys (plans/saved_names.py) and are recorded call by call; of the others
equal ones are recorded once.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import torch

from stowage.plans.saved_names import SavedNames, is_named, runs_backward
from stowage.trace.record import NOT_UNPACKED, NodeRecord, SavedRecord, SavedTensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stowage.trace.recorder import Recorder


# What autograd's functions are called to keep of their results (tools/autograd/derivatives.yaml): its
# names in Python. A function that a script defines keeps whatever it likes.
RESULTS = re.compile(r"_raw_saved_(result\d*|output|out|tensors)")


def keeps_result(function: type) -> bool:
    """Whether an autograd function's gradient is computed of its result."""
    return any(RESULTS.fullmatch(name) for name in dir(function))


class Layout:
    """How a tensor saw its storage, for a step in which autograd holds none (SavedTensors.lets_go)."""

    __slots__ = ("device", "dtype", "offset", "shape", "size", "storage", "strides")

    def __init__(self, tensor: torch.Tensor, storage: int) -> None:
        self.storage, self.size, self.device = storage, tensor.untyped_storage().nbytes(), tensor.device
        self.dtype, self.shape = tensor.dtype, tuple(tensor.shape)
        self.strides, self.offset = tensor.stride(), tensor.storage_offset()

    def tensor_in(self, storages: dict[int, torch.Tensor]) -> torch.Tensor:
        """Such a tensor in a new storage, one for all that shared one."""
        if self.storage not in storages:
            storages[self.storage] = torch.empty(self.size, dtype=torch.uint8, device=self.device)
        item = self.dtype.itemsize
        elements = storages[self.storage][:self.size // item * item].view(self.dtype)
        return elements.as_strided(self.shape, self.strides, self.offset)


def can_stand_in(tensor: torch.Tensor) -> bool:
    """Whether another tensor of its layout serves as well: not so for a parameter, whose gradient is its
    own."""
    from torch._subclasses.fake_tensor import FakeTensor

    is_own_leaf = tensor.is_leaf and tensor.requires_grad
    return type(tensor) is FakeTensor and not is_own_leaf and not tensor.is_conj() and not tensor.is_neg()


class Packed:
    """What the autograd graph holds in a saved tensor's place."""

    __slots__ = ("named", "names", "tensor")

    def __init__(self, tensor: torch.Tensor | Layout, names: SavedNames,
                 named: SavedTensor | None) -> None:
        self.tensor, self.names, self.named = tensor, names, named


class SavedTensors:
    """Collects for one step what is saved, in the order of saving. `lets_go`: autograd holds nothing of
    it but the layouts, so that a storage dies when the script lets it go; backward gets other storages,
    whose values fake tensors do not have anyway."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.lets_go = False
        self.start()

    def start(self) -> None:
        self.names = SavedNames()  # of the pass that runs
        self.stand_ins: dict[int, torch.Tensor] = {}  # by storage, where it lets go
        self.is_first_pass = True
        self.result_of = (-1, -1)  # the last node that saved a result, and its storage
        # Those that wait for the node that reads them.
        self.pending: list[tuple[int, SavedTensor | None]] = []
        self.named: list[SavedRecord] = []  # of the first pass, one a call
        self.found: dict[tuple[int, int, str], SavedRecord] = {}  # the others

    def records(self) -> list[SavedRecord]:
        """All of the step's: those with keys first."""
        last = len(self.recorder.step.nodes) - 1
        for record in self.named:
            named = record.named
            if named is not None and named.unpacked_before > last:
                named.unpacked_before = NOT_UNPACKED  # no node came after it
        return [*self.named, *self.found.values()]

    @property
    def runs_first_forward(self) -> bool:
        """Whether the forward of the step's first pass runs."""
        return self.is_first_pass and not self.names.is_over and not runs_backward()

    def pack(self, tensor: torch.Tensor) -> Packed:
        named = None
        if tensor.device.type == "cuda":
            storage = self.recorder.storage_of(tensor)
            if is_named(tensor, "cuda"):
                named = self.name(tensor)
            self.saved(tensor, storage, named)
            if self.lets_go and can_stand_in(tensor):
                return Packed(Layout(tensor, storage), self.names, named)
        return Packed(tensor, self.names, named)

    def unpack(self, packed: Packed) -> torch.Tensor:
        packed.names.was_unpacked()
        if packed.named is not None and packed.named.unpacked_before == NOT_UNPACKED:
            packed.named.unpacked_before = len(self.recorder.step.nodes)
        if not isinstance(packed.tensor, Layout):
            return packed.tensor
        self.recorder.is_paused = True
        try:
            return packed.tensor.tensor_in(self.stand_ins)
        finally:
            self.recorder.is_paused = False

    def name(self, tensor: torch.Tensor) -> SavedTensor | None:
        """The key of this call; None in passes after the first."""
        if self.names.is_over:
            self.names, self.is_first_pass = SavedNames(), False
        key = self.names.next_key(self.recorder.modules.path)
        if not self.is_first_pass:
            return None
        return SavedTensor(key, self.recorder.view_of(tensor), len(self.recorder.step.nodes) - 1)

    def saved(self, tensor: torch.Tensor, storage: int, named: SavedTensor | None) -> None:
        nodes = self.recorder.step.nodes
        if named is not None:
            self.named.append(SavedRecord(max(len(nodes) - 1, 0), storage, "saved", named))
        if nodes and self.is_result_of_last(tensor, storage):
            self.set_role(len(nodes) - 1, storage, "result", named)
            return
        self.pending.append((storage, named))

    def is_result_of_last(self, tensor: torch.Tensor, storage: int) -> bool:
        """Whether the last node's call saves it, whose result it is. Else it is an argument of the next:
        a result is saved within its own module, and once."""
        index = len(self.recorder.step.nodes) - 1
        last = self.recorder.step.nodes[index]
        if not any(view.storage == storage for view in last.writes):
            return False
        if last.layer != self.recorder.modules.path:
            return False
        function = tensor.grad_fn
        if function is None:  # statistics, masks: autograd's own
            return not any(view.storage == storage for view in last.reads)
        if self.result_of == (index, storage) or not keeps_result(type(function)):
            return False
        self.result_of = (index, storage)
        return True

    def node_was_recorded(self, node: NodeRecord, names: list[str]) -> None:
        """Give what was saved for this node its role; `names` are of its reads."""
        if not self.pending:
            return
        index = len(self.recorder.step.nodes) - 1
        for storage, named in self.pending:
            role = next((name for name, view in zip(names, node.reads)
                         if view.storage == storage), "saved")
            self.set_role(index, storage, role, named)
        self.pending = []

    def set_role(self, node: int, storage: int, role: str, named: SavedTensor | None) -> None:
        if named is None:
            self.found.setdefault((node, storage, role), SavedRecord(node, storage, role))
            return
        record = next(record for record in reversed(self.named) if record.named is named)
        record.node, record.role = node, role

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        with torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack):
            yield
