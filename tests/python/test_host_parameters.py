"""The optimizer of some parameters on the CPU, and the CPU's updates beside backward."""

from __future__ import annotations

import functools
import re
import tempfile
import unittest
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import nn
from updates_case import UpdatesCase, every_implementation, loss_of, network, plan_file, usual

import stowage
from stowage.errors import StowageError
from stowage.plans.host_updates import HostGradient

CHOSEN = ["3.weight", "1.bias"]


def accumulate(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    for _ in range(2):
        optimizer.zero_grad()
        for part in range(3):
            (loss_of(model, part) / 3).backward()
        optimizer.step()
    return []


def clip(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    seen = []
    for number in range(3):
        optimizer.zero_grad()
        loss_of(model, number).backward()
        seen.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1))
        optimizer.step()
    return seen


class Chosen(UpdatesCase):
    PLAN: ClassVar[dict[str, Any]] = {
        "optimizer_on_cpu": {"gradients_in_flight": 2, "parameters": CHOSEN}}

    def test_every_optimizer(self) -> None:
        for optimizer, options in every_implementation():
            with self.subTest(optimizer=optimizer.__name__, **options):
                self.same(usual, optimizer, **options)

    def test_loops(self) -> None:
        for loop in (accumulate, clip):
            self.same(loop)

    def test_the_chosen_ones_move(self) -> None:
        applied = self.same(usual)
        size = 4 * (16 * 4 + 16)
        self.assertEqual((applied.bytes_out, applied.bytes_back), (3 * size, 3 * size))
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        with stowage.apply(model, optimizer, self.path):
            held = optimizer.param_groups[0]["params"]
            self.assertEqual([one is other for one, other in zip(held, model.parameters())],
                             [True, True, True, False, False, True])
            with stowage.verify(self.path):
                loss_of(model, 0).backward()
                self.assertIsInstance(model[3].weight.grad, HostGradient)
                self.assertIs(type(model[3].bias.grad), torch.Tensor)
                optimizer.step()
            with self.assertRaises(StowageError) as raised, stowage.verify(self.path):
                model(torch.ones(2, 8)).detach()
                loss_of(model[:3], 0).backward()
        self.assertEqual(str(raised.exception), f"the step differs from {self.path}: the gradient of "
                                                "3.weight did not go to the host")
        self.assertIs(optimizer.param_groups[0]["params"][4], model[3].weight)

    def test_parameters_that_are_not_there(self) -> None:
        model = network()
        for names, words in ((["4.weight"], "this model does not have"),
                             (["0.weight"], "none of the optimizers updates")):
            path = plan_file(self.enterContext(tempfile.TemporaryDirectory()),
                             optimizer_on_cpu={"gradients_in_flight": 2, "parameters": names})
            with self.assertRaises(StowageError) as raised:
                stowage.apply(model, torch.optim.SGD(model[3].parameters(), lr=0.1), path)
            self.assertEqual(str(raised.exception), f"{path} is for another model ('net'): it updates "
                                                    f"'{names[0]}' on the CPU, which {words}\n"
                                                    "  record this model's step, and plan it")

    def test_two_devices(self) -> None:
        """The device's own parameters keep their kernels: foreach, or fused."""
        for optimizer, options in every_implementation():
            if optimizer is torch.optim.NAdam:
                continue  # divides by a value that the pretended device does not have, with any plan
            with self.subTest(optimizer=optimizer.__name__, **options):
                build = functools.partial(self.pretended, optimizer, **options)
                found = stowage.rehearse(build, self.path)
                size = 4 * (256 * 256 + 256)
                self.assertEqual((found.bytes_out, found.bytes_back), (size, size))

    def pretended(self, optimizer: Any, **options: Any) -> tuple[Any, Any, Callable[[], torch.Tensor]]:
        model = nn.Sequential(*(nn.Linear(256, 256) for _ in range(4))).cuda()
        steps = optimizer(model.parameters(), **{"lr": 0.1, **options})

        def step() -> torch.Tensor:
            steps.zero_grad()
            loss = model(torch.zeros(4, 256, device="cuda")).mean()
            loss.backward()
            steps.step()
            return loss

        return model, steps, step


