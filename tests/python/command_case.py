"""`python -m stowage` within the tests' process, in a folder of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import subprocess
import tempfile
import textwrap
import unittest
from typing import Any

from stowage import read_plan
from stowage.__main__ import main

PACKAGE = pathlib.Path(__file__).parent.parent.parent / "python"


class CommandCase(unittest.TestCase):
    """A test in an empty folder; `files` are {name: text} that stand in it."""

    files: dict[str, str] = {}

    def setUp(self) -> None:
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(contextlib.chdir(self.folder))
        for name, text in self.files.items():
            pathlib.Path(name).write_text(textwrap.dedent(text))

    def run_command(self, *words: str) -> tuple[Any, str, str]:
        """(exit code, stdout, stderr)"""
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                code = main(list(words))
            except SystemExit as ended:
                code = ended.code
        return code, output.getvalue(), errors.getvalue()

    def record(self, *words: str) -> dict[str, Any]:
        """The file of a call that succeeds."""
        return self.recorded(*words)[0]

    def recorded(self, *words: str) -> tuple[dict[str, Any], str]:
        """(the file of a call that succeeds, what it wrote to stderr); -o s.json stands before the
        source, so that `words` may end with the script's own."""
        code, _, errors = self.run_command("record", "-o", "s.json", *words)
        self.assertEqual(code, 0, errors)
        return json.loads(pathlib.Path("s.json").read_text()), errors

    def planned(self, *words: str) -> Any:
        """The plan for PyTorch of s.json, whose file is p.json and whose text is `content`."""
        program = os.environ.get("STOWAGE_PROGRAM")
        if not program or not os.path.exists(program):
            self.skipTest("STOWAGE_PROGRAM names no program")
        done = subprocess.run(
            [program, "plan", "s.json", "--for", "pytorch", "-o", "p.json", *words],
            capture_output=True, text=True, check=False, env={**os.environ, "STOWAGE_NO_CACHE": "1"})
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.content = json.loads(pathlib.Path("p.json").read_text())
        return read_plan("p.json")

    def mistake(self, *words: str, command: str = "record") -> str:
        """The messages of a call that fails and leaves nothing behind."""
        before = sorted(os.listdir())
        code, output, errors = self.run_command(command, "-o", "s.json", *words)
        self.assertEqual((code, output), (2, ""))
        self.assertEqual([name for name in sorted(os.listdir()) if name != "__pycache__"],
                         [name for name in before if name != "__pycache__"])
        return errors

    def check(self, *words: str) -> dict[str, Any]:
        """What `stowage check s.json --gpu rtx3090` says, as JSON; skips where there is no program."""
        program = os.environ.get("STOWAGE_PROGRAM")
        if not program or not os.path.exists(program):
            self.skipTest("STOWAGE_PROGRAM names no program")
        done = subprocess.run(
            [program, "check", "s.json", "--gpu", "rtx3090", "--format", "json", *words],
            capture_output=True, text=True, check=False, env={**os.environ, "STOWAGE_NO_CACHE": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)
