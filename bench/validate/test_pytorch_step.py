"""pytorch_step.py on the CPU: that it steps, offloads and says what is missing. No GPU has a part in it."""

import importlib.util
import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import pytorch_step


class CommandLine(unittest.TestCase):
    def test_the_defaults_are_a_resident_step_on_a_gpu(self):
        asked = pytorch_step.arguments(["resnet50", "32"])
        self.assertEqual((asked.model, asked.batch, asked.mode, asked.device, asked.memory),
                         ("resnet50", 32, "resident", "cuda", None))


@unittest.skipIf(importlib.util.find_spec("torch") is None, "torch is not installed")
class Steps(unittest.TestCase):
    def run_on_cpu(self, *words: str) -> str:
        return pytorch_step.measured(pytorch_step.arguments([*words, "--device", "cpu", "--steps", "2"]))

    def test_a_step_is_timed_in_both_modes(self):
        for mode in ("resident", "offload"):
            with self.subTest(mode):
                status, seconds, peak = self.run_on_cpu("mnist-cnn", "2", "--mode", mode).split()
                self.assertEqual((status, peak), ("ok", "0"))
                self.assertGreater(float(seconds), 0)

    def test_offloading_takes_what_autograd_saves(self):
        import torch
        packed = []
        hooks = torch.autograd.graph.saved_tensors_hooks
        with mock.patch.object(torch.autograd.graph, "save_on_cpu",
                               lambda pin_memory: hooks(lambda x: packed.append(x) or x, lambda x: x)):
            self.run_on_cpu("mnist-cnn", "2", "--mode", "offload")
        self.assertTrue(packed)

    def test_a_missing_package_is_named(self):
        import models
        with mock.patch.object(models, "build", side_effect=models.PackageMissing("transformers")):
            self.assertEqual(self.run_on_cpu("gpt2", "1"), "missing transformers")

    def test_memory_that_does_not_suffice_is_a_result(self):
        import torch
        import training
        with mock.patch.object(training, "Trainer", side_effect=torch.OutOfMemoryError()):
            self.assertEqual(self.run_on_cpu("mnist-cnn", "2"), "out-of-memory")


if __name__ == "__main__":
    unittest.main()
