"""The comparison, on made-up measurements and with a stand-in for the program; with the real one if
it is built. None of these numbers comes from a GPU.

    python -m unittest discover -s bench/ground_truth
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import catalogue
import compare
import described
import matrix
import measured
import score
import stand_in
import stowage
from matrix import Job
from score import Pair
from stand_in import record, results


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, content) -> str:
        path = os.path.join(self.folder, "measured.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def run_main(self, *arguments):
        """(exit code, stdout, stderr) of compare.main."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = compare.main(list(arguments))
        return code, out.getvalue(), err.getvalue()


class Scores(unittest.TestCase):
    def test_by_hand(self):
        pairs = [Pair(100, 100), Pair(100, 99), Pair(100, 98), Pair(100, 90), Pair(200, 240)]
        found = score.score(pairs)
        self.assertEqual((found.rows, found.low, found.low_by_2_percent), (5, 3, 1))
        self.assertAlmostEqual(found.median, 0.02)
        self.assertAlmostEqual(found.percentile90, 0.16)  # between 0.10 and 0.20, at 3.6 of 4
        self.assertAlmostEqual(found.median_signed, -0.01)

    def test_one_row_and_none(self):
        self.assertAlmostEqual(score.score([Pair(100, 130)]).percentile90, 0.3)
        self.assertIsNone(score.score([]))


class Questions(unittest.TestCase):
    def ask(self, key, options=()):
        return described.question(Job.from_key(key), frozenset(options))

    def test_names_and_settings_are_the_programs(self):
        asked = self.ask("model=resnet50,batch=8,optimizer=adam:fused,precision=amp-bf16")
        self.assertEqual(" ".join(asked.arguments),
                         "resnet50 --mode train --batch 8 --optimizer adam --precision amp-bf16 "
                         "--optimizer-implementation fused --set size=224")
        self.assertEqual(asked.untold, ())
        self.assertEqual(" ".join(self.ask("model=gpt2,batch=2,seq=256,optimizer=sgd-momentum").arguments),
                         "gpt2 --mode train --batch 2 --optimizer momentum --precision fp32 --seq 256")

    def test_each_name_finds_its_description(self):
        names = {"timm/vit_base_patch16_224": "vit_base_patch16_224", "torchvision/resnet34": "resnet34",
                 "bert-base-mlm": "bert-base", "timm/mobilenetv2_100": "mobilenet_v2"}
        for name, description in names.items():
            self.assertEqual(self.ask(f"model={name},batch=1").arguments[0], description)
        self.assertIn("dropout=0.0", self.ask("model=timm/mobilenetv2_100,batch=1").arguments)
        self.assertNotIn("--set", self.ask("model=mnist-cnn,batch=1").arguments)
        self.assertTrue(os.path.exists(self.ask("model=bert-base,batch=1").arguments[0]))

    def test_what_the_program_cannot_be_told_is_named(self):
        key = "model=resnet50,batch=1,cudnn_benchmark=1,tf32=off,channels_last=1,outputs=drop"
        self.assertEqual(self.ask(key).untold,
                         ("cudnn-benchmark", "tf32=off", "layout=nhwc", "outputs=drop"))
        asked = self.ask(key, ("cudnn-benchmark", "tf32", "layout"))
        self.assertEqual((asked.arguments[-4:], asked.untold),
                         (("--tf32", "off", "--layout", "nhwc"), ("outputs=drop",)))
        self.assertEqual(self.ask("model=resnet50,batch=1,tf32=on").untold, ())


class Files(InFolder):
    def complaint(self, content) -> str:
        with self.assertRaises(measured.Malformed) as caught:
            measured.load(self.write(content))
        return str(caught.exception).partition("measured.json: ")[2]

    def test_reads_the_steady_figures_and_the_context(self):
        rows = measured.load(self.write(results([
            record("model=mlp,batch=4", "ok", 10, 20, 320, 302), record("model=mlp,batch=8", "oom"),
            record("model=mlp,batch=16", "ok", 10, 20, -3, None)]))).rows
        mib = stand_in.MIB
        self.assertEqual(rows[0], measured.Row(Job("mlp", 4), "ok", 10 * mib, 10 * mib, 20 * mib,
                                               320 * mib, 300 * mib))
        self.assertEqual(rows[1], measured.Row(Job("mlp", 8), "oom"))
        self.assertEqual((rows[2].device_bytes, rows[2].context_bytes), (None, None))

    def test_mistakes_are_named_with_their_place(self):
        good = record("model=mlp,batch=4", "ok", 1, 1, 1, 1)
        broken = lambda **changes: results([good, {**good, **changes}])
        self.assertEqual(self.complaint("[1"), "not JSON: Expecting ',' delimiter: line 1 column 3 (char 2)")
        cases = [
            ("[]", "an object is expected, not []"),
            ("{}", "schema_version: is missing"),
            (results([], schema_version=2), "schema_version: 2 is not 1"),
            (results([], measurement=1), "measurement: true or false is expected, not 1"),
            (results({}), "jobs: a list is expected, not {}"),
            (broken(status="fine"), "jobs[1].status: 'fine' is none of ok, oom, skipped, failed, timeout"),
            (broken(job={"model": "mlp"}), "jobs[1].job.batch: is missing"),
            (broken(job={"model": "mlp", "batch": "4"}),
             'jobs[1].job.batch: a value of type int is expected, not "4"'),
            (broken(job={"model": "mlp", "batch": 4, "colour": 1}),
             "jobs[1].job: unknown field 'colour'"),
            (broken(job={"model": "mlp", "batch": 0}), "jobs[1].job: batch 0 is not positive"),
            (broken(phases={}), "jobs[1].phases.steady: is missing"),
            (broken(phases={"steady": {"max_requested_bytes": "1 MiB"}}),
             'jobs[1].phases.steady.max_requested_bytes: a number of bytes is expected, not "1 MiB"'),
            (results([good, good]), f"jobs: the job {good['key']} stands there twice"),
        ]
        for content, said in cases:
            self.assertEqual(self.complaint(content), said)

    def test_an_unknown_model_is_named(self):
        said = self.complaint(results([{"job": {"model": "resnet51", "batch": 1}}]))
        self.assertTrue(said.startswith("jobs[0].job: unknown model 'resnet51'; known: mlp,"), said)


