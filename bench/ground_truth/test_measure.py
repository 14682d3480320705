"""Tests that need no GPU. Those that need torch are skipped where it is absent.

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
from dataclasses import asdict
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import catalogue
import journal
import matrix
import measure
import one_job
import process
from matrix import Job

HAVE_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = unittest.skipUnless(HAVE_TORCH, "torch is not installed")


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def run_main(self, *arguments):
        """(exit code, stderr) of measure.main."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            code = measure.main(list(arguments))
        return code, said.getvalue()


class Matrix(unittest.TestCase):
    def test_expands_every_combination_with_the_model_slowest(self):
        jobs = matrix.expand(["mlp", "resnet18"], [1, 2], ["sgd", "adam"], ["fp32", "bf16"])
        self.assertEqual(len(jobs), 16)
        self.assertEqual(len({job.key() for job in jobs}), 16)
        self.assertEqual([job.model for job in jobs], ["mlp"] * 8 + ["resnet18"] * 8)

    def test_fills_in_each_models_size_and_batch(self):
        mlp, inception, gpt2 = matrix.expand(["mlp", "inception_v3", "gpt2"], [], ["adam"], ["fp32"],
                                             seq=None)
        self.assertEqual((mlp.batch, mlp.image_size, mlp.seq), (128, None, None))
        self.assertEqual((inception.image_size, inception.seq), (299, None))
        self.assertEqual((gpt2.batch, gpt2.image_size, gpt2.seq), (4, None, 1024))

    def test_a_key_reads_back_as_its_job(self):
        for job in matrix.quick() + matrix.full():
            self.assertEqual(Job.from_key(job.key()), job)
        self.assertEqual(Job.from_key("model=mlp,batch=4"), matrix.complete(Job("mlp", 4)))
        self.assertIsNone(Job.from_key("model=mlp,batch=4").cap_bytes)

    def test_bad_keys_and_names_are_refused(self):
        for key in ("", "mlp", "model=mlp", "model=mlp,batch=x", "model=mlp,batch=1,colour=red",
                    "model=mlp,batch=0", "model=mlp,batch=1,precision=fp3", "model=mlp,batch=1,tf32=1",
                    "model=mlp,batch=1,optimizer=adam:quick"):
            with self.assertRaises(ValueError, msg=key):
                Job.from_key(key)
        with self.assertRaises(KeyError):
            Job.from_key("model=resnet51,batch=1")

    def test_presets_have_no_doubles_and_cover_every_model(self):
        self.assertEqual(len(matrix.quick()), 38)
        for jobs in (matrix.quick(), matrix.full()):
            self.assertEqual(len({job.key() for job in jobs}), len(jobs))
            self.assertEqual({job.model for job in jobs}, set(catalogue.MODELS))


class Journal(InFolder):
    HEADER = {"name": "a card"}

    def test_records_survive_and_the_last_of_a_key_counts(self):
        path = self.path("j")
        log = journal.Journal(path, self.HEADER)
        for status in ("failed", "ok"):
            log.append({"key": "a", "status": status})
        log.append({"key": "b", "status": "oom"})
        again = journal.Journal(path, self.HEADER)
        self.assertEqual({key: entry["status"] for key, entry in again.records.items()},
                         {"a": "ok", "b": "oom"})

    def test_a_torn_last_line_is_dropped_and_appending_goes_on(self):
        path = self.path("j")
        journal.Journal(path, self.HEADER).append({"key": "a", "status": "ok"})
        with open(path, "a", encoding="utf-8") as file:
            file.write('{"key": "b", "sta')
        log = journal.Journal(path, self.HEADER)
        self.assertEqual(list(log.records), ["a"])
        log.append({"key": "c", "status": "ok"})
        self.assertEqual(list(journal.Journal(path, self.HEADER).records), ["a", "c"])

    def test_another_cards_journal_is_refused_and_left_alone(self):
        path = self.path("j")
        journal.Journal(path, self.HEADER).append({"key": "a", "status": "ok"})
        with self.assertRaisesRegex(journal.WrongJournal, "name was 'a card' and is 'another'"):
            journal.Journal(path, {"name": "another"})
        self.assertEqual(list(journal.Journal(path, self.HEADER).records), ["a"])

    def test_a_failed_write_leaves_the_old_file_and_no_litter(self):
        path = self.path("out", "old")
        with mock.patch("os.replace", side_effect=OSError("disk")), self.assertRaises(OSError):
            journal.atomic_write(path, "new")
        self.assertEqual(os.listdir(self.folder), ["out"])
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")
        journal.atomic_write(path, "new")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "new")


