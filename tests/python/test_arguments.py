"""Arguments that no step can have are refused by their names, and one step is recorded at a time."""

from __future__ import annotations

import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

import torch
from torch import nn

import stowage

PACKAGE = str(pathlib.Path(__file__).parent.parent.parent / "python")
NUMBERS = "is no whole number from 1 to"
THREADS = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import torch, stowage

inside, refused = threading.Event(), threading.Event()

class Waits(torch.nn.Linear):
    def forward(self, x):
        inside.set()
        assert refused.wait(120)
        return super().forward(x)

def record(model):
    try:
        stowage.record(model, torch.zeros(4, 8), loss=lambda output: output.mean())
        print("recorded", flush=True)
    except stowage.StowageError as error:
        print(error, flush=True)

first = threading.Thread(target=record, args=(Waits(8, 8),))
first.start()
assert inside.wait(120)
second = threading.Thread(target=record, args=(torch.nn.Linear(8, 8),))
second.start()
second.join()
refused.set()
first.join()
record(torch.nn.Linear(8, 8))
"""


def linear() -> nn.Linear:
    return nn.Linear(8, 8)


class Arguments(unittest.TestCase):
    def refusal(self, model: Any = None, inputs: Any = None, **options: Any) -> str:
        inputs = torch.zeros(4, 8) if inputs is None else inputs
        with self.assertRaises(stowage.StowageError) as raised:
            stowage.record(model or linear(), inputs, loss=lambda output: output.mean(), **options)
        return str(raised.exception)

    def test_a_batch_that_is_none(self) -> None:
        for batch in (0, -1, 1.5, math.nan, True, 2 ** 40):
            self.assertEqual(self.refusal(batch=batch), f"batch={batch} {NUMBERS} 1,000,000,000")

    def test_inputs_without_a_sample(self) -> None:
        message = ("input 0 of shape [0, 8] has nothing along axis 0\n  give it a batch of at least 1")
        self.assertEqual(self.refusal(inputs=torch.zeros(0, 8)), message)
        with self.assertRaises(stowage.StowageError) as raised:
            stowage.record(lambda x: x.sum(), torch.zeros(0, 8))
        self.assertEqual(str(raised.exception), message)

    def test_counts_that_are_none(self) -> None:
        for value in (0, -2, math.nan, 1.5, False):
            self.assertEqual(self.refusal(micro_batches=value),
                             f"micro_batches={value} {NUMBERS} 1,000,000")
            self.assertEqual(self.refusal(seq=value), f"seq={value} {NUMBERS} {2 ** 60:,}")

    def test_whole_numbers_of_numpy_are_taken(self) -> None:
        import numpy

        recorded = stowage.record(linear(), torch.zeros(4, 8), loss=lambda output: output.mean(),
                                  batch=numpy.int64(3), seq=numpy.int32(5), micro_batches=numpy.uint8(2))
        with tempfile.TemporaryDirectory() as folder:
            recorded.save(os.path.join(folder, "s.json"))
        self.assertEqual((recorded.document["batch"], recorded.document["seq"]), (3, 5))

    def test_a_compute_capability_that_is_not_one(self) -> None:
        for value in (8.6, (math.nan, 0), (-1, 0), (8,), "8.6"):
            self.assertEqual(self.refusal(compute_capability=value),
                             f"compute_capability={value!r} is not a compute capability\n"
                             "  write (major, minor): (8, 6)")

    def test_batch_axes_that_are_none(self) -> None:
        for axes, axis in ((math.nan, "nan"), ([1.5], "1.5"), ("0", "'0'")):
            self.assertEqual(self.refusal(batch_axes=axes),
                             f"batch_axes: {axis} is no axis\n"
                             "  a number from 0 on, or None where a tensor has no batch")

    def test_a_name_that_is_no_text(self) -> None:
        self.assertEqual(self.refusal(name=5), "name=5 is no text")

    def test_a_rate_of_dropout_that_is_none(self) -> None:
        self.assertEqual(self.refusal(nn.Sequential(linear(), nn.Dropout(math.nan))),
                         "1: Dropout has p=nan\n  a probability lies between 0 and 1")
        model = nn.Sequential(linear(), nn.Dropout2d(math.nan))

        def step(x: torch.Tensor) -> None:
            model(x).mean().backward()

        with self.assertRaises(stowage.StowageError) as raised:
            stowage.record(step, torch.zeros(4, 8))
        self.assertEqual(str(raised.exception),
                         "1: Dropout2d has p=nan\n  a probability lies between 0 and 1")

    def test_an_optimizers_settings_that_are_none(self) -> None:
        for made, message in (
                (lambda p: torch.optim.SGD(p, lr=math.nan),
                 "optimizer: SGD has lr=nan\n  give it a finite number"),
                (lambda p: torch.optim.SGD(p, lr=math.inf),
                 "optimizer: SGD has lr=inf\n  give it a finite number"),
                (lambda p: torch.optim.SGD(p, lr=0.1, momentum=math.nan),
                 "optimizer: SGD has momentum=nan\n  give it a finite number"),
                (lambda p: torch.optim.AdamW(p, betas=(math.nan, 0.9)),
                 "optimizer: Invalid beta parameter at index 0: nan"),
                (lambda p: torch.optim.SGD(p, lr=-1), "optimizer: Invalid learning rate: -1")):
            self.assertEqual(self.refusal(optimizer=made), message)

    def test_of_a_functions_optimizer_too(self) -> None:
        model = linear()
        optimizer = torch.optim.SGD(model.parameters(), lr=math.nan)

        def step(x: torch.Tensor) -> None:
            model(x).mean().backward()
            optimizer.step()
            optimizer.zero_grad()

        with self.assertRaises(stowage.StowageError) as raised:
            stowage.record(step, torch.zeros(4, 8))
        self.assertEqual(str(raised.exception),
                         "optimizer: SGD has lr=nan\n  give it a finite number")


class Threads(unittest.TestCase):
    def test_a_second_recording_at_the_same_time_is_refused(self) -> None:
        done = subprocess.run([sys.executable, "-c", THREADS, PACKAGE], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stdout),
                         (0, "this process records a step already, in this thread or another\n"
                             "  record one step after the other, or in processes of their own\n"
                             "recorded\nrecorded\n"), done.stderr)

    def test_a_recording_within_a_recording_is_refused(self) -> None:
        class Records(nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                stowage.record(linear(), torch.zeros(4, 8), loss=lambda output: output.mean())
                return super().forward(x)

        with self.assertRaisesRegex(stowage.StowageError, "this process records a step already"):
            stowage.record(Records(8, 8), torch.zeros(4, 8), loss=lambda output: output.mean())


if __name__ == "__main__":
    unittest.main()