class Comparison(InFolder):
    RECORDS = [record("model=mlp,batch=100", "ok", 100, 190, 480, 282),  # 100, 200, 500, 480 predicted
               record("model=resnet18,batch=50,precision=amp-bf16", "ok", 60, 100, 410, 312),
               record("model=resnet18,batch=50", "ok", 50, 100, None, None),
               record("model=vgg16,batch=2", "ok", 1, 1, 1, 1),
               record("model=resnet152,batch=2", "ok", 1, 1, 1, 1),
               record("model=resnet50,batch=2,channels_last=1", "ok", 1, 1, 1, 1),
               record("model=resnet18,batch=2000", "oom"), record("model=resnet18,batch=500", "oom"),
               record("model=resnet18,batch=3000", "ok", 3000, 6000, 6300, 302),
               record("model=gpt2,batch=1", "timeout"), record("model=mlp,batch=1", "skipped")]

    def setUp(self):
        super().setUp()
        self.program = stand_in.Program(self.folder)

    def compare(self, content, *arguments):
        return self.run_main(self.write(content), "--stowage", self.program.path, *arguments)

    def report(self, content, *arguments) -> dict:
        code, out, err = self.compare(content, "--format", "json", *arguments)
        self.assertEqual((code, err), (0, ""))
        return json.loads(out)

    def test_every_figure_is_scored_by_family_and_precision(self):
        found = {(entry["figure"], entry["group"]): entry
                 for entry in self.report(results(self.RECORDS))["scores"]}
        groups = ("all", "convolutional", "mlp", "amp-bf16", "fp32")
        self.assertEqual([group for figure, group in found if figure == "allocated"], list(groups))
        rows = {figure: [found[figure, group]["rows"] for group in groups]
                for figure in ("allocated", "device")}
        self.assertEqual(rows, {"allocated": [4, 3, 1, 1, 3], "device": [3, 2, 1, 1, 2]})
        low = found["allocated", "amp-bf16"]
        self.assertAlmostEqual(low["median_signed"], -1 / 6)
        self.assertEqual((low["low"], low["low_by_2_percent"]), (1, 1))
        self.assertAlmostEqual(found["reserved", "mlp"]["median"], 10 / 190)
        self.assertAlmostEqual(found["device", "mlp"]["median"], 20 / 480)
        self.assertEqual(found["device, measured context", "mlp"]["median"], 0)
        self.assertEqual(found["device, measured context", "amp-bf16"]["median_signed"], 0)

    def test_refusals_are_listed_in_the_programs_words(self):
        refused = {entry["key"].split(",")[0]: entry["said"]
                   for entry in self.report(results(self.RECORDS))["refused"]}
        self.assertEqual(refused, {
            "model=vgg16": "exit code 2: error: there is no model 'vgg16'\n  a second line",
            "model=resnet152": "unreadable answer: JSONDecodeError: Expecting value: "
                               "line 1 column 1 (char 0)"})

    def test_verdicts_and_worst_rows(self):
        found = self.report(results(self.RECORDS), "--worst", "2")
        self.assertEqual(found["verdicts"], {"ran_and_fits": 3, "ran_but_refused": 1,
                                             "out_of_memory_and_refused": 1,
                                             "out_of_memory_but_fits": 1})
        self.assertEqual(found["jobs"], {"ok": 7, "oom": 2, "skipped": 1, "failed": 0, "timeout": 1})
        worst = found["worst"]["allocated"]
        self.assertEqual([Job.from_key(entry["key"]).precision for entry in worst],
                         ["amp-bf16", "fp32"])
        self.assertAlmostEqual(worst[0]["error"], -1 / 6)

    def test_the_text_has_all_of_it(self):
        code, out, err = self.compare(results(self.RECORDS))
        self.assertEqual((code, err), (0, ""))
        self.assertIn("measured.json: NVIDIA H200, PyTorch 2.11.0: 7 ok, 2 oom, 1 skipped, 1 timeout\n"
                      "stowage 0.1.0, --gpu 'NVIDIA H200'\n", out)
        self.assertIn("\ndevice: measured against peak.device_bytes\n"
                      "rows  median %  p90 %  signed %  low  low > 2 %  of\n"
                      "   3      2.44   3.82     +0.00    1          1  all\n", out)
        self.assertIn("    60.0           50.0   -16.67  model=resnet18,batch=50,", out)
        self.assertIn("layout=nhwc: allocated of model=resnet50,batch=2,", out)
        self.assertIn("Refused: 2\n", out)
        self.assertIn("  exit code 2: error: there is no model 'vgg16'\n    a second line\n", out)
        self.assertTrue(out.endswith("Ran: 3 said to fit, 1 said not to. Out of memory: 1 said not to "
                                     "fit, 1 said to.\n"))

    def test_the_card_and_the_allocators_settings_are_those_of_the_file(self):
        software = {"torch": "2.11.0", "environment": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}}
        self.report(results(self.RECORDS[:1], software=software))
        common = ["check", "mlp", "--mode", "train", "--batch", "100", "--optimizer", "adam",
                  "--precision", "fp32", "--gpu", "NVIDIA H200", "--format", "json",
                  "--alloc-conf", "max_split_size_mb:64"]
        self.assertEqual(self.program.asked(),
                         [common, [*common, "--context", f"{280 * stand_in.MIB}B"]])
        self.assertEqual(self.report(results([]), "--gpu", "a100")["gpu"], "a100")

    def test_a_file_without_a_row_is_no_failure(self):
        code, out, _ = self.compare(results([]))
        self.assertEqual((code, out.count("  no rows\n")), (0, 5))

    def test_mistakes_are_exit_code_2_and_one_line(self):
        other = stand_in.Program(tempfile.mkdtemp(dir=self.folder), version="9.1")
        good = results(self.RECORDS[:1])
        cases = [(results([], measurement=False), [], "is a dry run: there are no figures in it"),
                 (results([], card=None), [], "names no card: give --gpu"),
                 ("{", [], "not JSON"),
                 (good, ["--stowage", other.path], "is not stowage: --version says '9.1'"),
                 (good, ["--stowage", self.folder + "/none"], "No such file or directory")]
        for content, arguments, said in cases:
            code, out, err = self.compare(content, *arguments)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), said)
            self.assertTrue(err.startswith("compare: "), err)
            self.assertIn(said, err)
        code, _, err = self.run_main(self.folder + "/absent.json", "--stowage", self.program.path)
        self.assertEqual(code, 2)
        self.assertIn("absent.json", err)


