"""Plans on the pretended device, and the scripts of examples/ that try them."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import runpy
import sys
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch import nn

import stowage
from command_case import CommandCase
from planned import PlannedMemory, Planner, planned_bytes, write_plan
from references import has
from step_memory import StepMemory

EXAMPLES = pathlib.Path(__file__).parent.parent.parent / "examples"
UNIT = 512


def deep() -> nn.Sequential:
    """Blocks within blocks: an argument of the outer one lives until that returns."""
    return nn.Sequential(*(nn.Sequential(*(part for _ in range(2) for part in (
        nn.Linear(64, 64), nn.Tanh()))) for _ in range(3)))


def mean_square(output: torch.Tensor) -> torch.Tensor:
    return output.square().mean()


def built() -> tuple[Any, Any, Callable[[], Any]]:
    model = deep().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.zeros(256, 64, device="cuda")

    def step() -> torch.Tensor:
        loss = mean_square(model(x))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return model, optimizer, step


class Rehearsals(unittest.TestCase):
    def setUp(self) -> None:
        self.document = self.recorded()

    def recorded(self) -> dict[str, Any]:
        model = deep()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x: torch.Tensor) -> torch.Tensor:
            loss = mean_square(model(x))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return stowage.record(step, torch.zeros(256, 64)).document

    def plan(self) -> Any:
        from stowage.plans.plan_file import PlanReader

        self.content = Planner(self.document).plan(least=4096)
        return PlanReader("the test's plan", self.content).plan()

    def test_without_a_plan_the_peak_is_that_of_the_recording(self) -> None:
        found = stowage.rehearse(built, None)
        self.assertEqual((found.bytes_out, found.bytes_back, found.fell_back), (0, 0, 0))
        self.assertEqual(found.peak_bytes, StepMemory(self.document, unit=UNIT).peak)

    def test_a_plan_moves_its_bytes_and_lowers_the_peak(self) -> None:
        unplanned = stowage.rehearse(built, None)
        found = stowage.rehearse(built, self.plan())
        moved = planned_bytes(self.content, 256)
        self.assertEqual((found.bytes_out, found.bytes_back, found.first_reason), (moved, moved, ""))
        # Without a plan six results of tanh are kept; with it at most three are there at once: one that
        # is written, one that leaves, one that is fetched.
        result = 256 * 64 * 4
        self.assertLessEqual(found.peak_bytes, unplanned.peak_bytes - 2 * result)

    def test_under_a_plan_the_peak_is_what_the_recording_says_of_it(self) -> None:
        plan = self.plan()
        self.assertEqual(stowage.rehearse(built, plan).peak_bytes,
                         PlannedMemory(self.document, self.content, UNIT).peak)

    def test_nothing_is_left(self) -> None:
        stowage.rehearse(built, self.plan())
        self.assertIsNone(torch._C._autograd._top_saved_tensors_default_hooks(True))

    def test_what_a_step_raises_is_raised(self) -> None:
        def failing() -> tuple[Any, Any, Callable[[], Any]]:
            model, optimizer, _ = built()
            return model, optimizer, lambda: 1 // 0

        with self.assertRaises(ZeroDivisionError):
            stowage.rehearse(failing, self.plan())
        self.assertIsNone(torch._C._autograd._top_saved_tensors_default_hooks(True))


@unittest.skipUnless(has("torchvision"), "needs torchvision")
class PlannedByTheProgram(CommandCase):
    files = {"train.py": """
        import torch, torchvision, stowage

        def build():
            torch.manual_seed(0)
            model = torchvision.models.resnet18(num_classes=10).cuda()
            return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        @stowage.step
        def step(model, optimizer, images):
            optimizer.zero_grad()
            loss = model(images).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        if __name__ == "__main__":
            step(*build(), torch.zeros(8, 3, 224, 224).cuda())
        """}

    def test_the_peak_is_within_the_plans(self) -> None:
        self.record("train.py")
        script = runpy.run_path("train.py")

        def build() -> tuple[Any, Any, Callable[[], Any]]:
            model, optimizer = script["build"]()
            images = torch.zeros(256, 3, 224, 224, device="cuda")
            return model, optimizer, lambda: script["step"](model, optimizer, images)

        for choice in ("offload", "checkpoint-4-of-7"):
            with self.subTest(choice=choice):
                plan = self.planned("--gpu", "rtx3060", "--batch", "256", "--gpu-memory", "5GiB",
                                    "--choose", choice)
                moved = plan.offloaded_bytes(256)
                self.assertEqual(moved > 0, choice == "offload")
                found = stowage.rehearse(build, plan)
                self.assertEqual((found.bytes_out, found.bytes_back, found.first_reason),
                                 (moved, moved, ""))
                self.assertLessEqual(found.peak_bytes, plan.peak_allocated)


class Examples(CommandCase):
    def run_example(self, name: str, *words: str) -> tuple[Any, str]:
        """(exit code, stdout)"""
        output = io.StringIO()
        path = str(EXAMPLES / name)
        with (mock.patch.object(sys, "argv", [path, *words]),
              mock.patch.object(sys, "path", [str(EXAMPLES), *sys.path]),
              contextlib.redirect_stdout(output), self.assertRaises(SystemExit) as ended):
            runpy.run_path(path, run_name="__main__")
        return ended.exception.code, output.getvalue()

    def tried(self, name: str, words: tuple[str, ...], batch: int, stay: int = 0) -> None:
        """`stay`: tensors that kernels of the CPU save otherwise."""
        document = self.record(str(EXAMPLES / name), "--", *words)
        plan = Planner(document).plan()
        plan["totals"] = {"peak_allocated_bytes": 123}
        write_plan(plan, "p.json")
        moved = planned_bytes(plan, batch)
        code, output = self.run_example(name, *words, "--plan", "p.json", "--pretend")
        self.assertEqual(code, 0)
        lines = output.splitlines()
        self.assertEqual(lines[:2], [f"moved to the host {moved} bytes a step, and back {moved}; planned "
                                     f"{moved}", "tensors that fell back: 0"])
        self.assertRegex(lines[2], "^peak of living tensors [0-9]+ bytes, without what kernels allocate "
                                   "within themselves; planned 123$")
        code, output = self.run_example(name, *words, "--plan", "p.json", "--compare", "--batch", "3",
                                        "--steps", "2", "--last-batch", "2")
        self.assertEqual(code, 0)
        tensors = 3 * sum(len(entry["saved"]) for entry in plan["offload"])
        first, last = output.splitlines()
        found = re.fullmatch(r"moved to the host ([0-9]+) bytes, and back \1: ([0-9]+) tensors of "
                             rf"{tensors} that the plan offloads; tensors that fell back: ([0-9]+)( .*)?",
                             first)
        assert found is not None, first
        self.assertEqual(int(found[2]) + int(found[3]), tensors)
        self.assertEqual(int(found[3]), 3 * stay)
        if stay == 0:
            self.assertEqual(int(found[1]), sum(planned_bytes(plan, size) for size in (3, 3, 2)))
        self.assertEqual(last, "3 steps of 3, 3, 2 samples: losses, gradients, parameters and buffers "
                               "are equal to the bit")

    @unittest.skipUnless(has("torchvision"), "needs torchvision")
    def test_train_resnet(self) -> None:
        self.tried("train_resnet.py", ("--model", "resnet18", "--image-size", "32"), 8)

    @unittest.skipUnless(has("transformers"), "needs transformers")
    def test_finetune_gpt2(self) -> None:
        self.tried("finetune_gpt2.py", ("--layers", "1", "--width", "64", "--tokens", "8"), 8,
                   stay=10)

    @unittest.skipUnless(has("torchvision"), "needs torchvision")
    def test_images_of_another_size_try_nothing(self) -> None:
        words = ("--model", "resnet18", "--plan", "p.json", "--compare", "--steps", "1")
        document = self.record(str(EXAMPLES / "train_resnet.py"), "--", *words[:2], "--image-size", "32")
        plan = Planner(document).plan(1 << 16)  # no statistics, which have one size
        write_plan(plan, "p.json")
        tensors = sum(len(entry["saved"]) for entry in plan["offload"])
        code, output = self.run_example("train_resnet.py", *words, "--image-size", "64", "--batch", "2")
        self.assertEqual((code, output.splitlines()), (1, [
            f"moved to the host 0 bytes, and back 0: 0 tensors of {tensors} that the plan offloads; "
            f"tensors that fell back: {tensors} (bn1#0 is float32 [2, 64, 32, 32], and the plan has "
            "float32 [batch, 64, 16, 16])",
            "no tensor left, so that nothing of the plan's offloading was tried: compare with the sizes "
            "that the step was recorded at"]))

    @unittest.skipUnless(has("torchvision"), "needs torchvision")
    def test_a_differing_bit_and_missing_options(self) -> None:
        with mock.patch.object(sys, "path", [str(EXAMPLES), *sys.path]):
            import plan_trials
        self.addCleanup(sys.modules.pop, "plan_trials", None)
        calls = []

        def step(model: nn.Module, optimizer: Any, batch: int, device: str) -> torch.Tensor:
            calls.append(batch)
            loss = mean_square(model(torch.ones(batch, 64, device=device)))
            loss.backward()
            if len(calls) == 4:
                model[1][0].bias.grad[3] += 1e-6  # type: ignore[index]
            return loss

        def build(device: str) -> tuple[nn.Module, Any]:
            torch.manual_seed(0)
            return deep().to(device), None

        write_plan(Planner(stowage.record(deep(), torch.zeros(4, 64), loss=mean_square).document).plan(),
                   "p.json")
        plan = stowage.read_plan("p.json")
        options = mock.Mock(batch=4, steps=2, last_batch=None)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = plan_trials.compare(plan, build, step, options)
        self.assertEqual((code, output.getvalue()), (1, "step 2: the gradient of 1.0.bias differs\n"))
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            code, _ = self.run_example("train_resnet.py", "--pretend")
        self.assertEqual(code, 2)
        self.assertIn("error: --pretend and --compare need --plan\n", errors.getvalue())


if __name__ == "__main__":
    unittest.main()
