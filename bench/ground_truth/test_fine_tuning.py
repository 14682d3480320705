"""The cases, what is run of them and the comparison of fine_tuning.py, without torch; none of the figures is from a GPU.

    python -m unittest discover -s bench/ground_truth
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import fine_tuning
import pool
import stowage
import tuning_compare
import tuning_models
import tuning_questions as questions
from score import Pair
from stowage import Prediction
from tuning_cases import CASES, GROUPS, Case, chosen

VERSIONS = questions.Versions("2.11", "5.17", "13.0")
SERVED = Case("serve", "llama-3-8b", 4, 4096, layers=8, cache="dynamic")
TUNED = Case("lora", "llama-3.2-1b", 2, 64, lora="r=16,alpha=32,targets=q_proj+v_proj",
             checkpoint=True, record=True)


class Cases(unittest.TestCase):
    def test_each_has_a_key_and_a_file_of_its_own(self):
        for names in ([case.key() for case in CASES], [case.file_name() for case in CASES]):
            self.assertEqual(len(set(names)), len(CASES))
        self.assertEqual({case.group for case in CASES}, set(GROUPS))

    def test_a_key_has_what_is_set(self):
        self.assertEqual(TUNED.key(), "group=lora;model=llama-3.2-1b;batch=2;seq=64;precision=bf16;"
                                      "checkpoint=on;lora=r=16,alpha=32,targets=q_proj+v_proj")
        self.assertEqual(chosen(["t5-small", "whisper"]),
                         [case for case in CASES if case.model in ("t5-small", "whisper-small")])

    def test_adapters_in_pefts_words(self):
        self.assertEqual(
            tuning_models.lora_options("r=8,dropout=0.05,targets=q+v,rank_pattern=q:32+v:4,dtype=bf16"),
            {"r": 8, "lora_alpha": 8, "lora_dropout": 0.05, "use_dora": False, "autocast": False,
             "target_modules": ["q", "v"], "rank_pattern": {"q": 32, "v": 4}})
        options = tuning_models.lora_options("use_dora=true,targets=all-linear")
        self.assertEqual((options["target_modules"], options["use_dora"], options["autocast"]),
                         ("all-linear", True, True))

    def test_configurations(self):
        self.assertEqual(tuning_models.configuration(SERVED)["num_hidden_layers"], 8)
        small = tuning_models.configuration(SERVED, small=True)
        self.assertEqual((small["num_hidden_layers"], small["vocab_size"], small["bos_token_id"]),
                         (2, 512, 1))
        for case in CASES:
            if case.from_hub():
                self.assertEqual(len(tuning_models.configuration(case)["architectures"]), 1)


class Measuring(unittest.TestCase):
    """The command with a pool that starts no process."""

    def measure(self, ends, *arguments):
        """`ends`: by key, the records of its runs. (exit code, results, [case, jobs at once] as they ran)"""
        ran = []

        def running(starter, spec, timeout):
            ran.append((spec["key"], spec["at_once"]))
            record = {"key": spec["key"], "phases": {}, "wall_seconds": 1.0, **ends[spec["key"]].pop(0)}
            return mock.Mock(record=lambda: record)

        output = os.path.join(self.folder, "out.json")
        head = {"card": {"uuid": "u", "torch_total_bytes": 100}, "software": {}}
        with mock.patch.object(pool, "Running", running), \
                mock.patch.object(fine_tuning, "describe", return_value=head), \
                mock.patch.object(fine_tuning, "forked_or_fresh"), \
                contextlib.redirect_stdout(io.StringIO()):
            code = fine_tuning.main(["measure", "-o", output, *arguments])
        with open(output, encoding="utf-8") as file:
            return code, json.load(file), ran

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_what_others_may_have_spoilt_runs_again_alone_and_only_that_is_recorded(self):
        squeezed = {"status": "ok", "phases": {"steady": {"alloc_retries": 1}, "loaded": None}}
        first, second, third = (case.key() for case in chosen(["t5-small"])[:3])
        ends = {first: [{"status": "oom"}, {"status": "ok"}], second: [squeezed, {"status": "oom"}],
                third: [{"status": "ok"}]}
        code, content, ran = self.measure(ends, "--parallel", "2", first, second, third)
        self.assertEqual((code, ran[3:]), (0, [(first, 1), (second, 1)]))
        self.assertEqual({case["key"]: case["status"] for case in content["cases"]},
                         {first: "ok", second: "oom", third: "ok"})
        self.assertEqual((content["missing"], content["card"]), ([], {"torch_total_bytes": 100}))

    def test_a_second_run_does_only_what_is_missing(self):
        first, second = (case.key() for case in chosen(["t5-small"])[:2])
        self.assertEqual(self.measure({first: [{"status": "failed"}]}, first)[0], 1)
        code, _, ran = self.measure({second: [{"status": "ok"}]}, first, second)
        self.assertEqual((code, ran), (1, [(second, 1)]))
        code, _, ran = self.measure({first: [{"status": "ok"}]}, "--retry-failed", first, second)
        self.assertEqual((code, ran), (0, [(first, 1)]))


class Comparison(unittest.TestCase):
    def test_a_case_in_the_words_of_check(self):
        with tempfile.TemporaryDirectory() as folder:
            words = questions.arguments(TUNED, VERSIONS, folder)
            self.assertTrue(os.path.exists(os.path.join(words[0], "config.json")))
            served = questions.arguments(SERVED, VERSIONS, folder)
        self.assertEqual(words[1:], [
            "--pytorch-version", "2.11", "--cuda-version", "13.0", "--precision", "bf16", "--set",
            "transformers=5.17", "--optimizer", "adamw", "--mode", "train", "--checkpoint", "--lora",
            "r=16,alpha=32,targets=q_proj+v_proj", "--batch", "2", "--seq", "64"])
        self.assertEqual(served[-6:], ["--context-length", "4096", "--users", "4", "--cache",
                                       "dynamic"])
        self.assertEqual(questions.short("2.11.0+cu130"), "2.11")

    def test_a_recorded_step_is_asked_about_where_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(questions.recorded_arguments(TUNED, VERSIONS, folder))
            path = os.path.join(folder, TUNED.file_name() + ".json")
            open(path, "w").close()
            self.assertEqual(questions.recorded_arguments(TUNED, VERSIONS, folder)[:3],
                             [path, "--batch", "2"])

    def answers_and_records(self):
        phase = lambda tensors, reserved: {"max_allocated_bytes": tensors,
                                           "max_reserved_bytes": reserved}
        answers = [
            (TUNED, "lora", questions.Answer({"step": Prediction(90, 200, 300, True)}, None, None)),
            (SERVED, "serve", questions.Answer({"prefill": Prediction(50, 60, 70, True),
                                                "decode": Prediction(40, 60, 70, True)}, 16, None)),
            (CASES[0], "lora", questions.Answer({}, None, stowage.Refusal("no such layer")))]
        records = [{"key": TUNED.key(), "status": "ok",
                    "phases": {"first_step": phase(80, 200), "steady": phase(100, 160)}},
                   {"key": SERVED.key(), "status": "ok", "cache_bytes": 16,
                    "phases": {"prefill": phase(50, 60), "decode": phase(50, 60)}},
                   {"key": CASES[1].key(), "status": "oom", "phases": {},
                    "oom": {"message": "CUDA out of memory.\nmore"}}]
        return answers, {record["key"]: record for record in records}

    def test_each_part_is_held_against_its_own_peak(self):
        answers, records = self.answers_and_records()
        rows = tuning_compare.rows(answers, records)
        self.assertEqual([(row.part, row.pairs["allocated"], row.cache) for row in rows],
                         [("step", Pair(100, 90), None), ("prefill", Pair(50, 50), None),
                          ("decode", Pair(50, 40), Pair(16, 16))])
        self.assertEqual(rows[0].pairs["reserved"], Pair(200, 200))
        first = tuning_compare.scores(rows)[0]
        self.assertEqual((first["figure"], first["group"], first["rows"], first["low"]),
                         ("allocated", "all", 3, 2))
        said = tuning_compare.text(rows, answers, records)
        for part in ("-10.00", "1 of 1 equal", "no such layer", "CUDA out of memory."):
            self.assertIn(part, said)
        self.assertNotIn("more", said)

    def test_no_case_is_refused(self):
        """By the program itself, if it is built."""
        try:
            program = stowage.Program(stowage.find_program(None), "h100-80gb")
        except stowage.NoProgram:
            self.skipTest("stowage is not built")
        for case, group, answer in tuning_compare.asked(program, CASES, VERSIONS, None):
            self.assertIsNone(answer.refusal, case.key())
            self.assertLess(max(part.device_bytes for part in answer.parts.values()), 40 << 30)


if __name__ == "__main__":
    unittest.main()
