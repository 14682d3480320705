"""The rows of modules in recordings: which run, and what they are given."""

from __future__ import annotations

import unittest
from typing import Any

import torch
from torch import nn

import stowage


def rows(model: nn.Module, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """({path: [kind, inputs]}, the document)"""
    document = stowage.record(model, torch.zeros(4, 8), loss=lambda output: output.mean(),
                              **options).document
    return {row[0]: row[1:] for row in document.get("modules", ())}, document


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Linear(8, 8)

    def forward(self, scale: float, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        return self.part(x).tanh() * scale + (0 if y is None else y)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.twice = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        h = self.blocks[0](0.5, h, y=h)
        h = self.blocks[1](2.0, h, h)
        return self.twice(self.twice(h))


class Rows(unittest.TestCase):
    def test_modules_in_the_order_of_their_calls(self) -> None:
        found, _ = rows(Net())
        self.assertEqual({path: kind for path, (kind, _) in found.items()}, {
            "Net": "module", "body": "sequence", "body.0": "module", "body.1": "module",
            "blocks.0": "module", "blocks.0.part": "module", "blocks.1": "module",
            "blocks.1.part": "module"})

    def test_positional_tensors_are_inputs(self) -> None:
        found, document = rows(Net())
        names = [row[0] for row in document["step"]["storages"]]
        nodes = [row[0] for row in document["step"]["nodes"]]

        def inputs(path: str) -> list[tuple[int, str, str]]:
            return [(number, names[storage], nodes[held]) for number, storage, _, held in found[path][1]]

        self.assertEqual(inputs("body.1"), [(0, "body.0.addmm", "body.1.relu")])
        # The caller's variable holds it until the block has returned.
        self.assertEqual(inputs("blocks.0"), [(0, "body.1.relu", "blocks.0.add")])
        self.assertEqual(inputs("blocks.1"), [(0, "blocks.0.add", "blocks.1.add"),
                                              (1, "blocks.0.add", "blocks.1.add")])
        layout = document["layouts"][found["blocks.1"][1][0][2]]
        self.assertEqual((layout[0], document["shapes"][layout[1]]), ("float32", [[0, 1], 8]))

    def test_a_sequence_with_a_forward_of_its_own_is_none(self) -> None:
        class Own(nn.Sequential):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(x) + x

        found, _ = rows(nn.Sequential(Own(nn.Linear(8, 8)), nn.Sequential(nn.Linear(8, 8))))
        self.assertEqual([(path, kind) for path, (kind, _) in found.items() if "." not in path],
                         [("Sequential", "sequence"), ("0", "module"), ("1", "sequence")])

    def test_an_inference_has_none(self) -> None:
        document = stowage.record(Net(), torch.zeros(4, 8), mode="inference").document
        self.assertNotIn("modules", document)


if __name__ == "__main__":
    unittest.main()
