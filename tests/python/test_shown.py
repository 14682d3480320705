"""What is printed of others, and written of them, is escaped as the program escapes it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import torch
from torch import nn

import stowage
from stowage.__main__ import main
from stowage.shown import printable_line, printable_name, printable_text

PACKAGE = str(pathlib.Path(__file__).parent.parent.parent / "python")
EVIL = "a\x1b[31m\x9b1m\u202eb\ud800\n"  # escape, C1, override, half of a pair, newline
SHOWN = "a\\x1b[31m\\u009b1m\\u202eb\\ud800\\n"


class Escapes(unittest.TestCase):
    def test_what_moves_the_cursor_is_escaped(self) -> None:
        self.assertEqual(printable_line(EVIL), SHOWN)
        self.assertEqual(printable_text("a\n\tb\r\x07"), "a\n\tb\\r\\x07")
        self.assertEqual(printable_line("größe 重み \u2066"), "größe 重み \\u2066")

    def test_bytes_of_a_file_name_are_shown_as_bytes(self) -> None:
        self.assertEqual(printable_line(os.fsdecode(b"a\xff.json")), "a\\xff.json")

    def test_names_end_within_a_step_files_limit(self) -> None:
        self.assertEqual(printable_name("重" * 4000), "重" * 1333)

    def test_an_error_is_escaped_whoever_prints_it(self) -> None:
        error = stowage.StowageError(f"'{EVIL}'", EVIL)
        self.assertEqual(str(error), f"'{SHOWN[:-2]}\n'\n  {SHOWN[:-2]}\n")


class Written(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(contextlib.chdir(self.folder))

    def test_names_of_models_modules_and_parameters(self) -> None:
        model = nn.Sequential()
        model.add_module(EVIL, nn.Linear(8, 8))
        model.register_parameter(EVIL * 300, nn.Parameter(torch.zeros(3)))
        found = stowage.record(model, torch.zeros(4, 8), loss=lambda output: output.mean(), name=EVIL,
                               output="s.json")
        text = pathlib.Path("s.json").read_text()
        document = json.loads(text)
        self.assertEqual(document, found.document)
        self.assertEqual(document["model"], SHOWN)
        self.assertIn(f"{SHOWN}.weight", [row[0] for row in document["parameters"]])
        self.assertIn(f"{SHOWN}.weight", [row[0] for row in document["step"]["storages"]])
        self.assertLessEqual(max(len(row[0].encode()) for row in document["parameters"]), 4000)
        for character in "\x1b\x9b\u202e\ud800":
            self.assertNotIn(f"\\u{ord(character):04x}", text.replace("\\\\", ""))
        program = os.environ.get("STOWAGE_PROGRAM", "")
        if os.path.exists(program):
            done = subprocess.run([program, "summary", "s.json"], capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(f"{SHOWN}\n", done.stdout)

    def test_kernels_of_one_module_with_a_long_name(self) -> None:
        model = nn.Sequential()
        model.add_module("m" * 5000, nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)))
        stowage.record(model, torch.zeros(4, 8), loss=lambda output: output.mean(), output="s.json")
        names = [row[0] for row in json.loads(pathlib.Path("s.json").read_text())["step"]["nodes"]]
        self.assertEqual(len(set(names)), len(names))
        self.assertTrue(any(name == "m" * 3998 + ".2" for name in names), names)

    def test_an_exceptions_message(self) -> None:
        pathlib.Path("boom.py").write_text(textwrap.dedent("""
            import torch, stowage

            net = torch.nn.Linear(16, 4).cuda()

            @stowage.step
            def step(x):
                raise ValueError("boom \\x1b[31m\\u202e\\ud800")

            step(torch.zeros(8, 16).cuda())
            """))
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(main(["record", "boom.py", "-o", "s.json"]), 2)
        self.assertEqual(errors.getvalue(),
                         "error: boom.py:8: ValueError: boom \\x1b[31m\\u202e\\ud800\n"
                         "  raised while the step ran on tensors without values; "
                         "STOWAGE_TRACEBACK=1 shows where from\n")

    def test_words_of_the_command_line(self) -> None:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit):
            main(["record", "x.py", "-o", "s.json", "--\x1b[31m"])
        self.assertEqual(errors.getvalue().splitlines()[-1],
                         "python -m stowage: error: unrecognized arguments: --\\x1b[31m")
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(main(["record", "\x1b[31m\ud800.py", "-o", "s.json"]), 2)
        self.assertEqual(errors.getvalue(), "error: there is no file '\\x1b[31m\\ud800.py'\n")

    def test_a_path_that_is_not_utf8(self) -> None:
        script = os.fsdecode(b"net\xff.py")
        pathlib.Path(script).write_text("import torch\ndef build():\n    return torch.nn.Linear(6, 2)\n")
        done = subprocess.run(
            [sys.executable, "-m", "stowage", "record", f"{script}:build", "--input", "6", "-o",
             os.fsdecode(b"s\xff.json")], capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": PACKAGE, "PYTHONIOENCODING": "ascii"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("s\\xff.json: build at batch 2", done.stdout)
        self.assertEqual(json.loads(pathlib.Path(os.fsdecode(b"s\xff.json")).read_text())["source"],
                         "net\\xff.py:build")


if __name__ == "__main__":
    unittest.main()
