"""Keys: the names of saved tensors, by which a recording and a plan mean the same one.

Autograd calls the pack hook of torch.autograd.graph.saved_tensors_hooks once for each tensor that
forward saves. A key names one such call, "layer1.0.conv1#0": the path of the innermost running module
(trace/modules.py), and which of the pack calls with this path it is, counted from 0 within one pass.

A pass begins with the first pack call of a step, and again with the first one that follows a backward:
micro-batches have the same keys. Not counted are calls within backward (create_graph, a region that
runs again), calls for tensors that are not on the step's device, and those that other hooks get: a region
of torch.utils.checkpoint has hooks of its own.
Inputs of what a plan runs again have keys of their own (region_names.py).
"""

from __future__ import annotations

import torch


def runs_backward() -> bool:
    """Whether the autograd engine is running a node in this thread."""
    return torch._C._current_autograd_node() is not None


def is_named(tensor: torch.Tensor, device_type: str) -> bool:
    """Whether a pack call for this tensor, now, has a key in a step on a device of that type."""
    return tensor.device.type == device_type and not runs_backward()


class SavedNames:
    """The keys of one pass. `is_over` once a saved tensor of it was unpacked within backward: the next
    pack call with a key belongs to another pass."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}  # {path: pack calls with it}
        self.is_over = False

    @property
    def calls(self) -> int:
        """Pack calls with keys, so far."""
        return sum(self.counts.values())

    def next_key(self, path: str) -> str:
        """The key of the pack call that is made now; `path` is that of the innermost running module, ""
        outside of all."""
        number = self.counts.get(path, 0)
        self.counts[path] = number + 1
        return f"{path}#{number}"

    def was_unpacked(self) -> None:
        """A saved tensor of this pass is unpacked. Unpacked outside of backward, as by
        grad_fn._saved_self, it ends no pass."""
        self.is_over = self.is_over or runs_backward()


def path_of_key(key: str) -> str:
    """The module's path in a key: "layer1.0.conv1" of "layer1.0.conv1#0"; of an input's, the region's
    name."""
    return key.rpartition("#")[0]
