"""What autograd keeps for backward.

Autograd saves an operator's arguments before it calls the kernel and its results after: a saved
tensor whose storage the next node reads is its argument, one that the last node wrote its result.
"""

import contextlib

from stowage.trace.record import SavedRecord


class SavedTensors:
    """Collects for one step what is saved, in the order of saving."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.pending = []
        self.found = {}

    def start(self):
        self.pending, self.found = [], {}

    def pack(self, tensor):
        if tensor.device.type == "cuda":
            self.saved(self.recorder.storage_of(tensor))
        return tensor

    def saved(self, storage):
        nodes = self.recorder.step.nodes
        if nodes and any(view.storage == storage for view in nodes[-1].writes):
            if not any(view.storage == storage for view in nodes[-1].reads):
                self.add(len(nodes) - 1, storage, "result")
                return
        self.pending.append(storage)

    def node_was_recorded(self, node, names):
        """Give what was saved for this node its role; `names` are of its reads."""
        if not self.pending:
            return
        index = len(self.recorder.step.nodes) - 1
        for storage in self.pending:
            role = next((name for name, view in zip(names, node.reads)
                         if view.storage == storage), "saved")
            self.add(index, storage, role)
        self.pending = []

    def add(self, node, storage, role):
        self.found.setdefault(SavedRecord(node, storage, role))

    @contextlib.contextmanager
    def watched(self):
        import torch

        with torch.autograd.graph.saved_tensors_hooks(self.pack, lambda tensor: tensor):
            yield
