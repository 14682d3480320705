"""What autograd keeps for backward.

Autograd saves an operator's arguments before it calls the kernel and its results after: a saved
tensor whose storage the next node reads is its argument, one that the last node wrote its result.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from stowage.trace.record import NodeRecord, SavedRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from stowage.trace.recorder import Recorder


class SavedTensors:
    """Collects for one step what is saved, in the order of saving."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.pending: list[int] = []  # storages that wait for the node that reads them
        self.found: dict[SavedRecord, None] = {}  # in the order of saving

    def start(self) -> None:
        self.pending, self.found = [], {}

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type == "cuda":
            self.saved(self.recorder.storage_of(tensor))
        return tensor

    def saved(self, storage: int) -> None:
        nodes = self.recorder.step.nodes
        if nodes and any(view.storage == storage for view in nodes[-1].writes):
            if not any(view.storage == storage for view in nodes[-1].reads):
                self.add(len(nodes) - 1, storage, "result")
                return
        self.pending.append(storage)

    def node_was_recorded(self, node: NodeRecord, names: list[str]) -> None:
        """Give what was saved for this node its role; `names` are of its reads."""
        if not self.pending:
            return
        index = len(self.recorder.step.nodes) - 1
        for storage in self.pending:
            role = next((name for name, view in zip(names, node.reads)
                         if view.storage == storage), "saved")
            self.add(index, storage, role)
        self.pending = []

    def add(self, node: int, storage: int, role: str) -> None:
        self.found.setdefault(SavedRecord(node, storage, role))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        import torch

        with torch.autograd.graph.saved_tensors_hooks(self.pack, lambda tensor: tensor):
            yield
