"""Capped re-runs: the cap itself, what is run, what is counted. No GPU: dry runs and stand-ins.

    python -m unittest discover -s bench/ground_truth
"""

import contextlib
import importlib.util
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cap
import capped
import journal
import measure
import pool
import stand_in
from matrix import Job
from stand_in import MIB, record, results

needs_torch = unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")


class Fraction(unittest.TestCase):
    def test_the_share_of_the_card_is_never_a_byte_short(self):
        total = 143_155 * MIB
        short = 0
        for segments in range(1, 4000, 7):
            limit = 2 * MIB * segments
            short += int(limit / total * total) < limit
            self.assertEqual(int(cap.fraction_for(limit, total) * total), limit)
        for total in (25_446_907_904, 8_361_672_704):  # not powers of two: where a quotient falls short
            for limit in range(2 * MIB, total, 37 * MIB):
                short += int(limit / total * total) < limit
                self.assertEqual(int(cap.fraction_for(limit, total) * total), limit)
        self.assertGreater(short, 0, "the plain quotient is never short: then this test shows nothing")

    def test_above_the_card_is_the_whole_card(self):
        self.assertEqual(cap.fraction_for(101, 100), 1.0)
        self.assertEqual(cap.fraction_for(0, 100), 0.0)


class Apply(unittest.TestCase):
    def limit(self, job, spec=None, context=None):
        recorder, meter = mock.Mock(), mock.Mock()
        meter.cap.return_value = 0.5
        cap.apply(job, spec or {}, meter, context or {}, recorder)
        if not meter.cap.called:
            recorder.save.assert_not_called()
            return None
        recorder.save.assert_called_with(cap=mock.ANY)
        self.assertEqual(recorder.save.call_args.kwargs["cap"]["fraction"], 0.5)
        return meter.cap.call_args.args[0]

    def test_the_allocators_bytes_are_taken_as_they_stand(self):
        self.assertIsNone(self.limit(Job("mlp", 1)))
        self.assertEqual(self.limit(Job("mlp", 1, cap_allocator_bytes=70)), 70)
        self.assertEqual(self.limit(Job("mlp", 1, cap_bytes=70), {"overhead_bytes": 30}), 40)

    def test_both_caps_at_once_are_refused(self):
        with self.assertRaisesRegex(ValueError, "exclude each other"):
            Job.from_key("model=mlp,batch=1,cap_bytes=5,cap_allocator_bytes=5")


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.program = stand_in.Program(self.folder)
        self.output = self.path("capped.json")

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(content, file)
        return path

    def run_main(self, content, *arguments):
        """(exit code, stdout, stderr) of capped.main."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = capped.main([self.path("measured.json", content), "--stowage", self.program.path,
                                "-o", self.output, *arguments])
        return code, out.getvalue(), err.getvalue()

    def load(self):
        with open(self.output, encoding="utf-8") as file:
            return json.load(file)


MEASURED = results([record("model=mlp,batch=3", "ok", 3, 6, 310, 302),
                    record("model=mnist-cnn,batch=5", "ok", 5, 12, 310, 302),
                    record("model=vgg16,batch=2", "ok", 1, 1, 1, 1),
                    record("model=resnet18,batch=2,outputs=drop", "ok", 1, 1, 1, 1),
                    record("model=resnet18,batch=900", "oom")])


class Jobs(InFolder):
    def caps(self, *arguments):
        code, out, err = self.run_main(MEASURED, "--list", *arguments)
        self.assertEqual((code, err), (0, ""))
        return [Job.from_key(key).cap_allocator_bytes for key in out.split()]

    def test_what_ran_is_capped_at_the_predicted_reserved_bytes(self):
        self.assertEqual(self.caps(), [6 * MIB, 10 * MIB])

    def test_a_margin_scales_the_cap_and_rounds_up(self):
        self.assertEqual(self.caps("--margin", "1.25"), [7_864_320, 13_107_200])
        self.assertEqual(self.caps("--margin", "1.0000001"), [6 * MIB + 1, 10 * MIB + 2])

    def test_mistakes_are_exit_code_2(self):
        cases = [(["--margin", "0"], "--margin is more than 0"), (["--margin", "nan"], "--margin is"),
                 (["-o", self.path("measured.json")], "would overwrite"),
                 (["--steps", "0"], "at least 1"), (["--stowage", self.folder], "cannot run")]
        for arguments, said in cases:
            code, _, err = self.run_main(MEASURED, *arguments)
            self.assertEqual(code, 2)
            self.assertTrue(err.startswith("capped: ") and said in err, err)
        dry = {**MEASURED, "measurement": False}
        self.assertIn("is a dry run", self.run_main(dry)[2])


class Counts(InFolder):
    """Runs with the processes replaced: what they would have ended as is given here."""

    def run_with(self, ends: dict, *arguments, content=MEASURED):
        """`ends`: by model, (status, allocator retries). The specs that processes were given."""
        specs = []

        def running(starter, spec, timeout):
            specs.append(spec)
            status, retries = ends[spec["job"]["model"]]
            record = {"key": Job(**spec["job"]).key(), "job": spec["job"], "status": status,
                      "estimate": spec["estimate"], "wall_seconds": 1.0, "failed_in": "warm",
                      "phases": {"warm": {"alloc_retries": retries}}}
            return mock.Mock(record=lambda: record)

        machine = {"card": {"name": "NVIDIA H200", "torch_total_bytes": 1}, "software": {"torch": "2"}}
        with mock.patch.object(pool, "Running", running), \
                mock.patch.object(measure, "describe", return_value=machine):
            code, out, err = self.run_main(content, *arguments)
        return code, out, specs

    def test_failures_are_counted_and_the_rest_is_named(self):
        code, out, specs = self.run_with({"mlp": ("ok", 2), "mnist-cnn": ("oom", 0)})
        self.assertEqual(code, 0)
        self.assertEqual([(spec["warmup"], spec["steps"]) for spec in specs], [(2, 3)] * 2)
        told = self.load()["capped"]
        self.assertEqual(told["failures"], {
            "all": {"rows": 2, "failures": 1, "after_emptying": 1},
            "convolutional": {"rows": 1, "failures": 1, "after_emptying": 0},
            "mlp": {"rows": 1, "failures": 0, "after_emptying": 1},
            "fp32": {"rows": 2, "failures": 1, "after_emptying": 1}})
        self.assertEqual((told["of"], told["margin"], told["program"]),
                         ("measured.json", 1.0, "stowage 0.1.0"))
        self.assertEqual(told["refused"][0]["said"],
                         "exit code 2: error: there is no model 'vgg16'\n  a second line")
        self.assertEqual([entry["said"] for entry in told["untold"]], ["outputs=drop"])
        self.assertIn("\nrows  failures      %  ran after emptying the cache  of\n"
                      "   2         1   50.0                             1  all\n", out)
        self.assertIn("        12.0     10.0      warm  model=mnist-cnn,batch=5,", out)
        self.assertEqual(self.load()["jobs"][0]["estimate"],
                         {"reserved_bytes": 6 * MIB, "device_bytes": 306 * MIB, "margin": 1.0,
                          "measured_reserved_bytes": 6 * MIB})

    def test_a_second_run_does_only_what_is_missing_and_another_margin_all(self):
        ends = {"mlp": ("ok", 0), "mnist-cnn": ("failed", 0)}
        self.assertEqual(len(self.run_with(ends, content=results(MEASURED["jobs"][:1]))[2]), 1)
        code, out, specs = self.run_with(ends)
        self.assertEqual((code, [spec["job"]["model"] for spec in specs]), (1, ["mnist-cnn"]))
        self.assertIn("Neither ran nor ran out: 1\nfailed  model=mnist-cnn,", out)
        self.assertEqual(self.load()["capped"]["failures"]["all"]["rows"], 1)
        ends["mnist-cnn"] = ("oom", 0)
        self.assertEqual(len(self.run_with(ends)[2]), 0)
        self.assertEqual(len(self.run_with(ends, "--retry-failed")[2]), 1)
        self.assertEqual(len(self.run_with(ends, "--margin", "1.1")[2]), 2)
        # The header, the head and one line a run: mlp, mnist-cnn twice, both at the other margin.
        self.assertEqual(len(journal._lines(self.output + ".journal")), 7)

    def test_what_is_left_is_said(self):
        out = self.run_with({"mlp": ("ok", 0), "mnist-cnn": ("ok", 0)}, "--stop-after", "1e-9")[1]
        self.assertIn("Not yet run: 2\n", out)
        self.assertIn("   0         0  -", out)


@needs_torch
class DryRun(InFolder):
    def test_the_whole_way_on_the_cpu_records_the_cap_and_no_figure(self):
        content = results(MEASURED["jobs"][:1], measurement=False, card=None, warmup=1, steps=1)
        code, out, err = self.run_main(content, "--device", "cpu", "--gpu", "h200")
        self.assertEqual(code, 0, err)
        result = self.load()
        job = result["jobs"][0]
        self.assertEqual((result["measurement"], job["status"]), (False, "ok"))
        self.assertEqual(job["cap"], {"allocator_limit_bytes": 6 * MIB, "fraction": None})
        self.assertEqual(job["estimate"]["reserved_bytes"], 6 * MIB)
        self.assertIsNone(result["capped"]["failures"])
        self.assertTrue(out.endswith("not a measurement: a dry run on the CPU, figures are null\n"), out)


if __name__ == "__main__":
    unittest.main()