class Isolation(InFolder):
    """What a job's process may do without stopping the run."""

    def spec(self, model="mlp"):
        job = Job(model, 2)
        return {"key": job.key(), "job": asdict(job), "device": "cpu", "uuid": None, "warmup": 1,
                "steps": 1}

    def run_script(self, text, timeout=30.0):
        script = self.path("job.py", "import sys, os, time, json, signal\n" + text)
        return process.run_job(self.spec(), timeout, process.Fresh("", (sys.executable, script)))

    def test_a_process_that_dies_is_a_failure_with_what_it_said(self):
        record = self.run_script("print('about to go', flush=True); os._exit(3)")
        self.assertEqual((record["status"], record["error"]["message"]), ("failed", "exit code 3"))
        self.assertIn("about to go", record["error"]["said"])
        self.assertEqual(record["key"], Job("mlp", 2).key())

    def test_a_killed_process_names_its_signal(self):
        record = self.run_script("os.kill(os.getpid(), signal.SIGKILL)")
        self.assertEqual(record["error"]["message"], "killed by signal 9")

    def test_a_timeout_keeps_the_phases_that_were_finished(self):
        started = time.monotonic()
        record = self.run_script("json.dump({'key': 'k', 'job': {}, 'status': 'running', 'phases': "
                                 "{'context': {}}}, open(sys.argv[2], 'w')) or time.sleep(60)",
                                 timeout=1.0)
        self.assertEqual((record["status"], list(record["phases"])), ("timeout", ["context"]))
        self.assertLess(time.monotonic() - started, 20)

    def test_a_half_written_result_is_a_failure(self):
        record = self.run_script("open(sys.argv[2], 'w').write('{')")
        self.assertEqual(record["status"], "failed")

    @needs_torch
    def test_a_job_that_raises_is_recorded_with_its_place(self):
        record = process.run_job(self.spec("torchvision/no_such_model"), 120, process.Fresh("one_job:run"))
        if record["status"] == "skipped":
            self.skipTest(record["reason"])
        self.assertEqual(record["status"], "failed")
        self.assertIn("no_such_model", record["error"]["message"])
        self.assertEqual(record["failed_in"], "loaded")
        self.assertNotIn(os.sep, " ".join(record["error"]["where"]))


OOM_TEXT = ("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.69 GiB "
            "of which 6.94 MiB is free. Including non-PyTorch memory, this process has 23.65 GiB memory "
            "in use. 2.00 GiB allowed; Of the allocated memory 23.08 GiB is allocated by PyTorch, and "
            "277.46 MiB is reserved by PyTorch but unallocated.")


class OutOfMemory(InFolder):
    def test_reads_the_figures_of_the_message(self):
        found = one_job.out_of_memory(RuntimeError(OOM_TEXT))
        self.assertEqual({name: found[name] for name in found if name.endswith("_bytes")}, {
            "asked_bytes": 20 << 20, "capacity_bytes": round(23.69 * (1 << 30)),
            "free_bytes": round(6.94 * (1 << 20)), "process_bytes": round(23.65 * (1 << 30)),
            "allowed_bytes": 2 << 30, "allocated_bytes": round(23.08 * (1 << 30)),
            "reserved_unallocated_bytes": round(277.46 * (1 << 20))})

    def test_other_errors_are_not_out_of_memory(self):
        self.assertIsNone(one_job.out_of_memory(RuntimeError("shapes do not match")))
        self.assertIsNone(one_job.out_of_memory(MemoryError("host")))
        driver = one_job.out_of_memory(RuntimeError("CUDA error: out of memory\nsomewhere"))
        self.assertEqual(driver["kind"], "RuntimeError")

    @needs_torch
    def test_is_a_result_with_the_phase_that_ran_out(self):
        import torch
        import training
        spec = {"job": asdict(Job("mlp", 2)), "device": "cpu", "warmup": 1, "steps": 1}
        with mock.patch.object(training.Trainer, "step", side_effect=torch.OutOfMemoryError(OOM_TEXT)):
            record = one_job.run(spec, self.path("r"))
        self.assertEqual((record["status"], record["failed_in"]), ("oom", "first_step"))
        self.assertEqual(record["oom"]["asked_bytes"], 20 << 20)
        self.assertIn("at_oom", record["phases"])
        with open(self.path("r"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), record)


