"""The optimizer on the CPU: the same losses, gradients and parameters, whatever the loop does."""

from __future__ import annotations

import copy
import unittest
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from updates_case import UpdatesCase, loss_of, network, usual

import stowage
from stowage.errors import StowageError
from stowage.plans.host_updates import HostGradient


class SameBits(UpdatesCase):
    def test_of_every_usual_optimizer(self) -> None:
        for optimizer, options in ((torch.optim.SGD, {"momentum": 0.9}), (torch.optim.AdamW, {}),
                                   (torch.optim.Adam, {"amsgrad": True}), (torch.optim.RMSprop, {}),
                                   (torch.optim.Adagrad, {}), (torch.optim.AdamW, {"foreach": True})):
            with self.subTest(optimizer=optimizer.__name__, **options):
                self.same(usual, optimizer, **options)

    def test_what_moves_is_counted(self) -> None:
        applied = self.same(usual)
        size = 4 * sum(one.numel() for one in network().parameters())
        self.assertEqual((applied.bytes_out, applied.bytes_back), (3 * size, 3 * size))

    def test_gradients_that_add_up(self) -> None:
        def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            for _ in range(2):
                optimizer.zero_grad()
                for part in range(3):
                    (loss_of(model, part) / 3).backward()
                optimizer.step()
            return []

        self.same(loop)

    def test_gradients_that_nobody_drops(self) -> None:
        def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            for number in range(3):
                loss_of(model, number).backward()
                optimizer.step()
            return []

        self.same(loop)

    def test_gradients_that_the_model_drops_or_zeroes(self) -> None:
        for dropped in (True, False):
            def loop(model: nn.Module, optimizer: torch.optim.Optimizer, dropped: bool = dropped
                     ) -> list[torch.Tensor]:
                for number in range(3):
                    model.zero_grad(set_to_none=dropped)
                    loss_of(model, number).backward()
                    optimizer.step()
                return []

            self.same(loop)

    def test_gradients_that_the_optimizer_zeroes(self) -> None:
        def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            for number in range(3):
                optimizer.zero_grad(set_to_none=False)
                loss_of(model, number).backward()
                optimizer.step()
            return []

        self.same(loop)

    def test_a_parameter_without_a_gradient_is_not_updated(self) -> None:
        def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            for _ in range(2):
                optimizer.zero_grad()
                model[0](torch.ones(2, 8)).square().mean().backward()
                optimizer.step()
            return []

        self.same(loop)

    def test_gradients_that_are_clipped_and_looked_at(self) -> None:
        def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            seen = []
            for number in range(3):
                optimizer.zero_grad()
                loss_of(model, number).backward()
                seen.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1))
                seen += [one.grad.clone() for one in model.parameters() if one.grad is not None]
                nn.utils.clip_grad_value_(model.parameters(), 0.01)
                optimizer.step()
            return seen

        with self.assertWarnsRegex(stowage.PlanWarning, "uses gradients, which lie on the host"):
            self.same(loop)

    def test_a_schedule_of_the_learning_rate(self) -> None:
        def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
            for number in range(3):
                optimizer.zero_grad()
                loss_of(model, number).backward()
                optimizer.step()
                schedule.step()
            return []

        self.same(loop)

    def test_a_state_that_is_saved_and_loaded(self) -> None:
        def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            usual(model, optimizer)
            kept = copy.deepcopy(optimizer.state_dict())
            seen = [value.clone() for state in kept["state"].values() for value in state.values()]
            usual(model, optimizer)
            optimizer.load_state_dict(kept)
            return [*seen, *usual(model, optimizer)]

        self.same(loop)

    def test_a_plan_that_comes_and_goes_between_steps(self) -> None:
        torch.manual_seed(0)
        plain = network()
        without = torch.optim.AdamW(plain.parameters(), lr=0.1)
        for _ in range(3):
            usual(plain, without)
        torch.manual_seed(0)
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        usual(model, optimizer)
        with stowage.apply(model, optimizer, self.path):
            usual(model, optimizer)
        self.assertIs(optimizer.param_groups[0]["params"][0], model[0].weight)
        usual(model, optimizer)
        for ours, theirs in zip(model.parameters(), plain.parameters()):
            self.assertTrue(torch.equal(ours, theirs))


class Gradients(UpdatesCase):
    def test_a_gradient_leaves_the_device(self) -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with stowage.apply(model, optimizer, self.path):
            loss_of(model, 0).backward()
            self.assertIsInstance(model[0].weight.grad, HostGradient)
            self.assertEqual(model[0].weight.grad.shape, model[0].weight.shape)
        self.assertIs(type(model[0].weight.grad), torch.Tensor)

    def test_an_optimizer_is_asked_for(self) -> None:
        with self.assertRaisesRegex(StowageError, "updates on the CPU, and apply got no optimizer"):
            stowage.apply(network(), None, self.path)

    def test_an_optimizer_of_others_is_refused(self) -> None:
        class Own(torch.optim.Optimizer):
            def step(self, closure: Any = None) -> None:
                del closure

        model = network()
        with self.assertRaisesRegex(StowageError, "Own is no optimizer of torch.optim"):
            stowage.apply(model, Own(model.parameters(), {}), self.path)
        self.assertIsNone(torch._C._autograd._top_saved_tensors_default_hooks(True))


class Pretended(UpdatesCase):
    def test_the_device_has_no_state_and_few_gradients(self) -> None:
        def build() -> tuple[Any, Any, Callable[[], torch.Tensor]]:
            model = nn.Sequential(*(nn.Linear(256, 256, bias=False) for _ in range(8))).cuda()
            optimizer = torch.optim.AdamW(model.parameters())

            def step() -> torch.Tensor:
                optimizer.zero_grad()
                loss = model(torch.zeros(4, 256, device="cuda")).mean()
                loss.backward()
                optimizer.step()
                return loss

            return model, optimizer, step

        size = 4 * 256 * 256
        found = stowage.rehearse(build, self.path)
        self.assertEqual((found.bytes_out, found.bytes_back), (8 * size, 8 * size))
        self.assertLess(found.peak_bytes, (8 + 3.5) * size)
        self.assertGreater(stowage.rehearse(build, None).peak_bytes, 4 * 8 * size)


if __name__ == "__main__":
    unittest.main()
