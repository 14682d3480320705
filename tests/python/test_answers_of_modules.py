"""`stowage.check` and its siblings of a module: it is recorded for the card, then asked about."""

from __future__ import annotations

import os
import pathlib
import tempfile
import unittest
from typing import Any

import torch
from torch import nn

import stowage


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(),
                                    nn.Linear(16 * 30 * 30, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)


IMAGES = torch.empty(8, 3, 32, 32)
LABELS = torch.zeros(8, dtype=torch.int64)
TRAINING: dict[str, Any] = {"target": LABELS, "loss": nn.functional.cross_entropy, "optimizer": "adamw"}


@unittest.skipUnless(os.path.exists(os.environ.get("STOWAGE_PROGRAM", "")),
                     "STOWAGE_PROGRAM names no program")
class Modules(unittest.TestCase):
    def test_check_is_that_of_the_recorded_step(self) -> None:
        found = stowage.check(Net(), IMAGES, **TRAINING, gpu="rtx4090", precision="amp-bf16", batch=64)
        step = stowage.record(Net(), IMAGES, **TRAINING, precision="amp-bf16", compute_capability=(8, 9))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "s.json"
            step.save(path)
            self.assertEqual(found, stowage.check(path, gpu="rtx4090", batch=64))
        self.assertEqual(found, stowage.check(step, gpu="rtx4090", batch=64))
        self.assertTrue(found.fits)
        self.assertEqual(found.settings["batch"], 64)
        self.assertEqual(found.settings["optimizer"], "adamw")

    def test_the_card_decides_the_capability(self) -> None:
        from unittest import mock

        from stowage.answers import question

        with mock.patch("stowage.record.record", wraps=stowage.record) as recorded:
            question.asked_of("check", Net(), IMAGES, {**TRAINING, "gpu": "t4"})
            question.asked_of("check", Net(), IMAGES, {**TRAINING, "gpu_memory": "8GiB"})
        self.assertEqual([call.kwargs.get("compute_capability") for call in recorded.call_args_list],
                         [(7, 5), None])

    def test_batch_and_plan_for_pytorch(self) -> None:
        found = stowage.batch(Net(), IMAGES, **TRAINING, gpu_memory="2GiB")
        self.assertGreater(found.recommended, 8)
        plan = stowage.plan(Net(), IMAGES, **TRAINING, gpu_memory="2GiB", batch=found.largest + 512,
                            for_="pytorch")
        self.assertTrue(plan.fits)
        self.assertLessEqual(plan.best.pcie_lower_bound_bytes, plan.best.pcie_bytes)

    def test_a_table_of_a_module_is_recorded_for_each_capability(self) -> None:
        found = stowage.table(Net(), ["t4", "rtx3090", "rtx3060"], IMAGES, **TRAINING, batch=16)
        self.assertEqual(sorted((row.device or {})["name"] for row in found.rows),
                         ["GeForce RTX 3060 12GB", "GeForce RTX 3090", "Tesla T4"])
        self.assertTrue(found.fits and all(row.fits for row in found.rows))
        self.assertEqual({row.needed_at_batch for row in found.rows}, {16})

    def test_assert_fits(self) -> None:
        self.assertTrue(stowage.assert_fits(Net(), IMAGES, **TRAINING, gpu="t4").fits)
        with self.assertRaisesRegex(AssertionError, "does not fit"):
            stowage.assert_fits(Net(), IMAGES, **TRAINING, gpu_memory="600MiB", batch=100_000)

    def test_a_function_that_runs_a_whole_step(self) -> None:
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def train(images: torch.Tensor) -> None:
            optimizer.zero_grad()
            net(images).sum().backward()
            optimizer.step()

        self.assertTrue(stowage.check(train, IMAGES, gpu="t4").fits)

    def test_refusals(self) -> None:
        step = stowage.record(Net(), IMAGES, **TRAINING)
        for said, words, options in (("recorded with example inputs", [Net()], {}),
                                     ("has its inputs already", [step, IMAGES], {}),
                                     ("fp17", [Net(), IMAGES], {**TRAINING, "precision": "fp17"})):
            with self.subTest(said), self.assertRaisesRegex(stowage.StowageError, said):
                stowage.check(*words, gpu="t4", **options)


if __name__ == "__main__":
    unittest.main()
