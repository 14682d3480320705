"""Several jobs at once: the pool with made-up jobs, the process that forks, and dry runs. No GPU.

    python -m unittest discover -s bench/ground_truth
"""

import contextlib
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import journal
import measure
import nvml
import pool
from forked import Forked, NoServer
from matrix import Job
from pool import Admission, Pool, is_doubtful

needs_torch = unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
GIB = 1 << 30


def record(job, status="ok", **phase):
    return {"key": job.key(), "status": status, "phases": {"steady": phase}}


class MadeUp:
    """In place of process.Running: a job that ends at the second look."""

    started, ended, answers = [], [], {}  # (job, at once) in order; by job, what it answers in turn
    most = 0

    def __init__(self, starter, spec, timeout):
        self.job, self.looks = spec["job"], 0
        self.started.append((self.job, spec["at_once"]))
        MadeUp.most = max(self.most, len(self.started) - len(self.ended))

    def record(self):
        self.looks += 1
        if self.looks < 2:
            return None
        self.ended.append(self.job)
        answers = self.answers.get(self.job)
        return answers.pop(0) if answers else record(self.job)

    def end(self):
        self.ended.append(self.job)


class OfPool(unittest.TestCase):
    def setUp(self):
        MadeUp.started, MadeUp.ended, MadeUp.answers, MadeUp.most = [], [], {}, 0
        for name, value in (("Running", MadeUp), ("_PAUSE", 0)):
            patch = mock.patch.object(pool, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.jobs = [Job("mlp", batch) for batch in range(1, 6)]
        self.finished, self.crowded = [], []

    def run_pool(self, limit, alone=(), **options):
        asked = {"admission": Admission(None, lambda job: 0), "stop_at": None, **options}
        Pool(None, limit, spec_of=lambda job, at_once: {"job": job, "at_once": at_once}, timeout=9,
             finished=lambda *both: self.finished.append(both), crowded=self.crowded.append,
             doubtful=lambda job, record: is_doubtful(record, job.is_capped()),
             **asked).run(self.jobs, list(alone))

    def test_no_more_than_the_limit_run_and_all_are_finished_once(self):
        for limit in (1, 3):
            self.setUp()
            self.run_pool(limit)
            self.assertEqual(MadeUp.most, limit)
            self.assertEqual([job for job, _ in self.finished], self.jobs)
            self.assertEqual(MadeUp.started, [(job, limit) for job in self.jobs])

    def test_out_of_memory_beside_others_is_run_again_alone_and_only_that_counts(self):
        first, second, third, fourth, _ = self.jobs
        MadeUp.answers = {first: [record(first, "oom"), record(first, "ok")],
                          second: [record(second, "ok", alloc_retries=1), record(second, "oom")],
                          third: [record(third, "failed")],
                          fourth: [record(fourth, "skipped")]}
        self.run_pool(3)
        self.assertEqual(self.crowded, [first, second, third])
        self.assertEqual(MadeUp.started[5:], [(first, 1), (second, 1), (third, 1)])
        statuses = [(job, result["status"]) for job, result in self.finished]
        self.assertEqual(sorted(statuses, key=lambda entry: entry[0].batch),
                         list(zip(self.jobs, ("ok", "oom", "ok", "skipped", "ok"))))

    def test_alone_the_first_answer_counts(self):
        MadeUp.answers = {self.jobs[0]: [record(self.jobs[0], "oom")]}
        self.run_pool(1)
        self.assertEqual((len(self.finished), self.crowded), (5, []))

    def test_what_is_put_off_runs_alone_after_the_rest(self):
        put_off = Job("mlp", 9)
        self.run_pool(2, alone=[put_off])
        self.assertEqual(MadeUp.started[-1], (put_off, 1))

    def test_under_a_cap_out_of_memory_counts_at_once(self):
        self.jobs = [Job("mlp", 1, cap_allocator_bytes=5), Job("mlp", 2, cap_bytes=5)]
        MadeUp.answers = {job: [record(job, "oom")] for job in self.jobs}
        self.run_pool(2)
        self.assertEqual((len(self.finished), self.crowded), (2, []))

    def test_after_the_time_nothing_starts_and_what_runs_ends(self):
        self.run_pool(2, stop_at=time.monotonic() - 1)
        self.assertEqual(MadeUp.started, [])
        with mock.patch.object(Pool, "_late", side_effect=[False] * 6 + [True] * 99):
            self.run_pool(2)
        self.assertEqual(len(self.finished), len(MadeUp.started))
        self.assertIn(len(self.finished), range(1, 5))

    def test_an_interrupt_ends_what_runs(self):
        with self.assertRaises(KeyboardInterrupt):
            self.run_pool(3, check=mock.Mock(side_effect=[None, KeyboardInterrupt]))
        self.assertEqual(MadeUp.ended, self.jobs[:3])
        self.assertEqual(self.finished, [])


class OfAdmission(unittest.TestCase):
    def allows(self, size, running=(), used=0, sizes=True):
        reader = mock.Mock()
        reader.memory.return_value = (80 * GIB, used)
        jobs = [Job("mlp", batch) for batch in range(1, 9)]
        known = {job.key(): amount for job, amount in zip(jobs, [size, *running])} if sizes else {}
        admission = Admission(79 * GIB, lambda job: known.get(job.key(), 0), reader, 0.25)
        return admission.choose(jobs[:1], jobs[1:len(running) + 1]) is jobs[0]

    def test_a_job_alone_always_starts(self):
        self.assertTrue(self.allows(500 * GIB, used=79 * GIB))

    def test_known_sizes_have_to_fit_together(self):
        self.assertTrue(self.allows(30 * GIB, [30 * GIB, 19 * GIB]))
        self.assertFalse(self.allows(30 * GIB, [30 * GIB, 20 * GIB]))
        self.assertTrue(self.allows(30 * GIB, [30 * GIB, 20 * GIB], sizes=False))

    def test_a_share_is_kept_free(self):
        self.assertTrue(self.allows(0, [0], used=60 * GIB))
        self.assertFalse(self.allows(0, [0], used=61 * GIB))

    def test_a_cap_is_a_size(self):
        sizes = {Job("mlp", 1).key(): 7}
        for job, expected in ((Job("mlp", 1, cap_bytes=5), 5), (Job("mlp", 1), 7), (Job("mlp", 2), 0),
                              (Job("mlp", 1, cap_allocator_bytes=5), 5 + GIB)):
            self.assertEqual(measure.expected_bytes(job, sizes), expected)

    def test_a_smaller_job_goes_before_one_that_has_no_room_beside_the_others(self):
        needs = dict(zip("abcd", (60, 50, 40, 30)))
        admission = Admission(100, needs.get)
        self.assertEqual(admission.choose(["b", "c", "d"], ["a"]), "c")
        self.assertIsNone(admission.choose(["b"], ["a"]))
        self.assertEqual(admission.choose(["b"], []), "b")

    def test_without_an_answer_of_the_driver_the_sizes_decide(self):
        reader = mock.Mock()
        reader.memory.side_effect = nvml.Unavailable
        admission = Admission(80 * GIB, lambda job: 0, reader, 0.25)
        self.assertEqual(admission.choose([Job("mlp", 1)], [Job("mlp", 2)]), Job("mlp", 1))


def started():
    return Forked("one_job:run", measure._PRELOADED)


class PoolOfForks(unittest.TestCase):
    """The pool with real processes, forked from one that has loaded nothing."""

    @classmethod
    def setUpClass(cls):
        cls.starter = Forked("stand_in:run", ())
        cls.addClassCleanup(lambda: cls.starter.close())

    def work(self, does, needs=(0, 0, 0), timeout=60.0, stop_at=None):
        """`does`: by job, what its process does. The records in the order that they ended."""
        records, sizes = [], dict(zip(does, needs))
        pool = Pool(self.starter, 2, Admission(100, lambda job: sizes.get(job, 0)),
                    lambda job, at_once: {"key": job, "does": does[job], "at_once": at_once}, timeout,
                    stop_at, lambda job, record: records.append(record))
        pool.run(list(does))
        return records

    def test_each_runs_in_a_process_of_its_own(self):
        records = self.work(dict.fromkeys("abcde", "end"))
        self.assertEqual(len({record["pid"] for record in records} - {os.getpid()}), 5)
        self.assertEqual({(record["status"], record["process"]) for record in records},
                         {("ok", "forked")})

    def test_a_process_that_dies_is_a_failure(self):
        record = self.work({"a": "die"})[0]
        self.assertEqual((record["key"], record["status"], record["error"]["message"]),
                         ("a", "failed", "exit code 7"))
        self.assertIn("about to go", record["error"]["said"])

    def test_a_process_that_hangs_is_ended(self):
        record = self.work({"a": "hang"}, timeout=0.5)[0]
        self.assertEqual((record["status"], record["phases"]), ("timeout", {"loaded": {}}))

    def test_none_starts_too_late(self):
        self.assertEqual(self.work({"a": "end"}, stop_at=time.monotonic() - 1), [])

    def test_what_has_no_room_waits(self):
        records = self.work(dict.fromkeys("abc", "end"), needs=(60, 60, 60))
        times = sorted((record["began"], record["ended"]) for record in records)
        self.assertTrue(all(one[1] <= other[0] for one, other in zip(times, times[1:])), times)


@needs_torch
class Forking(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.starter = started()
        cls.addClassCleanup(lambda: cls.starter.close())

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_job(self, **spec):
        from dataclasses import asdict

        import process
        told = {"key": "k", "job": asdict(Job("mlp", 2)), "device": "cpu", "uuid": None, "warmup": 1, "steps": 1,
                "at_once": 2, "threads": 1, **spec}
        return process.run_job(told, spec.get("timeout", 60), self.starter)

    def test_a_job_is_as_in_a_fresh_process_but_its_time_is_not_its_own(self):
        result = self.run_job()
        self.assertEqual((result["status"], result["process"], result["at_once"]), ("ok", "forked", 2))
        self.assertFalse(result["step_time"]["alone"])
        self.assertTrue(self.run_job(at_once=1)["step_time"]["alone"])

    def test_a_job_that_breaks_does_not_end_the_server(self):
        broken = self.run_job(job={**Job("mlp", 2).__dict__, "model": "torchvision/no_such_model"})
        self.assertIn(broken["status"], ("failed", "skipped"))
        del broken
        result = self.run_job(warmup=None)
        self.assertEqual(result["status"], "failed")
        self.assertEqual(self.run_job()["status"], "ok")

    def test_a_timeout_kills_the_job(self):
        result = self.run_job(steps=10**9, timeout=1.0)
        self.assertEqual((result["status"], "warm" in result["phases"]), ("timeout", True))

    def test_the_children_die_with_the_one_who_asked(self):
        starter = started()
        job = self.long_job(starter)
        starter.close()
        self.assertTrue(self.gone(job))

    def long_job(self, starter):
        from dataclasses import asdict
        spec = os.path.join(self.folder, "spec")
        with open(spec, "w", encoding="utf-8") as file:
            json.dump({"key": "k", "job": asdict(Job("mlp", 2)), "device": "cpu", "warmup": 1, "steps": 10**9}, file)
        return starter.start(spec, *(os.path.join(self.folder, name) for name in ("result", "log")))

    @staticmethod
    def gone(pid):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                os.kill(pid, 0)
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    if file.read().rpartition(")")[2].split()[0] == "Z":  # dead, and not ours to wait for
                        return True
            except OSError:
                return True
            time.sleep(0.05)
        return False


@needs_torch
class QuickWeights(unittest.TestCase):
    def test_a_large_tensor_repeats_a_block_of_the_distribution_asked_for(self):
        import torch
        from quick_weights import _BLOCK, RepeatedBlocks
        tensor = torch.empty(5 * _BLOCK + 3)
        with RepeatedBlocks():
            self.assertIs(tensor.normal_(2.0, 0.5), tensor)
        self.assertAlmostEqual(tensor.mean().item(), 2.0, delta=0.02)
        self.assertAlmostEqual(tensor.std().item(), 0.5, delta=0.02)
        self.assertTrue(tensor[_BLOCK:2 * _BLOCK].equal(tensor[:_BLOCK]))
        self.assertTrue(tensor[5 * _BLOCK:].equal(tensor[:3]))

    def test_small_ones_and_views_with_gaps_are_drawn_whole(self):
        import torch
        from quick_weights import _BLOCK, RepeatedBlocks
        for tensor in (torch.empty(2 * _BLOCK), torch.empty(4, 3 * _BLOCK)[:, ::2]):
            with RepeatedBlocks():
                tensor.uniform_(1, 2)
            self.assertGreater(tensor.unique().numel(), 1.5 * _BLOCK)

    def test_a_network_keeps_its_weights_sizes_and_grows_no_others(self):
        import torch
        import models
        from quick_weights import RepeatedBlocks
        sizes = lambda network: [(name, tensor.shape, tensor.requires_grad, type(tensor))
                                 for name, tensor in network.state_dict(keep_vars=True).items()]
        job = Job("mlp", 1)
        with RepeatedBlocks():
            quick = models.build(job)
        self.assertEqual(sizes(quick), sizes(models.build(job)))
        self.assertTrue(all(torch.isfinite(weight).all() for weight in quick.parameters()))


class NoServerAtAll(unittest.TestCase):
    def test_says_what_it_said(self):
        with self.assertRaisesRegex(NoServer, "no such luck"):
            Forked("", (), (sys.executable, "-c", "raise SystemExit('no such luck')"))

    def test_is_refused_where_cuda_was_touched(self):
        said = '{"ready": false, "cuda_touched": true}'
        with self.assertRaisesRegex(NoServer, "CUDA was initialised"):
            Forked("", (), (sys.executable, "-c", f"print('{said}')"))


@needs_torch
class DryRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = os.path.join(folder.name, "out")

    def load(self):
        with open(self.out, encoding="utf-8") as file:
            return json.load(file)

    def run_main(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            code = measure.main([*arguments, "--device", "cpu", "-o", self.out])
        return code, said.getvalue()

    def test_several_at_once_and_the_head_says_so(self):
        code, said = self.run_main("--models", "mlp,mnist-cnn", "--batches", "1,2", "--parallel", "2")
        result = self.load()
        self.assertEqual((code, result["at_once"], result["complete"]), (0, 2, True), said)
        self.assertEqual([job["status"] for job in result["jobs"]], ["ok"] * 4)
        self.assertEqual({job["process"] for job in result["jobs"]}, {"forked"})

    def test_the_journal_alone_gives_the_file(self):
        self.run_main("--models", "mlp", "--batches", "1")
        whole = self.load()
        os.unlink(self.out)
        with mock.patch.object(measure, "describe", side_effect=AssertionError):
            self.assertEqual(self.run_main("--from-journal")[0], 0)
            self.assertEqual(self.load(), whole)
            self.run_main("--from-journal", "--models", "mlp,mnist-cnn", "--batches", "1")
        self.assertEqual((len(self.load()["jobs"]), len(self.load()["missing"])), (1, 1))

    def test_no_time_at_all_runs_nothing_and_writes_the_file(self):
        with mock.patch.object(measure, "_starter", side_effect=AssertionError):
            code, _ = self.run_main("--models", "mlp", "--batches", "1,2", "--stop-after", "0",
                                    "--parallel", "2")
        self.assertEqual((code, len(self.load()["missing"])), (0, 2))

    def test_a_crowded_job_that_was_not_come_to_is_remembered(self):
        self.run_main("--models", "mlp", "--batches", "1", "--stop-after", "0")
        log = self.out + ".journal"
        key = measure.parser().parse_args(["--models", "mlp", "--batches", "1"])
        key = measure.jobs_asked_for(key)[0][0].key()
        with open(log, "a", encoding="utf-8") as file:
            file.write(json.dumps({"crowded": key}) + "\n")
        self.run_main("--models", "mlp", "--batches", "1", "--parallel", "2", "--fresh")
        result = self.load()["jobs"][0]
        self.assertEqual((result["at_once"], result["process"]), (1, "fresh"))

    def test_a_signal_ends_all_and_writes_the_file(self):
        command = [sys.executable, measure.__file__, "--models", "mlp", "--batches", "1,2,3,4",
                   "--steps", "100000", "--device", "cpu", "--parallel", "2", "-o", self.out]
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while child.poll() is None and not os.path.exists(self.out + ".journal"):
            time.sleep(0.1)
        time.sleep(1)
        for _ in range(2):  # as `timeout` does: once to the process, once to its group
            child.send_signal(signal.SIGTERM)
        _, said = child.communicate(timeout=90)
        self.assertEqual((child.returncode, len(self.load()["missing"])), (130, 4), said)


if __name__ == "__main__":
    unittest.main()
