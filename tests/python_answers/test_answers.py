"""The program's answers in Python, without torch. Needs STOWAGE_PROGRAM.

    STOWAGE_PROGRAM=build/stowage python3 -m unittest discover -s tests/python_answers
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import stowage  # noqa: E402
from stowage.answers.from_json import read  # noqa: E402
from stowage.answers.question import option_words  # noqa: E402

PROGRAM = os.environ["STOWAGE_PROGRAM"]
LLAMA = str(ROOT / "tests/hf/llama-3-8b/config.json")


# schema_version is the file's, not the answer's; the others are of how a plan was searched.
NO_FIELDS = {".schema_version", ".minimized", ".search", ".budget_bytes", ".host", ".workspace_source",
             ".any_order", ".stopped_by", ".next", ".fits"}


def program(*words: str) -> Any:
    return json.loads(run(PROGRAM, *words, "--format", "json")[1])


def run(*words: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr)"""
    done = subprocess.run(words, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    return done.returncode, done.stdout, done.stderr


def unknown_members(made: Any, value: Any, place: str) -> list[str]:
    """Members of the JSON `value` that the dataclass `made` of it has no field for."""
    if isinstance(made, list):
        return [each for i, (a, b) in enumerate(zip(made, value))
                for each in unknown_members(a, b, f"{place}[{i}]")]
    if not dataclasses.is_dataclass(made):
        return []
    names = {field.metadata.get("json", field.name): field.name for field in dataclasses.fields(made)}
    lacking = [f"{place}.{name}" for name in value if name not in names]
    return lacking + [each for name, field in names.items() if name in value
                      for each in unknown_members(getattr(made, field), value[name], f"{place}.{name}")]


class Answers(unittest.TestCase):
    def test_fields_are_the_members_of_the_json(self) -> None:
        cases: list[tuple[Any, str]] = [
            (stowage.check("resnet50", gpu="t4", batch=64), "check resnet50 --gpu t4 --batch 64"),
            (stowage.check("resnet50", gpu="t4", batch=640), "check resnet50 --gpu t4 --batch 640"),
            (stowage.check(LLAMA, mode="inference", context_length=4096, gpu="t4"),
             f"check {LLAMA} --mode inference --context-length 4096 --gpu t4"),
            (stowage.batch("mnist-cnn", gpu="t4", margin="1GiB"),
             "batch mnist-cnn --gpu t4 --margin 1GiB"),
            (stowage.diff("resnet18", "resnet34", gpu="t4"), "diff resnet18 resnet34 --gpu t4"),
            (stowage.plan("mnist-cnn", gpu="t4", batch=64), "plan mnist-cnn --gpu t4 --batch 64"),
            (stowage.plan("mnist-cnn", gpu="t4", batch=64, for_="pytorch"),
             "plan mnist-cnn --gpu t4 --batch 64 --for pytorch")]
        for made, words in cases:
            with self.subTest(words):
                lacking = set(unknown_members(made, program(*words.split(" ")), ""))
                self.assertEqual(lacking - NO_FIELDS, set())

    def test_values_are_those_of_the_json(self) -> None:
        found = stowage.check("vgg16", gpu="rtx3090", batch=64)
        asked = program("check", "vgg16", "--gpu", "rtx3090", "--batch", "64")
        self.assertTrue(found.fits)
        self.assertEqual(found.device_bytes, asked["device_bytes"])
        self.assertEqual(found.footprint, asked["footprint"])
        self.assertEqual(found.tensors[0].kind, asked["tensors"][0]["class"])
        self.assertEqual(found.headroom_bytes, found.device.available_bytes - found.device_bytes)
        batch = stowage.batch("vgg16", gpu="rtx3090")
        self.assertTrue(batch.recommended <= batch.largest)
        self.assertEqual(batch.recommended, program("batch", "vgg16", "--gpu", "rtx3090")["recommended"])

    def test_serving_has_two_passes(self) -> None:
        found = stowage.check(LLAMA, mode="inference", context_length=8192, users=4, gpu="h100-pcie-80gb")
        self.assertEqual(found.device_bytes, max(found.prefill.device_bytes, found.decode.device_bytes))
        self.assertEqual(found.serving.users, 4)
        self.assertTrue(found.fits and found.prefill.fits)
        self.assertTrue(any("transformers" in warning for warning in found.warnings))

    def test_a_plan_is_written(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "p.yaml"
            found = stowage.plan("mnist-cnn", gpu_memory="600MiB", batch=2048, output=path)
            self.assertTrue(found.fits)
            self.assertEqual(found.best.name, found.chosen)
            self.assertTrue(path.read_text().startswith("#") or "plan" in path.read_text())

    def test_nothing_fits(self) -> None:
        found = stowage.plan("mnist-cnn", gpu_memory="450MiB", batch=16384, for_="pytorch")
        self.assertFalse(found.fits)
        self.assertEqual((found.plans, found.chosen), ([], None))
        with self.assertRaises(stowage.StowageError):
            found.best  # noqa: B018

    def test_a_table_has_a_row_for_each_model_and_card(self) -> None:
        found = stowage.table(["resnet50", "vgg16"], ["t4", "rtx3090"], batch=32)
        self.assertEqual([(row.model, (row.device or {})["name"]) for row in found.rows],
                         [("resnet50", "Tesla T4"), ("resnet50", "GeForce RTX 3090"),
                          ("vgg16", "Tesla T4"), ("vgg16", "GeForce RTX 3090")])
        self.assertIn("resnet50 fits 2 of 2 cards", str(found))
        one = stowage.table("resnet50", "t4", of="batch")
        self.assertEqual([row.recommended for row in one.rows],
                         [stowage.batch("resnet50", gpu="t4").recommended])
        with_mistake = stowage.table(["resnet50", "nosuch"], ["t4", "rtx3090"])
        self.assertEqual([bool(row.mistakes) for row in with_mistake.rows], [False, False, True])

    def test_a_difference_is_that_of_two_checks(self) -> None:
        found = stowage.diff("gpt2", gpu="rtx3090", batch=2, deterministic=True,
                             change={"precision": "amp-bf16", "deterministic": None})
        before = stowage.check("gpt2", gpu="rtx3090", batch=2, deterministic=True)
        after = stowage.check("gpt2", gpu="rtx3090", batch=2, precision="amp-bf16")
        self.assertEqual(found.added_bytes, after.device_bytes - before.device_bytes)
        self.assertEqual(found.after.settings, after.settings)
        self.assertEqual(sum(each.after_bytes for each in found.classes), after.peak.tensor_bytes)
        two = stowage.diff("resnet18", "resnet34", gpu="t4")
        self.assertEqual([side.settings["model"] for side in (two.before, two.after)],
                         ["resnet18", "resnet34"])
        for said, words in (("one of two steps", [object(), object()]), ("is no name, path", [3])):
            with self.subTest(said), self.assertRaisesRegex(stowage.StowageError, said):
                stowage.diff(*words, gpu="t4")

    def test_assert_fits_fails_with_the_table(self) -> None:
        self.assertTrue(stowage.assert_fits("resnet50", gpu="t4", batch=8).fits)
        with self.assertRaises(AssertionError) as failed:
            stowage.assert_fits("resnet50", gpu="t4", batch=999)
        for said in ("The peak", "does not fit", "the largest batch that fits is"):
            self.assertIn(said, str(failed.exception))


class Refusals(unittest.TestCase):
    def refusal(self, function: Any, *words: Any, **options: Any) -> str:
        with self.assertRaises(stowage.StowageError) as refused:
            function(*words, **options)
        return str(refused.exception)

    def test_the_programs_own_message_and_hint(self) -> None:
        self.assertEqual(self.refusal(stowage.check, "resnet51", gpu="t4"),
                         "there is no model 'resnet51'\n  did you mean 'resnet50'?")
        self.assertIn("--optimiser",
                      self.refusal(stowage.check, "resnet50", gpu="t4", optimiser="sgd"))

    def test_what_is_no_question(self) -> None:
        for said, function, words, options in (
                ("several cards make a table", stowage.check, ["resnet50"], {"gpu": "t4,rtx3090"}),
                ("several cards make a table", stowage.batch, ["resnet50"], {"gpu": ["t4", "l4"]}),
                ("several cards make a table", stowage.plan, ["resnet50"], {"gpu": "all"}),
                ("format= is what", stowage.check, ["resnet50"], {"gpu": "t4", "format": "csv"}),
                ("'' is no model", stowage.check, [""], {"gpu": "t4"}),
                ("'-' is no model", stowage.check, ["-"], {"gpu": "t4"}),
                ("int is no model", stowage.check, [3, "x"], {"gpu": "t4"}),
                ("takes no inputs", stowage.check, ["resnet50", 3], {"gpu": "t4"}),
                ("is for a module", stowage.check, ["resnet50"], {"gpu": "t4", "target": 3}),
                ("is no value of an option", stowage.check, ["resnet50"], {"gpu": object()}),
                ("a table's cards", stowage.table, ["resnet50"], {"gpu": "t4"}),
                ("a list of models", stowage.table, [[3], "t4"], {})):
            with self.subTest(said):
                self.assertIn(said, self.refusal(function, *words, **options))

    def test_a_program_that_is_not_there(self) -> None:
        before = os.environ["STOWAGE_PROGRAM"]
        os.environ["STOWAGE_PROGRAM"] = "/nowhere/stowage"
        try:
            self.assertEqual(self.refusal(stowage.check, "resnet50", gpu="t4"),
                             "/nowhere/stowage: No such file or directory\n"
                             "  STOWAGE_PROGRAM=FILE says where the program is")
        finally:
            os.environ["STOWAGE_PROGRAM"] = before


class Words(unittest.TestCase):
    def test_options(self) -> None:
        for name, value, words in (
                ("batch", 8, ["--batch", "8"]), ("checkpoint", True, ["--checkpoint"]),
                ("checkpoint", False, []), ("seq", None, []),
                ("for_", "pytorch", ["--for", "pytorch"]),
                ("lora", {"r": 16, "targets": "all-linear"}, ["--lora", "r=16,targets=all-linear"]),
                ("set", {"transformers": "4.40", "depth": 2},
                 ["--set", "transformers=4.40", "--set", "depth=2"]),
                ("gpu", ["t4", "l4"], ["--gpu", "t4,l4"]),
                ("context_length", 8192, ["--context-length", "8192"]),
                ("momentum", 0.9, ["--momentum", "0.9"]),
                ("output", pathlib.Path("a b"), ["--output", "a b"])):
            with self.subTest(name=name, value=value):
                self.assertEqual(option_words(name, value), words)

    def test_a_file_whose_name_begins_with_a_dash(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            before = os.getcwd()
            os.chdir(folder)
            try:
                pathlib.Path("--format").write_text("model: a\nlayers:\n  - nosuch\n")
                with self.assertRaises(stowage.StowageError) as refused:
                    stowage.check("--format", gpu="t4", mode="inference")
                self.assertNotIn("option", str(refused.exception))
                self.assertIn("the description has no 'inputs:'", str(refused.exception))
            finally:
                os.chdir(before)

    def test_another_programs_json_is_named(self) -> None:
        @dataclasses.dataclass
        class Small:
            a: int
            b: str | None = None

        self.assertEqual(read(Small, {"a": 1, "c": 2}), Small(1))
        for value, said in (({}, "has no 'a'"), ({"a": "x"}, "the answer.a"),
                            ({"a": True}, "the answer.a"), (3, "no object")):
            with self.subTest(value), self.assertRaises(stowage.StowageError) as refused:
                read(Small, value)
            self.assertIn(said, str(refused.exception))


class CommandLine(unittest.TestCase):
    def test_the_programs_commands_are_the_programs(self) -> None:
        for words in ("check vgg16 --gpu rtx3090 --batch 64", "check vgg16 --gpu t4 --batch 999",
                      "models", "--version", "check vgg17 --gpu t4", "nosuch", ""):
            with self.subTest(words):
                own = words.split()
                self.assertEqual(run(sys.executable, "-m", "stowage", *own), run(PROGRAM, *own))

    def test_export_is_the_programs_but_for_pytorchs_models(self) -> None:
        own = ["export", "gpt2", "--to", "trl", "--gpu", "rtx3090", "--batch", "2"]
        code, output, errors = run(sys.executable, "-m", "stowage", *own)
        self.assertEqual((code, output, errors), run(PROGRAM, *own))
        self.assertEqual(code, 0)
        code, _, errors = run(sys.executable, "-m", "stowage", "export", "x.py:model")
        self.assertEqual(code, 2)
        self.assertIn("-o/--output", errors)  # argparse's: the Python part's own


if __name__ == "__main__":
    unittest.main()
