"""Exported models keep for their backward pass what PyTorch keeps, to the byte, and have its
parameters: those that tests/reference measured."""

from __future__ import annotations

import json
import unittest
from typing import Any

from exported import ROOT, has, program, saved_bytes, summary
from stowage.export import export
from stowage.sources import SourceOptions, resolve

TORCHVISION = ("resnet18", "mobilenet_v2", "mobilenet_v3_small", "regnet_y_400mf", "vit_b_16",
               "convnext_tiny", "swin_t", "shufflenet_v2_x0_5", "mnasnet0_5")
TIMM = ("vit_tiny_patch16_224", "mixer_b16")


def measured(stem: str) -> dict[str, Any]:
    models = ROOT / "tests" / "reference" / "models"
    for path in (models / f"{stem}.json", models / "compact" / f"{stem}.json"):
        if path.exists():
            return json.loads(path.read_text())
    raise FileNotFoundError(stem)


@unittest.skipUnless(program(), "no stowage program")
class Saved(unittest.TestCase):
    def check(self, text: str, stem: str, batch: int, seq: int | None = None) -> None:
        reference = measured(stem)
        self.assertEqual(saved_bytes(text, batch, seq),
                         reference["saved_totals_cuda"]["other"]["bytes"])
        model = summary(text, batch, seq)["model"]
        self.assertEqual(model["parameters"], reference["parameters"])
        self.assertEqual(model["buffer_bytes"], reference["buffer_bytes"])

    @unittest.skipUnless(has("torchvision"), "torchvision is not installed")
    def test_torchvision(self) -> None:
        for name in TORCHVISION:
            with self.subTest(name):
                self.check(export(resolve(f"torchvision:{name}")), f"{name}-b2", 2)

    @unittest.skipUnless(has("torchvision"), "torchvision is not installed")
    def test_another_batch_than_that_of_the_trace(self) -> None:
        self.check(export(resolve("torchvision:mobilenet_v2")), "mobilenet_v2-b32", 32)

    @unittest.skipUnless(has("timm"), "timm is not installed")
    def test_timm(self) -> None:
        for name in TIMM:
            with self.subTest(name):
                source = name if name.startswith("vit") else f"{name}_224"
                self.check(export(resolve(f"timm:{source}")), f"{name}-b2", 2)

    @unittest.skipUnless(has("transformers"), "transformers is not installed")
    def test_a_sequence_length_stays_open(self) -> None:
        """Traced at 32 and 40 tokens, asked at 128."""
        text = export(resolve("transformers:gpt2", SourceOptions(seq=32)),
                      (40, resolve("transformers:gpt2", SourceOptions(seq=40)).example))
        self.assertEqual(summary(text, 2, 128)["model"]["parameters"], 124_439_808)
        by_seq = [saved_bytes(text, 2, seq) for seq in (32, 64, 96)]
        self.assertEqual(by_seq[2] - by_seq[1], by_seq[1] - by_seq[0])


if __name__ == "__main__":
    unittest.main()
