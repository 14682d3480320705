"""Ctrl-C while a command runs: exit code 130, no traceback, nothing half-written."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import torch
from torch import nn

import stowage
from applied_case import mean_square
from command_case import PACKAGE, CommandCase
from planned import Planner, write_plan

NOTHING = (130, "", "interrupted: nothing was written\n")
BUSY = """
    import os, signal, sys, time
    import torch

    def started():
        print("started", file=sys.stderr, flush=True)
        for _ in range(600):
            time.sleep(0.1)

    def build_model():
        started()
        return torch.nn.Linear(2, 2)

    if __name__ == "__main__":
        started()
"""
INSIDE = """
    import os, signal, weakref
    import torch
    import stowage

    class Watched:
        pass

    def interrupt(*_):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass

    def in_a_callback():
        one = Watched()
        reference = weakref.ref(one, interrupt)
        del one
        for _ in range(100):
            import time; time.sleep(0.1)

    def caught():
        try:
            interrupt()
        except:
            pass

    @stowage.step
    def step(model, x):
        loss = model(x).mean()
        loss.backward()
        WHERE()
        return loss

    step(torch.nn.Linear(3, 2).cuda(), torch.randn(6, 3, device="cuda"))
"""
PROGRAM = """#!/bin/sh
# Stands in for the program: it has a plan to write when it is interrupted.
cat > /dev/null
trap 'echo plan > "$OUTPUT"; exit 130' INT
echo started >&2
for second in 1 2 3 4 5 6 7 8 9; do sleep 1; done
"""
QUICK = """
    import torch
    import stowage

    @stowage.step
    def step(model, x):
        loss = model(x).mean()
        loss.backward()
        return loss

    step(torch.nn.Linear(3, 2).cuda(), torch.randn(6, 3, device="cuda"))
"""
# Tests may run where SIGINT is ignored, as in a shell's background.
COMMAND = [sys.executable, "-c", "import signal\n"
           "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
           "from stowage.__main__ import command\ncommand()"]


@unittest.skipUnless(hasattr(os, "killpg"), "needs groups of processes")
class Commands(CommandCase):
    files = {"busy.py": BUSY, "callback.py": INSIDE.replace("WHERE", "in_a_callback"),
             "caught.py": INSIDE.replace("WHERE", "caught"), "quick.py": QUICK, "program": PROGRAM}

    def setUp(self) -> None:
        super().setUp()
        os.chmod("program", 0o755)
        pathlib.Path("old").write_text("before")
        self.before = sorted(os.listdir())

    def interrupted(self, *words: str, **variables: str) -> tuple[int, str, str]:
        """(exit code, stdout, what stderr had after "started") of a command that gets a terminal's
        Ctrl-C, as its whole group does, when it says "started"."""
        started = subprocess.Popen(
            [*COMMAND, *words], text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(PACKAGE), **variables})
        self.addCleanup(started.kill)
        assert started.stderr is not None
        while started.stderr.readline() not in ("started\n", ""):
            pass
        os.killpg(started.pid, signal.SIGINT)
        output, errors = started.communicate(timeout=60)
        return started.returncode, output, errors

    def unchanged(self) -> None:
        self.assertEqual(pathlib.Path("old").read_text(), "before")
        self.assertEqual([name for name in sorted(os.listdir()) if name != "__pycache__"], self.before)

    def test_a_script_that_runs(self) -> None:
        for words in (("record", "busy.py"), ("record", "busy.py:build_model", "--input", "2"),
                      ("export", "busy.py:build_model", "--input", "2"),
                      ("fit", "busy.py", "--gpu-memory", "1GiB")):
            with self.subTest(words):
                self.assertEqual(self.interrupted(*words, "-o", "old"), NOTHING)
                self.unchanged()

    def test_one_that_comes_in_a_callback_or_is_caught(self) -> None:
        """Python goes on behind a callback, and code behind an except without a name."""
        for script in ("callback.py", "caught.py"):
            with self.subTest(script):
                done = subprocess.run(
                    [*COMMAND, "record", script, "-o", "old"], check=False, capture_output=True,
                    text=True, timeout=60,
                    env={**os.environ, "PYTHONPATH": str(PACKAGE)})
                self.assertEqual((done.returncode, done.stdout, done.stderr), NOTHING)
                self.unchanged()

    def test_the_program_writes_the_best_plan_so_far(self) -> None:
        output = os.path.abspath("old")
        code, _, errors = self.interrupted("fit", "quick.py", "--gpu-memory", "1GiB", "-o", "old",
                                           STOWAGE_PROGRAM=os.path.abspath("program"), OUTPUT=output)
        self.assertEqual((code, errors), (130, ""))
        self.assertEqual(pathlib.Path("old").read_text(), "plan\n")


class Rehearsed(unittest.TestCase):
    def test_an_interrupt_leaves_everything_as_it_was(self) -> None:
        recorded = stowage.record(nn.Linear(4, 4), torch.zeros(2, 4), loss=mean_square)
        plan = Planner(recorded.document).plan()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        models: list[nn.Module] = []

        def build() -> tuple[nn.Module, None, object]:
            models.append(nn.Linear(4, 4).cuda())

            def step() -> None:
                models[0](torch.randn(2, 4, device="cuda"))
                raise KeyboardInterrupt

            return models[0], None, step

        forward = nn.Linear(4, 4).forward.__func__
        is_there = torch.cuda.is_available()
        with self.assertRaises(KeyboardInterrupt):
            stowage.rehearse(build, write_plan(plan, folder + "/p.json"))
        self.assertEqual(torch.cuda.is_available(), is_there)
        self.assertNotIn("forward", vars(models[0]))
        self.assertIs(models[0].forward.__func__, forward)
        self.assertEqual(torch.ones(2).tolist(), [1, 1])


if __name__ == "__main__":
    unittest.main()
