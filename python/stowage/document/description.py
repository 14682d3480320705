"""What a step file says of the recording as a whole: model, precision, optimizer, settings."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stowage.document.settings import optimizer_settings, step_settings

if TYPE_CHECKING:
    from stowage.training.function_step import FunctionStep
    from stowage.training.model_step import ModelStep


@dataclasses.dataclass
class Description:
    """The recording's settings."""

    name: str
    source: str
    torch_version: str
    precision: str
    training: bool
    micro_batches: int
    seq: int | None
    input_names: list[str]
    # name, settings, implementation, whether the reader's table has the name
    optimizer: tuple[str, dict[str, Any], str, bool]
    capability: tuple[int, int]
    layout: str
    warnings: list[dict[str, str]]
    repeatable: bool  # the step of one micro-batch may be repeated

    def settings(self, graph: dict[str, Any]) -> dict[str, Any]:
        import torch

        persists = any(row[1] == "gradient" and row[2] == "persistent" for row in graph["storages"])
        name, settings, implementation, _ = self.optimizer
        return step_settings(torch, optimizer_settings(name, settings, implementation),
                             self.training, self.micro_batches,
                             "to_zero" if persists else "to_none", self.layout, self.capability)


def input_names(step: ModelStep | FunctionStep) -> list[str]:
    """A name for each input tensor on the device, in the order of arguments, keywords and target."""
    import torch
    from torch.utils._pytree import tree_flatten_with_path

    arguments, keywords, target = step.batch
    names = []
    for prefix, tree in (("input", arguments), ("", keywords), ("target", target)):
        leaves, _ = tree_flatten_with_path(tree)
        tensors = [(path, leaf) for path, leaf in leaves
                   if isinstance(leaf, torch.Tensor) and leaf.device.type == "cuda"]
        for path, _ in tensors:
            words = [str(getattr(key, "key", getattr(key, "idx", ""))) for key in path]
            if prefix == "input" and len(tensors) == 1:
                words = []
            names.append(".".join(word for word in (prefix, *words) if word) or "input")
    return names
