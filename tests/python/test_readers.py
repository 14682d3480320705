"""What the recorder writes can be read: by its own check of the reader's rules, and by the program."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
from collections.abc import Callable
from typing import Any

import recorded_seeds
from stowage import RecordedStep, StowageError
from stowage.document.check import Unreadable, check_readable

SEEDS = pathlib.Path(__file__).parent.parent / "fuzz" / "step"


def seed(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SEEDS / f"{name}.json").read_text())
    return document


class Readers(unittest.TestCase):
    def test_every_kind_of_recording_is_read(self) -> None:
        program = os.environ.get("STOWAGE_PROGRAM", "")
        with tempfile.TemporaryDirectory() as folder:
            for name, record in recorded_seeds.steps():
                with self.subTest(name=name):
                    path = pathlib.Path(folder) / f"{name}.json"
                    record().save(path)  # which asks check_readable
                    if not os.path.exists(program):
                        continue
                    done = subprocess.run([program, "check", str(path), "--gpu", "rtx3090"],
                                          capture_output=True, text=True, check=False,
                                          env={**os.environ, "STOWAGE_NO_CACHE": "1"})
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_fuzzers_seeds_are_all_of_them(self) -> None:
        self.assertEqual(sorted(path.stem for path in SEEDS.glob("*.json")),
                         sorted(name for name, _ in recorded_seeds.steps()))
        for path in SEEDS.glob("*.json"):
            check_readable(json.loads(path.read_text()))


class Refusals(unittest.TestCase):
    def refusal(self, change: Callable[[dict[str, Any]], None]) -> str:
        document = copy.deepcopy(seed("linear"))
        change(document)
        with self.assertRaises(Unreadable) as raised:
            check_readable(document)
        return str(raised.exception)

    def test_each_rule_finds_its_mistake(self) -> None:
        def node(document: dict[str, Any]) -> list[Any]:
            row: list[Any] = document["step"]["nodes"][0]
            return row

        changes: list[tuple[Callable[[dict[str, Any]], None], str]] = [
            (lambda d: d["step"]["nodes"].clear(), "the step has 0 kernels"),
            (lambda d: node(d)[6].__setitem__(0, 10_000), "'addmm' has a tensor that is not there"),
            (lambda d: node(d)[6].__setitem__(1, -1), "'addmm' has a tensor that is not there"),
            (lambda d: node(d).__setitem__(0, d["step"]["nodes"][1][0]), "two kernels have one name"),
            (lambda d: node(d).__setitem__(0, "a\x1b"), "'nodes' has a text with a control character"),
            (lambda d: node(d).__setitem__(0, "a\ud800"), "'nodes' has a text with a control character"),
            (lambda d: node(d).__setitem__(0, "a" * 5000), "'nodes' has a text of over 4096 bytes"),
            (lambda d: d["step"]["storages"][0].__setitem__(3, 4),
             "'addmm' sees more of 'weight' than it has"),
            (lambda d: d["step"]["storages"][0].__setitem__(3, 2 ** 70),
             f"'storages' has the number {2 ** 70}"),
            (lambda d: d["settings"]["optimizer"].__setitem__("learning_rate", float("nan")),
             "'learning_rate' has the number nan"),
            (lambda d: d["step"]["losses"].clear(), "the step has not one loss for each micro-batch"),
            (lambda d: d["step"]["gradients"].clear(),
             "the step has not one gradient for each parameter"),
            (lambda d: d["step"].__setitem__("output", []), "the step has no output on the device"),
            (lambda d: d.__setitem__("model", ""), "the model has no name"),
            (lambda d: d["step"]["nodes"].pop(0),
             "'loss.mean' reads 'addmm' before anything has written it")]
        for change, message in changes:
            with self.subTest(message=message):
                found = self.refusal(change)
                self.assertEqual(found.replace("Linear.", ""), message)

    def test_such_a_recording_is_not_written(self) -> None:
        document = copy.deepcopy(seed("linear"))
        document["step"]["nodes"].clear()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s.json")
            with self.assertRaises(StowageError) as raised:
                RecordedStep(document).save(path)
            self.assertEqual(
                str(raised.exception),
                f"{path}: `stowage` would refuse this recording: the step has 0 kernels\n"
                "  nothing was written; please report it with the step that was recorded")
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