class RealProgram(unittest.TestCase):
    """The catalogue's networks against the descriptions that they are compared with."""

    @classmethod
    def setUpClass(cls):
        try:
            cls.program = stowage.Program(stowage.find_program(None), "h200")
        except stowage.NoProgram as error:
            raise unittest.SkipTest(str(error))

    def test_every_model_is_described_with_as_many_parameters(self):
        for name, row in catalogue.MODELS.items():
            with self.subTest(name):
                question = self.program.question(matrix.complete(Job(name, 2)))
                answer = subprocess.run([self.program.path, "summary", question.arguments[0],
                                         "--format", "json"], capture_output=True, text=True)
                self.assertEqual((answer.returncode, answer.stderr), (0, ""))
                self.assertEqual(json.loads(answer.stdout)["model"]["parameters"], row.parameters)

    def test_every_model_and_setting_is_answered(self):
        keys = [f"model={name},batch=1" for name in catalogue.MODELS]
        keys += [f"model=mlp,batch=2,optimizer={name}" for name in matrix.OPTIMIZERS]
        keys += [f"model=mlp,batch=2,optimizer=adam:{name}" for name in matrix.IMPLEMENTATIONS]
        keys += [f"model=mlp,batch=2,precision={name}" for name in matrix.PRECISIONS]
        for key in keys:
            with self.subTest(key):
                answer = self.program.check(Job.from_key(key))
                self.assertIsInstance(answer, stowage.Prediction, answer)
                self.assertLess(answer.tensor_bytes, answer.device_bytes)

    def test_a_measured_context_takes_the_place_of_the_cards(self):
        job = Job("mlp", 64)
        one, two = (self.program.check(job, context << 20) for context in (300, 500))
        self.assertEqual(two.device_bytes - one.device_bytes, 200 << 20)
        self.assertEqual(two.reserved_bytes, one.reserved_bytes)


if __name__ == "__main__":
    unittest.main()
