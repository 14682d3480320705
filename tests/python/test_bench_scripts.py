"""The table of models (bench/apply/models.py) over a script as others write it: recorded, planned by the
program, rehearsed, and trained with and without the plan."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench/apply"

LOOP = """\
import sys
import torch

class Loop:
    def __init__(self):
        torch.manual_seed(0)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        blocks = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(6)]
        self.model, self.device = torch.nn.Sequential(*blocks).to(device), device
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def run(self, batch):
        for _ in range(5):
            x = torch.randn(batch, 64, device=self.device)
            self.optimizer.zero_grad()
            loss = self.model(x).square().mean()
            loss.backward()
            self.optimizer.step()

Loop().run(int(sys.argv[1]))
"""
STEP = """\
            @script_hooks.step
            def train_step(x):
                self.optimizer.zero_grad()
                loss = self.model(x).square().mean()
                loss.backward()
                self.optimizer.step()
                return loss
            loss = train_step(x)
"""


def loaded(name: str) -> Any:
    """A module of the bench. tests/reference has a models.py as well."""
    specification = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # for its dataclasses
    specification.loader.exec_module(module)
    return module


class Scripts(unittest.TestCase):
    def setUp(self) -> None:
        self.enterContext(mock.patch.object(sys, "path", [str(BENCH), *sys.path]))
        self.models, self.public = loaded("models"), loaded("public_scripts")
        self.enterContext(mock.patch.dict(sys.modules, public_scripts=self.public))
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        clone = self.folder / "someone/loops"
        (clone / "train").mkdir(parents=True)
        (clone / "train/loop.py").write_text(LOOP)
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "A loop"]):
            subprocess.run(["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b.c",
                            *words], check=True)
        head = subprocess.run(["git", "-C", str(clone), "rev-parse", "HEAD"], text=True, check=True,
                              capture_output=True).stdout.strip()
        self.script = self.public.PublicScript(
            "someone/loops", head, "train/loop.py", "train/loop.py", 15, 18, 10, "x", "loss",
            "self.model", "self.optimizer", ("{batch}",), 65536)
        self.enterContext(mock.patch.object(self.public, "SCRIPTS", (self.script,)))
        self.enterContext(mock.patch.object(self.models, "SCRIPTS", (self.script.name,)))

    def test_the_lines_that_are_added(self) -> None:
        lines = LOOP.split("\n")
        made = "        script_hooks.made(self.model, self.optimizer)"
        self.assertEqual(self.public.edited_text(self.script, LOOP),
                         "\n".join(["import script_hooks", *lines[:10], made, *lines[10:14],
                                    STEP.rstrip("\n"), *lines[18:]]))

    def test_another_commit_is_refused(self) -> None:
        other = dataclasses.replace(self.script, commit="0" * 40)
        with self.assertRaises(ValueError) as caught:
            self.public.copied(other, str(self.folder), str(self.folder / "copy"))
        self.assertEqual(str(caught.exception), f"{self.folder}/someone/loops is no clone of "
                         f"github.com/someone/loops at {'0' * 40}")

    def test_a_row(self) -> None:
        program = os.environ.get("STOWAGE_PROGRAM")
        if program is None:
            self.skipTest("STOWAGE_PROGRAM names no program")
        with mock.patch.object(self.models, "PROGRAM", program):
            cells = self.models.row_of(self.script.name, 0.7, "", str(self.folder)).split(" | ")
        self.assertEqual(cells[:2], ["| train/loop.py", "0.7"])
        self.assertEqual(cells[4], "0")
        self.assertLess(float(cells[5].removesuffix(" MiB")), float(cells[6].removesuffix(" MiB")))
        self.assertTrue(cells[7].startswith("equal bits, "), cells[7])


if __name__ == "__main__":
    unittest.main()
