"""Recorded steps have the peaks that tests/reference measured: to the byte, for every optimizer."""

from __future__ import annotations

import unittest
from typing import Any

import torch.nn.functional as functional

import stowage
from references import example, has, measured, reference_model
from step_memory import ALLOCATION_UNIT, StepMemory

OPTIMIZERS = ("sgd", "sgd-momentum", "adam", "adamw")


def recorded(name: str, batch: int, optimizer: str, seq: int | None = None) -> dict[str, Any]:
    reference, model = reference_model(name, seq)
    inputs, target = example(reference, batch, seq)
    if name.startswith("gpt2"):
        return stowage.record(model, {"input_ids": inputs, "labels": target, "use_cache": False},
                              optimizer=optimizer, compute_capability=(8, 0)).document
    loss = functional.mse_loss if name.startswith("keras") else functional.cross_entropy
    return stowage.record(model, inputs, target=target, loss=loss, optimizer=optimizer,
                          compute_capability=(8, 0)).document


class Peaks(unittest.TestCase):
    maxDiff = None

    def check(self, name: str, batch: int, optimizer: str) -> dict[str, Any]:
        figures = measured(f"{name}-b{batch}")["step_trace_cuda"][optimizer]
        document = recorded(name, batch, optimizer)
        self.assertEqual(document["warnings"], [])
        self.assertFalse(document["fixed_batch"])
        steady = StepMemory(document)
        found = {"step1_peak": StepMemory(document, first=True).peak, "step2_peak": steady.peak,
                 "step2_peak_rounded_512": StepMemory(document, unit=ALLOCATION_UNIT).peak,
                 "backward": steady.peak_of("backward"), "optimizer": steady.peak_of("optimizer")}
        expected = {key: figures[key] for key in list(found)[:3]}
        for phase in ("backward", "optimizer"):
            expected[phase] = figures["step2_phases"][phase]["peak"]
        self.assertEqual(found, expected)
        return document

    def test_mlp(self) -> None:
        for optimizer in OPTIMIZERS:
            with self.subTest(optimizer):
                self.check("mlp", 2, optimizer)

    def test_cnn(self) -> None:
        self.check("mnist-cnn", 4, "adam")

    @unittest.skipUnless(has("torchvision"), "torchvision is not installed")
    def test_resnet18(self) -> None:
        for optimizer in ("sgd", "adam"):
            with self.subTest(optimizer):
                self.check("resnet18", 2, optimizer)

    def test_unet(self) -> None:
        self.check("unet", 2, "sgd-momentum")

    @unittest.skipUnless(has("torchvision"), "torchvision is not installed")
    def test_vgg16_is_affine_in_the_batch(self) -> None:
        """Recorded at batch 2, it has at 64 the peak that was measured at 64."""
        document = recorded("vgg16", 2, "sgd")
        expected = measured("vgg16-b64")["step_trace_cuda"]["sgd"]["step2_peak"]
        self.assertEqual(StepMemory(document, batch=64).peak, expected)

    @unittest.skipUnless(has("transformers"), "transformers is not installed")
    def test_gpt2(self) -> None:
        self.check("gpt2", 2, "adamw")
