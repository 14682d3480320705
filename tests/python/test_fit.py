"""`python -m stowage fit`: a script recorded, planned by the program, and the lines to add."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

from stowage.command_line.program import answer_of, compute_capability_of, stowage_program
from stowage.errors import StowageError

SCRIPT = textwrap.dedent("""\
    import torch
    from torch import nn

    import stowage


    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(1024, 1024), nn.Linear(1024, 1024)

        def forward(self, x):
            return x + self.second(torch.relu(self.first(x)))


    @stowage.step
    def train_step(model, optimizer, images):
        optimizer.zero_grad()
        loss = model(images).mean()
        loss.backward()
        optimizer.step()
        return loss


    model = nn.Sequential(*(Block() for _ in range(6))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_step(model, optimizer, torch.randn(8, 1024, device="cuda"))
    """)


class Fit(unittest.TestCase):
    def fit(self, *words: str) -> tuple[int, str, str]:
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "train.py"
            script.write_text(SCRIPT)
            done = subprocess.run([sys.executable, "-m", "stowage", "fit", str(script), *words],
                                  cwd=folder, text=True, capture_output=True, check=False,
                                  env={**os.environ, "STOWAGE_PROGRAM": stowage_program()})
            plan = pathlib.Path(folder) / "train.plan.yaml"
            self.plan = json.loads(plan.read_text()) if plan.exists() else None
        return done.returncode, done.stdout, done.stderr

    def test_a_script_gets_its_plan_and_the_lines_to_add(self) -> None:
        code, out, err = self.fit("--gpu-memory", "900MiB", "--batch", "12000")
        self.assertEqual(code, 0, err)
        self.assertIn("recorded train at batch 12000: ", err)
        self.assertIn('    stowage.apply(model, optimizer, "train.plan.yaml")\n', out)
        self.assertEqual(self.plan["names"], "recorded")
        self.assertNotIn("question", self.plan)  # the recording is not kept
        self.assertEqual(self.plan["batch"] * self.plan["micro_batches"], 12000)

    def test_what_does_not_fit_is_a_no_and_writes_nothing(self) -> None:
        code, out, _ = self.fit("--gpu-memory", "500MiB", "--batch", "12000")
        self.assertEqual(code, 1)
        self.assertIn("has no room for the step", out)
        self.assertIsNone(self.plan)

    def test_a_card_is_asked_for(self) -> None:
        code, _, err = self.fit()
        self.assertEqual(code, 2)
        self.assertEqual(err, "error: a plan is for one card: --gpu NAME or --gpu-memory SIZE\n"
                              "  stowage gpus lists the names\n")


class Program(unittest.TestCase):
    def test_a_card_has_the_programs_own_compute_capability(self) -> None:
        self.assertEqual(compute_capability_of("gtx 1060 6gb"), (6, 1))
        self.assertEqual(compute_capability_of("h100 sxm"), (9, 0))

    def test_the_programs_mistakes_are_passed_on(self) -> None:
        with self.assertRaises(StowageError) as refused:
            compute_capability_of("nosuch")
        self.assertEqual(refused.exception.message, "unknown GPU 'nosuch'")
        self.assertEqual(answer_of(["gpus"])["schema_version"], 1)


if __name__ == "__main__":
    unittest.main()
