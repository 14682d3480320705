"""Which parameters a recorded step updates, and what a step without an update says."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import textwrap
import unittest
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import stowage
from stowage.script import record_script

Step = Callable[[torch.Tensor], Any]


def network(width: int = 64) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))


def recorded(step: Step, width: int = 64) -> stowage.RecordedStep:
    return stowage.record(step, torch.zeros(4, width))


def names_not_updated(step: stowage.RecordedStep) -> list[str]:
    return [step.document["parameters"][number][0]
            for number in step.document.get("not_updated", [])]


ALL = ["0.weight", "0.bias", "2.weight", "2.bias"]


class Updates(unittest.TestCase):
    def test_a_step_without_its_update_says_so(self) -> None:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters())

        def step(x: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss

        found = recorded(step)
        self.assertEqual(names_not_updated(found), ALL)
        self.assertEqual(found.warnings, [
            "the step has no update of 4 trained parameters (32.5 KiB): no optimizer ran for them when "
            "the step was recorded, so the optimizer's state and temporaries are not counted"])
        self.assertEqual(found.document["settings"]["optimizer"]["name"], "adamw")

    def test_a_step_with_its_update_says_nothing(self) -> None:
        model = network()
        for optimizer in (torch.optim.AdamW(model.parameters()),
                          torch.optim.AdamW(model.parameters(), fused=True),
                          torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)):
            def step(x: torch.Tensor, optimizer: torch.optim.Optimizer = optimizer) -> None:
                model(x).mean().backward()
                optimizer.step()
                optimizer.zero_grad()

            self.assertEqual(names_not_updated(recorded(step)), [])
            self.assertEqual(recorded(step).warnings, [])

    def test_parameters_that_no_optimizer_has(self) -> None:
        model = network()
        optimizer = torch.optim.Adam(model[0].parameters())

        def step(x: torch.Tensor) -> None:
            optimizer.zero_grad()
            model.zero_grad()
            model(x).mean().backward()
            optimizer.step()

        found = recorded(step)
        self.assertEqual(names_not_updated(found), ["2.weight", "2.bias"])
        self.assertEqual(found.document["settings"]["optimizer"]["name"], "adam")

    def test_the_optimizer_that_steps_is_named(self) -> None:
        first, second = nn.Linear(8, 8), nn.Linear(8, 8)
        idle = torch.optim.SGD(first.parameters(), lr=0.1)
        steps = torch.optim.AdamW(second.parameters())

        def step(x: torch.Tensor) -> None:
            idle.zero_grad()
            steps.zero_grad()
            second(first(x)).mean().backward()
            steps.step()

        found = recorded(step, 8)
        self.assertEqual(names_not_updated(found), ["first.weight", "first.bias"])
        self.assertEqual(found.document["settings"]["optimizer"]["name"], "adamw")

    def test_state_of_an_optimizer_that_steps_in_turn_is_counted(self) -> None:
        model, other = nn.Linear(8, 8), nn.Linear(8, 8)
        optimizers = [torch.optim.AdamW(model.parameters()), torch.optim.AdamW(other.parameters())]
        calls = [0]

        def step(x: torch.Tensor) -> None:
            for optimizer in optimizers:
                optimizer.zero_grad()
            other(model(x)).mean().backward()
            optimizers[calls[0] % 2].step()
            calls[0] += 1

        found = recorded(step, 8)
        self.assertEqual(names_not_updated(found), ["model.weight", "model.bias"])
        states = [row for row in found.document["step"]["storages"] if row[1] == "optimizer_state"]
        self.assertEqual(len(states), 2 * 2 * 2)
        self.assertIn("some calls of the step update parameters that others do not: the file has the "
                      "second call alone, without what earlier calls left to it", found.warnings)

    def test_gradients_that_are_accumulated_over_calls(self) -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        calls = [0]

        def step(x: torch.Tensor) -> None:
            model(x).mean().backward()
            calls[0] += 1
            if calls[0] % 3 == 0:
                optimizer.step()
                optimizer.zero_grad()

        found = recorded(step)
        self.assertEqual(names_not_updated(found), ALL)
        self.assertIn("some calls of the step update parameters that others do not: the file has the "
                      "second call alone, without what earlier calls left to it", found.warnings)
        self.assertTrue(found.document["fixed_batch"])

    def test_a_parameter_without_a_gradient_needs_no_update(self) -> None:
        model = network()
        unused = nn.Linear(8, 8)
        optimizer = torch.optim.AdamW([*model.parameters(), *unused.parameters()])

        def step(x: torch.Tensor) -> None:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
            _ = unused

        self.assertEqual(names_not_updated(recorded(step)), [])

    def test_an_update_of_ones_own(self) -> None:
        model = network()

        def step(x: torch.Tensor) -> None:
            model.zero_grad()
            model(x).mean().backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.sub_(parameter.grad * 0.1)

        found = recorded(step)
        self.assertEqual(names_not_updated(found), [])
        self.assertEqual(found.warnings, [
            "the step updates its parameters without an optimizer of torch.optim; 'settings' call it "
            "sgd, and its updates are in the step as they ran"])

    def test_gradients_that_are_no_attribute(self) -> None:
        model = network()

        def gradients(x: torch.Tensor) -> Any:
            return torch.autograd.grad(model(x).mean(), list(model.parameters()))

        self.assertEqual(names_not_updated(recorded(gradients)), ALL)

        def step(x: torch.Tensor) -> None:
            found = gradients(x)
            with torch.no_grad():
                for parameter, gradient in zip(model.parameters(), found):
                    parameter.sub_(gradient)

        self.assertEqual(names_not_updated(recorded(step)), [])

    def test_an_optimizer_that_is_found_when_it_steps(self) -> None:
        class Hidden:
            __slots__ = ("optimizer",)

        model, hidden = network(), Hidden()
        hidden.optimizer = torch.optim.AdamW(model.parameters())

        def step(x: torch.Tensor) -> None:
            hidden.optimizer.zero_grad()
            model(x).mean().backward()
            hidden.optimizer.step()

        found = recorded(step)
        self.assertEqual(names_not_updated(found), [])
        self.assertEqual(found.document["settings"]["optimizer"]["name"], "adamw")
        self.assertIn("adamw.0.weight.exp_avg", [row[0] for row in found.document["step"]["storages"]])
        self.assertEqual(len(hidden.optimizer.state), 0)

    def test_what_a_forward_pass_writes_is_no_update(self) -> None:
        model = nn.Embedding(16, 8, max_norm=1.0)

        def step(ids: torch.Tensor) -> None:
            model.zero_grad()
            model(ids).mean().backward()

        found = stowage.record(step, torch.zeros(4, 3, dtype=torch.int64))
        self.assertIn("aten::embedding_renorm_", [row[1] for row in found.document["step"]["nodes"]])
        self.assertEqual(names_not_updated(found), ["weight"])

    def test_an_inference_updates_nothing(self) -> None:
        model = network()

        def step(x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                return model(x)

        found = recorded(step)
        self.assertNotIn("not_updated", found.document)
        self.assertEqual(found.warnings, [])

    def test_a_scheduler_does_not_take_the_update_away(self) -> None:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        found = stowage.record(model, torch.zeros(4, 64), loss=lambda output: output.mean(),
                               optimizer=optimizer)
        self.assertEqual(names_not_updated(found), [])
        self.assertIn("aten::_foreach_addcdiv_.ScalarList",
                      [row[1] for row in found.document["step"]["nodes"]])
        self.assertIs(scheduler.optimizer, optimizer)

    def test_a_gradient_scaler_steps_or_does_not(self) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for steps, missing in ((True, []), (False, ["weight", "bias"])):
                pathlib.Path("train.py").write_text(textwrap.dedent(f"""
                    import torch, stowage

                    model = torch.nn.Linear(8, 8).cuda()
                    accumulator = model.weight.expand_as(model.weight).grad_fn.next_functions[0][0]
                    accumulator.register_hook(lambda *_: model.weight.grad.mul_(2) is None or None)
                    optimizer = torch.optim.AdamW(model.parameters())
                    scaler = torch.amp.GradScaler("cuda")

                    @stowage.step
                    def train_step(x):
                        optimizer.zero_grad()
                        scaler.scale(model(x).mean()).backward()
                        if {steps}:
                            scaler.step(optimizer)
                            scaler.update()

                    train_step(torch.zeros(4, 8).cuda())
                    """))
                found = record_script("train.py", None, stowage.RecordOptions())
                self.assertEqual(names_not_updated(found), missing)
                # Hooks on AccumulateGrad nodes run in a script that is recorded whole.
                self.assertIn("aten::mul_.Tensor",
                              [row[1] for row in found.document["step"]["nodes"]])

    def test_recurrent_weights_that_share_a_buffer(self) -> None:
        model = nn.LSTM(8, 8)

        def step(x: torch.Tensor) -> None:
            model.zero_grad()
            model(x)[0].mean().backward()

        found = stowage.record(step, torch.zeros(3, 4, 8), batch_axes=1)
        self.assertEqual(len(names_not_updated(found)), 4)


@unittest.skipUnless(os.path.exists(os.environ.get("STOWAGE_PROGRAM", "")),
                     "STOWAGE_PROGRAM names no program")
class AddedUpdates(unittest.TestCase):
    """`--optimizer` on a step without an update gives the size of the step that has it."""

    def answer(self, step: stowage.RecordedStep, *words: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "s.json")
            step.save(path)
            done = subprocess.run(
                [os.environ["STOWAGE_PROGRAM"], "check", path, "--gpu", "rtx3090", "--format", "json",
                 *words], capture_output=True, text=True, check=False,
                env={**os.environ, "STOWAGE_NO_CACHE": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def compare(self, optimizer: torch.optim.Optimizer, model: nn.Module, inputs: torch.Tensor,
                *words: str, batch_axis: int = 0) -> None:
        def part(x: torch.Tensor) -> None:
            optimizer.zero_grad()
            output = model(x)
            (output[0] if isinstance(output, tuple) else output).square().mean().backward()

        def whole(x: torch.Tensor) -> None:
            part(x)
            optimizer.step()

        without, with_it = (stowage.record(step, inputs, batch_axes=batch_axis)
                            for step in (part, whole))
        added, held = self.answer(without, *words), self.answer(with_it)
        self.assertEqual(added["phases"][-1], held["phases"][-1])
        self.assertEqual(added["host_bytes"], held["host_bytes"])
        self.assertEqual(added["settings"]["optimizer"], held["settings"]["optimizer"])
        self.assertIsNone(added["settings"]["not_updated"])
        plain = self.answer(without)
        self.assertIsNone(plain["settings"]["optimizer"])
        self.assertEqual(plain["settings"]["not_updated"]["parameters"],
                         len(list(model.parameters())))
        self.assertLess(plain["phases"][-1]["tensor_bytes"], held["phases"][-1]["tensor_bytes"])

    def test_sizes_are_those_of_the_whole_step(self) -> None:
        for maker, words in (
                (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), ["momentum"]),
                (torch.optim.Adam, ["adam"]),
                (torch.optim.AdamW, ["adamw"]),
                (lambda p: torch.optim.Adam(p, amsgrad=True), ["amsgrad"]),
                (lambda p: torch.optim.AdamW(p, fused=True), ["adamw"]),
                (lambda p: torch.optim.AdamW(p, foreach=False),
                 ["adamw", "--optimizer-implementation", "for-loop"]),
                (torch.optim.RMSprop, ["rmsprop"])):
            with self.subTest(words=words):
                model = network(512)
                self.compare(maker(model.parameters()), model, torch.zeros(8, 512), "--optimizer",
                             *words)

    def test_of_recurrent_weights_too(self) -> None:
        model = nn.LSTM(256, 256)
        self.compare(torch.optim.AdamW(model.parameters()), model, torch.zeros(3, 4, 256),
                     "--optimizer", "adamw", batch_axis=1)

    def test_a_part_of_the_parameters(self) -> None:
        model = network(512)
        first = torch.optim.SGD(model[0].parameters(), lr=0.1)
        second = torch.optim.AdamW(model[2].parameters())

        def part(x: torch.Tensor) -> None:
            model.zero_grad()
            model(x).square().mean().backward()
            first.step()

        def whole(x: torch.Tensor) -> None:
            part(x)
            second.step()

        added = self.answer(recorded(part, 512), "--optimizer", "adamw")
        held = self.answer(recorded(whole, 512))
        self.assertEqual(added["phases"][-1], held["phases"][-1])
        self.assertEqual(added["settings"]["optimizer"], "sgd")


if __name__ == "__main__":
    unittest.main()
