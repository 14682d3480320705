"""Updates as the program plans them, carried out on the pretended device: bytes and the peak are the
plan's."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import unittest
from collections.abc import Callable
from typing import Any

import stowage
from command_case import CommandCase


class UpdatesPlanned(CommandCase):
    files = {"train.py": """
        import torch, stowage

        def build():
            torch.manual_seed(0)
            layers = [torch.nn.Linear(1024, 1024) for _ in range(12)]
            model = torch.nn.Sequential(*layers).cuda()
            return model, torch.optim.AdamW(model.parameters(), lr=1e-3)

        @stowage.step
        def step(model, optimizer, inputs):
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        if __name__ == "__main__":
            step(*build(), torch.zeros(8, 1024).cuda())
        """}

    def planned(self, memory: str, *words: str) -> dict[str, Any]:
        """The program's answer."""
        program = os.environ.get("STOWAGE_PROGRAM")
        if not program or not os.path.exists(program):
            self.skipTest("STOWAGE_PROGRAM names no program")
        done = subprocess.run(
            [program, "plan", "s.json", "--for", "pytorch", "--gpu-memory", memory, "--format", "json",
             *words], capture_output=True, text=True, check=False,
            env={**os.environ, "STOWAGE_NO_CACHE": "1"})
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def test_bytes_and_peak(self) -> None:
        self.record("train.py")
        script = runpy.run_path("train.py")

        def build() -> tuple[Any, Any, Callable[[], Any]]:
            import torch

            model, optimizer = script["build"]()
            inputs = torch.zeros(8, 1024, device="cuda")
            return model, optimizer, lambda: script["step"](model, optimizer, inputs)

        layer = 4 * (1024 * 1024 + 1024)
        for memory, wanted in (("600MiB", ("early-update",)),
                               ("470MiB", ("cpu-optimizer-", "cpu-optimizer"))):
            names = [plan["name"] for plan in self.planned(memory)["plans"]]
            for choice in wanted:
                name = next((one for one in names if one.startswith(choice)), None)
                self.assertIsNotNone(name, f"{choice} at {memory}: {names}")
                with self.subTest(choice=name):
                    self.planned(memory, "--choose", str(name), "-o", "p.json")
                    plan = stowage.read_plan("p.json")
                    self.assertTrue(plan.early_updates)
                    found = stowage.rehearse(build, plan)
                    self.assertEqual((found.bytes_out, found.bytes_back, found.first_reason),
                                     (plan.update_bytes, plan.update_bytes, ""))
                    self.assertEqual(found.bytes_out > 0, choice != "early-update")
                    if plan.cpu_parameters:
                        self.assertLess(plan.update_bytes, 12 * layer)
                    assert plan.peak_allocated is not None
                    self.assertLessEqual(found.peak_bytes, plan.peak_allocated)
                    # The plan's has cuBLAS' workspaces besides, of 8 MiB.
                    self.assertGreater(found.peak_bytes, plan.peak_allocated * 0.7)


if __name__ == "__main__":
    unittest.main()