class CommandLine(InFolder):
    def test_mistakes_are_usage_errors(self):
        cases = [[], ["--preset", "quick", "--models", "mlp"], ["--models", "resnet51"],
                 ["--models", "mlp", "--optimizers", "lion"], ["--models", "mlp", "--warmup", "0"],
                 ["--preset", "quick", "--precisions", "bf16"]]
        for arguments in cases:
            code, said = self.run_main(*arguments, "--list")
            self.assertEqual((code, said.startswith("measure: ")), (2, True), arguments)

    def test_caps_are_read_with_their_line_numbers(self):
        path = self.path("caps", '{"job": "model=mlp,batch=4", "device_bytes": 700}\n\n'
                         '{"job": {"model": "gpt2", "batch": 1}, "device_bytes": 9, "overhead_bytes": 5}\n')
        jobs, overheads = measure.capped_jobs(path)
        self.assertEqual([(job.model, job.cap_bytes, job.seq) for job in jobs],
                         [("mlp", 700, None), ("gpt2", 9, 1024)])
        self.assertEqual(overheads, {jobs[1].key(): 5})
        code, said = self.run_main("--cap-from", self.path("bad", "\n{}\n"), "--list")
        self.assertEqual(code, 2)
        self.assertIn("bad:2: KeyError: 'job'", said)

    @needs_torch
    def test_no_gpu_is_exit_code_3(self):
        import torch
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        with self.assertRaises(SystemExit) as caught:
            self.run_main("--models", "mlp", "-o", self.path("out"))
        self.assertEqual(caught.exception.code, 3)


@needs_torch
class DryRun(InFolder):
    def load(self):
        with open(self.path("out"), encoding="utf-8") as file:
            return json.load(file)

    def dry(self, *arguments):
        return self.run_main(*arguments, "--device", "cpu", "-o", self.path("out"))

    def test_records_no_figure_and_says_so(self):
        code, _ = self.dry("--models", "mnist-cnn,mlp", "--batches", "2")
        result = self.load()
        self.assertEqual((code, result["measurement"], result["complete"], result["card"]),
                         (0, False, True, None))
        self.assertIn("not a measurement", result["note"])
        self.assertEqual([job["job"]["model"] for job in result["jobs"]], ["mlp", "mnist-cnn"])
        for record in result["jobs"]:
            self.assertEqual((record["status"], record["source"]), ("ok", "torch"))
            self.assertEqual(list(record["phases"]), sorted(one_job.PHASES))
            for snapshot in record["phases"].values():
                self.assertEqual(set(snapshot.values()), {None})
            self.assertIsNone(record["step_time"]["median_ms"])
            row = catalogue.find(record["job"]["model"])
            self.assertEqual(record["parameters"], row.parameters)
            self.assertEqual(record["parameter_bytes"], 4 * row.parameters)

    def test_a_second_run_skips_what_is_done_and_failures_do_not_stop_it(self):
        code, said = self.dry("--models", "torchvision/no_such_model,mlp", "--batches", "2")
        self.assertEqual(code, 1 if "failed" in said else 0, said)
        self.assertEqual(len(self.load()["jobs"]), 2)
        code, said = self.dry("--models", "mlp,mnist-cnn", "--batches", "2")
        self.assertIn("2 jobs, 1 already", said)
        self.assertEqual((code, len(self.load()["jobs"])), (0, 2))
        code, said = self.dry("--models", "mlp", "--batches", "2", "--steps", "3")
        self.assertEqual(code, 2)
        self.assertIn("steps was 1 and is 3", said)

    def test_retry_failed_runs_only_failures_again(self):
        self.dry("--models", "mlp,mnist-cnn", "--batches", "2", "--timeout", "0.05")
        self.assertEqual([job["status"] for job in self.load()["jobs"]], ["timeout"] * 2)
        self.dry("--models", "mlp", "--batches", "2", "--retry-failed")
        code, said = self.dry("--models", "mlp,mnist-cnn", "--batches", "2", "--retry-failed")
        self.assertIn("2 jobs, 1 already", said)
        self.assertEqual((code, [job["status"] for job in self.load()["jobs"]]), (0, ["ok"] * 2))

    def test_stop_after_leaves_the_rest_for_the_next_run(self):
        code, _ = self.dry("--models", "mlp", "--batches", "1,2", "--stop-after", "0.001")
        result = self.load()
        self.assertEqual((code, result["complete"]), (0, False))
        self.assertEqual(len(result["jobs"]) + len(result["missing"]), 2)

    def test_an_interrupt_ends_the_job_and_keeps_what_was_done(self):
        done = self.path("out.journal")
        command = [sys.executable, measure.__file__, "--models", "mlp", "--batches", "1,2,3,4,5,6",
                   "--device", "cpu", "-o", self.path("out")]
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and child.poll() is None:
            if len(journal._lines(done)) >= 3:  # the header, the head and one job
                break
            time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130, said)
        result = self.load()
        self.assertFalse(result["complete"])
        self.assertEqual({job["status"] for job in result["jobs"]}, {"ok"})
        self.assertEqual(len(result["jobs"]) + len(result["missing"]), 6)


if __name__ == "__main__":
    unittest.main()