class Early(UpdatesCase):
    PLAN: ClassVar[dict[str, Any]] = {"optimizer_on_cpu": {"gradients_in_flight": 2}, "updates": "early"}

    def test_every_optimizer(self) -> None:
        for optimizer, options in every_implementation():
            with self.subTest(optimizer=optimizer.__name__, **options):
                self.same(usual, optimizer, with_gradients=False, **options)

    def test_updates_begin_with_the_second_step(self) -> None:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        with stowage.apply(model, optimizer, self.path) as applied:
            with self.assertRaises(StowageError) as raised, stowage.verify(self.path):
                loss_of(model, 0).backward()
                optimizer.step()
            self.assertEqual(str(raised.exception),
                             f"the step differs from {self.path}: 0.bias was updated in "
                             "optimizer.step(), and not as its gradient came: early updates begin with "
                             "the second step")
            before = [one.detach().clone() for one in model.parameters()]
            with stowage.verify(self.path) as found:
                optimizer.zero_grad()
                loss_of(model, 1).backward()
                for one, other in zip(model.parameters(), before):
                    self.assertTrue(torch.equal(one, other))  # until optimizer.step()
                optimizer.step()
            self.assertEqual([event.what for event in found.events
                              if event.what in ("update", "gradient")], 6 * ["gradient", "update"])
            self.assertEqual(applied.first_reason, "")

    def test_gradients_may_be_looked_at_and_not_changed(self) -> None:
        def looks(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            seen = usual(model, optimizer)
            return [*seen, *(one.grad.norm() for one in model.parameters() if one.grad is not None)]

        with self.assertWarnsRegex(stowage.PlanWarning, "uses gradients, which lie on the host"):
            self.same(looks)
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        with stowage.apply(model, optimizer, self.path), self.assertRaisesRegex(
                StowageError, "^0.weight was updated as its gradient came, and aten.mul_.Tensor changes "
                              "the gradient\n"), self.assertWarns(stowage.PlanWarning):
            usual(model, optimizer)
            clip(model, optimizer)

    def test_scripts_that_clip_or_add_up_wait_for_the_step(self) -> None:
        for loop, words in ((accumulate, "gradients add up: the CPU updates in optimizer.step(), and not "
                                         "as gradients come"),
                            (clip, "uses gradients, which lie on the host: they come back for it")):
            with self.assertWarnsRegex(stowage.PlanWarning, re.escape(words)):
                self.same(loop)

    def test_a_step_that_is_left_out(self) -> None:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        with stowage.apply(model, optimizer, self.path):
            usual(model, optimizer)
            optimizer.zero_grad()
            loss_of(model, 0).backward()
            optimizer.zero_grad()
            with self.assertRaisesRegex(StowageError, "^0.weight was updated as its gradient came, and "
                                                      "the gradient was dropped before optimizer.step"):
                optimizer.step()
            with self.assertRaisesRegex(StowageError, "^3.bias was updated as its gradient came, and "
                                                      "backward ran again before optimizer.step"):
                loss_of(model, 0).backward()

    def test_an_exception_of_an_update_comes_in_the_step(self) -> None:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        with stowage.apply(model, optimizer, self.path):
            usual(model, optimizer)
            optimizer.param_groups[0]["betas"] = None
            loss_of(model, 0).backward()
            with self.assertRaises(TypeError):
                optimizer.step()

    def test_a_closure(self) -> None:
        def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            def closure() -> torch.Tensor:
                optimizer.zero_grad()
                loss = loss_of(model, 1)
                loss.backward()
                return loss

            return [optimizer.step(closure).detach() for _ in range(3)]

        self.same(loop)

    def test_a_state_that_is_saved_between_backward_and_step(self) -> None:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        with stowage.apply(model, optimizer, self.path):
            usual(model, optimizer)
            optimizer.zero_grad()
            loss_of(model, 0).backward()
            counts = {int(state["step"]) for state in optimizer.state_dict()["state"].values()}
            self.assertEqual(counts, {4})  # none is half done
            optimizer.step()

    def test_a_plan_that_goes_between_backward_and_step(self) -> None:
        ends = []
        for planned in (False, True):
            torch.manual_seed(0)
            model = network()
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
            applied = stowage.apply(model, optimizer, self.path) if planned else None
            usual(model, optimizer)
            optimizer.zero_grad()
            loss_of(model, 5).backward()
            if applied is not None:
                applied.remove()
                self.assertIsNone(model[0].weight.grad)
            optimizer.step()
            usual(model, optimizer)
            ends.append([one.detach() for one in model.parameters()])
        for ours, theirs in zip(*ends):
            self.assertTrue(torch.equal(ours, theirs))


class ChosenEarly(UpdatesCase):
    PLAN: ClassVar[dict[str, Any]] = {
        "optimizer_on_cpu": {"gradients_in_flight": 2, "parameters": CHOSEN}, "updates": "early"}

    def test_every_optimizer(self) -> None:
        for optimizer, options in every_implementation():
            with self.subTest(optimizer=optimizer.__name__, **options):
                self.same(usual, optimizer, with_gradients=False, **options)

    def test_both_are_watched(self) -> None:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        with stowage.apply(model, optimizer, self.path):
            usual(model, optimizer)
            with stowage.verify(self.path) as found:
                usual(model, optimizer)
        updates = [event.key for event in found.events if event.what == "update"]
        self.assertEqual(sorted(updates), sorted(3 * [name for name, _ in model.named_parameters()]))


if __name__ == "__main__":
    unittest.main()
