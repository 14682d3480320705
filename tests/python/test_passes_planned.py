"""Recorded steps of several passes, planned by the program: keys are those of the first pass, and a later
pass has the same."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unittest
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import stowage

WIDTH, ROWS = 256, 8192


def generator() -> nn.Module:
    return nn.Sequential(nn.Linear(16, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))


def discriminator() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(0.2, True), nn.Linear(WIDTH, WIDTH),
                         nn.RReLU(), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 1))


class Gan:
    """Two models, two optimizers, two backward passes."""

    def __init__(self, device: str) -> None:
        torch.manual_seed(0)
        self.made, self.judged = generator().to(device), discriminator().to(device)
        self.optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (self.made, self.judged)]

    @property
    def models(self) -> Any:
        return {"made": self.made, "judged": self.judged}

    def step(self, real: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        fake = self.made(noise)
        loss = functional.softplus(self.judged(fake.detach()) - self.judged(real)).mean()
        loss.backward()
        self.optimizers[1].step()
        second = functional.softplus(-self.judged(fake)).mean()
        second.backward()
        self.optimizers[0].step()
        return loss.detach() + second.detach()


class Passes(unittest.TestCase):
    def setUp(self) -> None:
        program = os.environ.get("STOWAGE_PROGRAM")
        if program is None:
            self.skipTest("STOWAGE_PROGRAM names no program")
        self.program: str = program
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def asked(self, *words: str) -> Any:
        done = subprocess.run([self.program, *words, "--format", "json"], text=True, capture_output=True,
                              check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)

    def planned(self, build: Callable[[str], Gan], share: float) -> Any:
        """(what the program says, the plan), for a card with that share of what the step reserves."""
        step, plan = f"{self.folder}/step.json", f"{self.folder}/plan.json"
        stowage.record(build("cpu").step, (torch.zeros(ROWS, WIDTH), torch.zeros(ROWS, 16)), output=step)
        sized = self.asked("check", step, "--gpu-memory", "64GiB")
        memory = sized["device_bytes"] - int((1 - share) * sized["peak"]["reserved_bytes"])
        shown = self.asked("plan", step, "--for", "pytorch", "--gpu-memory", f"{memory}B", "-o", plan)
        return shown, stowage.read_plan(plan)

    def trained(self, build: Callable[[str], Gan], plan: Any) -> tuple[list[torch.Tensor], Any]:
        gan = build("cpu")
        applied = stowage.apply(gan.models, gan.optimizers, plan) if plan is not None else None
        torch.manual_seed(1)
        values = [gan.step(torch.randn(8, WIDTH), torch.randn(8, 16)) for _ in range(3)]
        if applied is not None:
            applied.remove()
        return [*values, *gan.made.state_dict().values(), *gan.judged.state_dict().values()], applied

    def check(self, build: Callable[[str], Gan], share: float) -> None:
        shown, plan = self.planned(build, share)
        self.assertGreater(len(plan.offload), 0, shown)
        unplanned, _ = self.trained(build, None)
        planned, applied = self.trained(build, plan)
        self.assertTrue(all(torch.equal(one, other) for one, other in zip(unplanned, planned)))
        self.assertEqual((applied.fell_back, applied.first_reason), (0, ""))
        self.assertGreater(applied.bytes_out, 0)

    def test_two_networks(self) -> None:
        self.check(Gan, 0.9)


if __name__ == "__main__":
    unittest.main()
