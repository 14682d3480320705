"""Plans are read, or refused with the place of what is wrong."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import random
import tempfile
import unittest
from collections.abc import Callable
from typing import Any

import stowage
from stowage.plans.dimensions import Size, dimension_of, fitting_batch, shown_shape
from stowage.plans.plan_file import Plan, PlanReader, read_plan

PLAN: dict[str, Any] = {
    "format": "stowage-pytorch-plan", "version": 1, "written_by": "stowage 0.1.0", "model": "net",
    "names": "recorded", "batch": 8, "micro_batches": 2, "precision": "fp32", "optimizer": "sgd",
    "step": "0123", "gpu": {"name": "GeForce RTX 3060", "available_bytes": 123}, "pytorch": "2.15",
    "passes": {"saved": 3, "first": ["0#0", "1#0"]},
    "offload": [{"saved": [{"key": "1#0", "dtype": "float32", "shape": ["batch", 64, "2*batch-1"]}],
                 "bytes": [0, 256], "start": "1#0", "release": "2#0", "fetch": None}],
    "checkpoint": [{"module": "layer2.0"}], "optimizer_on_cpu": None,
    "totals": {"peak_allocated_bytes": 1000}}


class Reading(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(self.folder, "p.json")

    def read(self, content: Any) -> Plan:
        pathlib.Path(self.path).write_text(json.dumps(content))
        return read_plan(self.path)

    def refusal(self, content: bytes) -> str:
        pathlib.Path(self.path).write_bytes(content)
        with self.assertRaises(stowage.StowageError) as raised:
            read_plan(self.path)
        return str(raised.exception).replace(self.path, "p.json")

    def test_a_plan_is_read(self) -> None:
        plan = self.read(PLAN)
        entry = plan.offload[0]
        self.assertEqual((plan.model, plan.batch, plan.micro_batch, plan.saved_calls, plan.first_keys),
                         ("net", 8, 4, 3, ("0#0", "1#0")))
        self.assertEqual((plan.checkpoint, plan.peak_allocated, plan.peak_reserved),
                         (("layer2.0",), 1000, None))
        self.assertEqual((entry.start, entry.release, entry.fetch, entry.bytes),
                         ("1#0", "2#0", None, Size(0, 256)))
        self.assertEqual(entry.saved[0].shape, (Size(0, 1), Size(64), Size(-1, 2)))
        self.assertIs(read_plan(plan), plan)

    def test_what_is_no_plan(self) -> None:
        hint = "\n  stowage plan step.json --for pytorch -o FILE writes one"
        for content, message in (
                (b"{", "p.json:1:2: Expecting property name enclosed in double quotes: this is no JSON\n"
                       "  stowage plan MODEL --for pytorch -o FILE writes a plan"),
                (b"[1]", "p.json: is no plan for PyTorch" + hint),
                (b'{"format": "stowage-step"}',
                 "p.json: is no plan for PyTorch: its format is 'stowage-step'" + hint),
                (b'{"format": "\\u001b"}',
                 "p.json: is no plan for PyTorch: its format is '\\x1b'" + hint),
                (b'{"a": 1, "a": 2}', "p.json: an object has 'a' twice"),
                (b'{"a": NaN}', "p.json: NaN is no number of JSON"),
                (b"[" * 200_000, "p.json: its lists are nested too deep: it is no plan"),
                (b"1" * 5000, None), (b"\xff", None),
                (b" " * (16 * 2 ** 20 + 1), "p.json has over 16 MiB: it is no plan for PyTorch")):
            with self.subTest(content=content[:20]):
                found = self.refusal(content)
                if message is not None:
                    self.assertEqual(found, message)

    def test_a_path_that_cannot_be_read(self) -> None:
        for path, message in ((self.folder, f"{self.folder}: Is a directory"),
                              (self.path, f"{self.path}: No such file or directory"),
                              ("a\0b", "'a\\x00b' is no name of a file"),
                              (3, "a plan is the path of a file, not a int")):
            with self.subTest(path=path), self.assertRaises(stowage.StowageError) as raised:
                read_plan(path)  # type: ignore[arg-type]
            self.assertEqual(str(raised.exception), message)

    def test_each_rule_finds_its_mistake(self) -> None:
        def entry(plan: dict[str, Any]) -> dict[str, Any]:
            found: dict[str, Any] = plan["offload"][0]
            return found

        def tensor(plan: dict[str, Any]) -> dict[str, Any]:
            found: dict[str, Any] = entry(plan)["saved"][0]
            return found

        changes: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
            (lambda p: p.update(version=2), "version: 2 is unknown; this stowage reads version 1"),
            (lambda p: p.update(version=True), "version: True is unknown; this stowage reads version 1"),
            (lambda p: p.pop("names"), "names: is missing"),
            (lambda p: p.update(names="modules"),
             "names: 'modules': its saved tensors have no names that a script has\n  record the step "
             "(python -m stowage record), and plan that file"),
            (lambda p: p.update(optimizer_on_cpu={}),
             "optimizer_on_cpu.gradients_in_flight: is missing"),
            (lambda p: p.update(optimizer_on_cpu={"gradients_in_flight": 0}),
             "optimizer_on_cpu.gradients_in_flight: 0 is out of range"),
            (lambda p: p.update(optimizer_on_cpu={"gradients_in_flight": 2, "parameters": "a"}),
             "optimizer_on_cpu.parameters: is no list"),
            (lambda p: p.update(optimizer_on_cpu={"gradients_in_flight": 2, "parameters": []}),
             "optimizer_on_cpu.parameters: is empty"),
            (lambda p: p.update(optimizer_on_cpu={"gradients_in_flight": 2, "parameters": ["a", 1]}),
             "optimizer_on_cpu.parameters[1]: is no text"),
            (lambda p: p.update(optimizer_on_cpu={"gradients_in_flight": 2, "parameters": ["a", "a"]}),
             "optimizer_on_cpu.parameters[1]: 'a' stands twice"),
            (lambda p: p.update(updates="late"), "updates: 'late' is not \"early\""),
            (lambda p: p.update(updates=True), "updates: is no text"),
            (lambda p: p.update(updates="early", micro_batches=2),
             "updates: cannot be early where the gradients of micro-batches add up"),
            (lambda p: p.update(model=3), "model: is no text"),
            (lambda p: p.update(model="\x1b"), "model: is a text with control characters"),
            (lambda p: p.update(model="x" * 5000), "model: is a text of over 4096 characters"),
            (lambda p: p.update(batch=0), "batch: 0 is out of range"),
            (lambda p: p.update(batch=True), "batch: is no whole number"),
            (lambda p: p.update(passes=[]), "passes: is no object"),
            (lambda p: p["passes"].update(saved=-1), "passes.saved: -1 is out of range"),
            (lambda p: p["passes"].update(first=[1]), "passes.first[0]: is no text"),
            (lambda p: p.update(totals=3), "totals: is no object"),
            (lambda p: p.update(offload={}), "offload: is no list"),
            (lambda p: p.update(offload=[1]), "offload[0]: is no object"),
            (lambda p: entry(p).update(saved=[]), "offload[0].saved: is empty"),
            (lambda p: entry(p).update(saved=[3]), "offload[0].saved[0]: is no object"),
            (lambda p: entry(p).update(start="3#0"),
             "offload[0].start: '3#0' is none of its own tensors"),
            (lambda p: entry(p).update(fetch="layer"),
             "offload[0].fetch: 'layer' is no key of a saved tensor\n  a module's path and a number: "
             "layer1.0.conv1#0"),
            (lambda p: entry(p).update(bytes=[1]), "offload[0].bytes: is no pair [constant, slope]"),
            (lambda p: entry(p).update(bytes=[0, -1]), "offload[0].bytes[1]: -1 is out of range"),
            (lambda p: entry(p).update(bytes=[0, 2 ** 70]),
             "offload[0].bytes[1]: 1180591620717411303424 is out of range"),
            (lambda p: tensor(p).update(dtype="complex64"),
             "offload[0].saved[0].dtype: 'complex64' is no type of a step file"),
            (lambda p: tensor(p).update(shape=["batch", "seq"]),
             "offload[0].saved[0].shape[1]: 'seq' is no size\n  a number, or one that follows the batch: "
             "batch, 2*batch, batch+1"),
            (lambda p: tensor(p).update(shape=[1.5]),
             "offload[0].saved[0].shape[0]: is no whole number"),
            (lambda p: tensor(p).update(shape=[1] * 65), "offload[0].saved[0].shape: has over 64 axes"),
            (lambda p: p["offload"].append(copy.deepcopy(entry(p))),
             "offload[1].saved[0].key: '1#0' stands in offload[0] already"),
            (lambda p: p.update(checkpoint=[{}]), "checkpoint[0].module: is missing")]
        for change, message in changes:
            with self.subTest(message=message):
                plan = copy.deepcopy(PLAN)
                change(plan)
                self.assertEqual(self.refusal(json.dumps(plan).encode()), f"p.json: {message}")


class Mutations(unittest.TestCase):
    SEED = 34

    def changed(self, choice: random.Random, value: Any) -> Any:
        """The value with one change somewhere in it."""
        strange = (None, True, -1, 2 ** 80, 1.5, "", "batch", "x#1", "\x1b", [], {}, [[]], float("inf"))
        if choice.random() < 0.25 or not isinstance(value, (dict, list)) or not value:
            return choice.choice(strange)
        key = choice.choice(list(value) if isinstance(value, dict) else range(len(value)))
        copied = copy.copy(value)
        if choice.random() < 0.2:
            del copied[key]
        else:
            copied[key] = self.changed(choice, value[key])
        return copied

    def test_any_content_is_a_plan_or_an_error_with_its_place(self) -> None:
        choice, refused = random.Random(self.SEED), 0
        for _ in range(3000):
            content = self.changed(choice, PLAN)
            for _ in range(choice.randint(0, 2)):
                content = self.changed(choice, content)
            try:
                self.assertIsInstance(PlanReader("p.json", content).plan(), Plan)
            except stowage.StowageError as error:
                self.assertTrue(str(error).startswith("p.json: "), str(error))
                refused += 1
        self.assertGreater(refused, 1000)


class Dimensions(unittest.TestCase):
    def test_texts_are_sizes_and_back(self) -> None:
        for text, size in (("batch", Size(0, 1)), ("2*batch", Size(0, 2)), ("batch+1", Size(1, 1)),
                           ("3*batch-2", Size(-2, 3))):
            self.assertEqual(dimension_of(text), size)
            self.assertEqual(str(size), text)
        for text in ("", "Batch", "batch*2", "0*batch", "batch+", "2batch", "batch + 1", "١*batch"):
            self.assertIsNone(dimension_of(text), text)
        self.assertEqual(shown_shape((Size(0, 1), Size(3))), "[batch, 3]")

    def test_a_shape_says_the_batch(self) -> None:
        shape = (Size(0, 2), Size(5))
        self.assertEqual(fitting_batch(shape, (8, 5), None), 4)
        self.assertEqual(fitting_batch(shape, (8, 5), 4), 4)
        self.assertEqual(fitting_batch((Size(5),), (5,), None), 0)
        self.assertEqual(fitting_batch((Size(5),), (5,), 3), 3)
        for sizes, batch in (((7, 5), None), ((8, 5), 3), ((8, 6), None), ((8,), None), ((0, 5), None)):
            self.assertIsNone(fitting_batch(shape, sizes, batch))


if __name__ == "__main__":
    unittest.main()
