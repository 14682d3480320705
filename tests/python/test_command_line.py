"""`python -m stowage record`: sources, scripts, mistakes, and what is left on disk."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import textwrap
import unittest
from unittest import mock

from command_case import PACKAGE, CommandCase
from references import has
from step_memory import StepMemory

SCRIPT = """
    import torch, stowage
    import torch.nn.functional as functional

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 32), torch.nn.ReLU(),
                                torch.nn.Linear(32, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")

    @stowage.step
    def train_step(images, labels):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    data = torch.utils.data.TensorDataset(torch.randn(64, 3, 4, 4), torch.randint(0, 10, (64,)))
    for images, labels in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True):
        print("loss", train_step(images.to(device), labels.to(device)).item())
"""
MODEL = """
    import torch

    def build_model():
        return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(),
                                   torch.nn.Linear(4 * 36, 10))

    def build_everything(batch):
        model = torch.nn.Linear(6, 2)
        return model, torch.zeros(batch, 6), torch.zeros(batch, 2), torch.nn.functional.mse_loss

    def build_nothing():
        return 3

    def of_width(width):
        return torch.nn.Linear(width, 2)

    class Branch(torch.nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y * 2 if y.sum() > 0 else y

    class Count(torch.nn.Linear):
        def forward(self, x):
            return len(x)

    def branching():
        return Branch(6, 2)

    def count_rows():
        return Count(6, 2)
"""


class CommandLine(CommandCase):
    files = {"train.py": SCRIPT, "net.py": MODEL}

    def test_a_script_with_the_hook(self) -> None:
        document = self.record("train.py", "--batch", "16")
        self.assertEqual(document["precision"], "amp-fp16")
        self.assertEqual((document["model"], document["batch"]), ("train", 16))
        self.assertFalse(document["fixed_batch"])
        kernels = [node[1] for node in document["step"]["nodes"]]
        self.assertIn("aten::_amp_foreach_non_finite_check_and_unscale_", kernels)
        self.assertIn("aten::_amp_update_scale_", kernels)
        places = {row[1] for row in document["origins"] if len(row) > 1}
        self.assertIn("train.py:15", places)

    def test_without_a_batch_a_script_has_its_own(self) -> None:
        self.assertEqual(self.record("train.py")["batch"], 8)

    def test_a_script_that_calls_record(self) -> None:
        pathlib.Path("calls.py").write_text(textwrap.dedent("""
            import torch, stowage

            model = torch.nn.Linear(6, 2).to(torch.bfloat16)
            stowage.record(model, torch.zeros(4, 6), loss=lambda output: output.mean(),
                           precision="bf16", optimizer="adamw", output="elsewhere.json")
            print("not reached")
            """))
        document = self.record("calls.py", "--batch", "5")
        self.assertEqual((document["batch"], document["precision"]), (5, "bf16"))
        self.assertFalse(pathlib.Path("elsewhere.json").exists())

    def test_a_function_of_a_file(self) -> None:
        document = self.record("net.py:build_model", "--input", "3x8x8", "--batch", "4")
        self.assertEqual(document["model"], "net")
        self.assertEqual(document["batch"], 4)

    def test_a_function_that_brings_its_inputs_and_loss(self) -> None:
        document = self.record("net.py:build_everything", "--optimizer", "adam")
        kernels = [node[1] for node in document["step"]["nodes"]]
        self.assertIn("aten::mse_loss", kernels)
        self.assertEqual(document["settings"]["optimizer"]["name"], "adam")

    @unittest.skipUnless(has("torchvision"), "torchvision is not installed")
    def test_torchvision(self) -> None:
        document = self.record("torchvision:squeezenet1_0", "--batch", "3", "--size", "64")
        self.assertEqual(sum(row[3] == "trained" for row in document["parameters"]), 52)
        self.assertEqual(document["seq"], None)

    @unittest.skipUnless(has("timm"), "timm is not installed")
    def test_timm_reads_the_rates_of_stochastic_depth(self) -> None:
        document = self.record("timm:levit_128s", "--mode", "inference")
        self.assertEqual(document["settings"]["mode"], "inference")

    @unittest.skipUnless(has("transformers"), "transformers is not installed")
    def test_a_configuration_of_transformers(self) -> None:
        pathlib.Path("config.json").write_text(json.dumps({
            "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
            "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 256}))
        plain = self.record("transformers:config.json", "--seq", "64", "--precision", "bf16")
        self.assertEqual(plain["seq"], 64)
        saving = self.record("transformers:config.json", "--seq", "64", "--precision", "bf16",
                             "--checkpoint")
        self.assertLess(StepMemory(saving, batch=64).peak, StepMemory(plain, batch=64).peak)

    def test_a_file_on_stdout(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "stowage", "record", "net.py:build_model", "--input", "3x8x8", "-o",
             "-"], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        self.assertEqual(json.loads(done.stdout)["model"], "net")
        self.assertIn("-: net at batch 2, ", done.stderr)
        self.assertNotIn("-", os.listdir())

    def test_the_program_takes_the_file(self) -> None:
        program = os.environ.get("STOWAGE_PROGRAM")
        if not program or not os.path.exists(program):
            self.skipTest("STOWAGE_PROGRAM names no program")
        self.record("net.py:build_model", "--input", "3x8x8", "--optimizer", "adam")
        for command in (["check", "s.json"], ["batch", "s.json"], ["summary", "s.json"]):
            gpu = [] if command[0] == "summary" else ["--gpu", "rtx3090"]
            done = subprocess.run([program, *command, *gpu], capture_output=True, text=True,
                                  check=False, env={**os.environ, "STOWAGE_NO_CACHE": "1"})
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_program_refuses_a_card_of_another_capability(self) -> None:
        program = os.environ.get("STOWAGE_PROGRAM")
        if not program or not os.path.exists(program):
            self.skipTest("STOWAGE_PROGRAM names no program")
        self.record("net.py:build_model", "--input", "3x8x8", "--compute-capability", "8.6")
        done = subprocess.run([program, "check", "s.json", "--gpu", "v100-16gb"], text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("has compute capability 7.0: the step was made for 8.6\n  leave it out, or "
                      "record the step for it: python -m stowage record", done.stderr)

    def test_a_source_that_is_none(self) -> None:
        self.assertEqual(self.mistake("resnet50"),
                         "error: 'resnet50' is no source\n  torchvision:NAME, timm:NAME, "
                         "transformers:NAME, FILE.py:FUNCTION, or a script FILE.py\n")

    @unittest.skipUnless(has("torchvision"), "torchvision is not installed")
    def test_a_model_that_is_none(self) -> None:
        self.assertRegex(self.mistake("torchvision:resnet51"),
                         r"^error: torchvision \S+ has no model 'resnet51'\n  did you mean resnet")

    def test_a_file_that_is_not_there(self) -> None:
        self.assertEqual(self.mistake("nets.py:build"), "error: there is no file 'nets.py'\n")
        self.assertEqual(self.mistake("nets.py"), "error: there is no file 'nets.py'\n")

    def test_a_function_that_is_not_there(self) -> None:
        self.assertEqual(self.mistake("net.py:build_modle"),
                         "error: 'net.py' has no function 'build_modle'\n"
                         "  did you mean build_model?\n")

    def test_a_function_that_returns_no_model(self) -> None:
        self.assertIn("'net.py:build_nothing' returned a int, not a model",
                      self.mistake("net.py:build_nothing"))

    def test_inputs_that_are_not_said(self) -> None:
        self.assertIn("say their shapes: --input 3x224x224".replace("say", "give"),
                      self.mistake("net.py:build_model"))
        self.assertIn("--input '3by8' is no shape",
                      self.mistake("net.py:build_model", "--input", "3by8"))

    def test_a_mistake_of_the_models_own_code(self) -> None:
        self.assertRegex(self.mistake("net.py:build_model", "--input", "5x8x8"),
                         r"^error: .*RuntimeError: ")

    def test_a_mistake_of_the_models_own_code_in_an_export(self) -> None:
        self.assertEqual(self.mistake("net.py:of_width", "--input", "6", command="export"),
                         "error: 'net.py:of_width' needs width, which nothing gives it\n"
                         "  a function of batch and seq, or of none, that returns the model\n")
        self.assertRegex(self.mistake("net.py:build_model", "--input", "5x8x8", command="export"),
                         r"^error: .*RuntimeError: .*\n  STOWAGE_TRACEBACK=1 shows where from\n$")
        self.assertRegex(
            self.mistake("net.py:branching", "--input", "6", command="export"),
            r"^error: net\.py:21: values of a tensor decide what runs or how large a result is, and "
            r"traced tensors have none\n  take \.item\(\), ")

    def test_an_output_without_a_tensor(self) -> None:
        for command in ("record", "export"):
            self.assertEqual(self.mistake("net.py:count_rows", "--input", "6", command=command),
                             "error: the model's output, a int, holds no tensor\n")

    def test_a_mistake_before_the_step(self) -> None:
        pathlib.Path("early.py").write_text("open('no/data.csv')\n")
        self.assertEqual(self.mistake("early.py"),
                         "error: early.py:1: FileNotFoundError: [Errno 2] No such file or directory: "
                         "'no/data.csv'\n  STOWAGE_TRACEBACK=1 shows where from\n")

    def test_options_that_a_source_has_no_use_for(self) -> None:
        for words, option in ((("net.py:build_model", "--size", "64"), "size"),
                              (("torchvision:resnet18", "--input", "3x8x8"), "input"),
                              (("timm:resnet18", "--seq", "8"), "seq")):
            for command in ("record", "export"):
                self.assertEqual(
                    self.mistake(*words, command=command),
                    f"error: --{option}: {words[0]} has no use for it\n  leave it out\n")
        self.assertIn("--seq: 'net.py:build_model' takes no seq",
                      self.mistake("net.py:build_model", "--input", "3x8x8", "--seq", "8"))
        self.assertIn("--input: 'net.py:build_everything' returns the model's inputs itself",
                      self.mistake("net.py:build_everything", "--input", "6"))

    def test_an_interrupt_leaves_the_file_of_before(self) -> None:
        pathlib.Path("stops.py").write_text("raise KeyboardInterrupt\n")
        pathlib.Path("s.json").write_text("before")
        before = sorted(os.listdir())
        interrupted = (130, "", "interrupted: nothing was written\n")
        self.assertEqual(self.run_command("record", "stops.py", "-o", "s.json"), interrupted)
        with mock.patch("os.replace", side_effect=KeyboardInterrupt):
            for words in (["record", "net.py:build_everything"],
                          ["export", "net.py:build_model", "--input", "3x8x8"]):
                self.assertEqual(self.run_command(*words, "-o", "s.json"), interrupted)
        self.assertEqual(pathlib.Path("s.json").read_text(), "before")
        self.assertEqual([name for name in sorted(os.listdir()) if name != "__pycache__"], before)

    def test_without_torch(self) -> None:
        for words, code, said in (
                (["record", "torchvision:resnet18", "-o", "s.json"], 2, ""),
                (["export", "torchvision:resnet18", "-o", "s.yaml"], 2, ""),
                (["--version"], 0, "stowage ")):
            done = subprocess.run(
                [sys.executable, "-c", "import sys; sys.modules['torch'] = None\n"
                 "from stowage.__main__ import main\nsys.exit(main())", *words],
                capture_output=True, text=True, check=False,
                env={**os.environ, "PYTHONPATH": str(PACKAGE)})
            self.assertEqual((done.returncode, done.stdout[:8]), (code, said))
            if code:
                self.assertEqual(done.stderr, "error: the package 'torch' is not installed\n"
                                              "  pip install torch\n")

    def test_a_script_without_the_hook(self) -> None:
        pathlib.Path("plain.py").write_text("x = 1\n")
        self.assertIn("plain.py ended without a call of a function with @stowage.step",
                      self.mistake("plain.py"))

    def test_a_script_that_looks_at_values(self) -> None:
        pathlib.Path("looks.py").write_text("import torch\n\nprint(torch.randn(9).mean().item())\n")
        self.assertRegex(self.mistake("looks.py"),
                         r"^error: looks\.py:3: aten\._local_scalar_dense\.default reads a tensor's "
                         r"values")

    def test_a_syntax_error(self) -> None:
        pathlib.Path("wrong.py").write_text("def f(:\n")
        self.assertIn("wrong.py:1", self.mistake("wrong.py"))
        self.assertIn("wrong.py:1", self.mistake("wrong.py:f"))

    def test_options_that_a_script_has_no_use_for(self) -> None:
        self.assertIn("--optimizer: train.py is a script, which says so itself",
                      self.mistake("train.py", "--optimizer", "adam"))

    def test_values_that_are_none(self) -> None:
        self.assertIn("'0' is not a whole number of at least 1",
                      self.mistake("net.py:build_model", "--batch", "0"))
        self.assertIn("invalid choice: 'fp8'",
                      self.mistake("net.py:build_model", "--precision", "fp8"))

    def test_a_place_that_cannot_be_written(self) -> None:
        for command in ("record", "export"):
            for place, said in (("no/s", "no/s: there is no folder '"), (".", ". is a folder\n"),
                                ("/proc/s", "/proc/s: no file can be made in '/proc': ")):
                code, _, errors = self.run_command(command, "net.py:build_model", "-o", place)
                self.assertEqual((code, errors[:len(said) + 7]), (2, f"error: {said}"))

    def test_help_names_the_commands(self) -> None:
        code, output, _ = self.run_command("--help")
        self.assertEqual(code, 0)
        self.assertIn("record one step of a PyTorch network as a step file", output)
