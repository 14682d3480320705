"""Training loops that are not one model, one graph and one backward, under a plan."""

from __future__ import annotations

import unittest
from typing import Any

import torch
from torch import nn

import stowage
from applied_case import AppliedCase, batches, living_stashes, mean_square, plan_of, small, usual_step
from planned import planned_bytes, write_plan


class OtherGraphs(AppliedCase):
    def setUp(self) -> None:
        super().setUp()
        self.plan = plan_of(small(), torch.zeros(4, 8))

    def test_a_graph_that_is_kept_for_a_second_backward(self) -> None:
        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            loss = mean_square(model(x))
            loss.backward(retain_graph=True)
            loss.backward()
            return loss.detach()

        applied = self.assert_same_training(small, self.plan, batches(), step)
        self.assertEqual(applied.bytes_back, 3 * planned_bytes(self.plan, 4))

    def test_a_gradient_of_a_gradient(self) -> None:
        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            x = x.clone().requires_grad_()
            loss = mean_square(model(x))
            gradient, = torch.autograd.grad(loss, x, create_graph=True)
            penalty = loss + (gradient.norm() - 1).square()
            penalty.backward()
            return penalty.detach()

        applied = self.assert_same_training(small, self.plan, batches(), step)
        self.assertGreater(applied.bytes_out, 0)

    def test_two_graphs_at_once(self) -> None:
        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            first, second = mean_square(model(x)), mean_square(model(x + 1))
            first.backward()
            third = mean_square(model(x + 2))  # begins a pass while the second's graph waits
            second.backward()
            third.backward()
            return third.detach()

        applied = self.assert_same_training(small, self.plan, batches(2), step)
        self.assertEqual(living_stashes(), 0)
        self.assertGreater(applied.bytes_out, 0)

    def test_evaluation_between_steps(self) -> None:
        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            model.eval()
            with torch.no_grad():
                model(x)
            given = x.clone().requires_grad_()
            saliency, = torch.autograd.grad(model(given).sum(), given)
            model.train()
            return usual_step(model, x + saliency)

        self.assert_same_training(small, self.plan, batches(), step)

    def test_hooks_of_the_users_own(self) -> None:
        def inside(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            h = model[1](model[0](x))  # type: ignore[index]
            with torch.autograd.graph.save_on_cpu():
                h = model[3](model[2](h))  # type: ignore[index]
            loss = mean_square(model[4](h))  # type: ignore[index]
            loss.backward()
            return loss.detach()

        def around(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            with torch.autograd.graph.save_on_cpu():
                return usual_step(model, x)

        applied = self.assert_same_training(small, self.plan, batches(), inside)
        self.assertGreater(applied.bytes_out, 0)
        applied = self.assert_same_training(small, self.plan, batches(), around)
        self.assertEqual(applied.bytes_out, 0)
        self.assertEqual(applied.first_reason, "a step saved none of the plan's tensors: does it run in "
                                               "another thread, or inside of other saved_tensors_hooks?")

    def test_a_branch_that_was_not_recorded(self) -> None:
        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            loss = mean_square(model[4](model[0](x)))  # type: ignore[index]
            loss.backward()
            return loss.detach()

        applied = self.assert_same_training(small, self.plan, batches(), step)
        self.assertEqual(applied.first_reason,
                         "2#0 was not saved: the step differs from the recorded one")

    def test_saved_tensors_that_are_looked_at(self) -> None:
        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            h = model[1](model[0](x))  # type: ignore[index]
            seen = h.grad_fn._saved_result  # type: ignore[union-attr]
            loss = mean_square(model[4](model[3](model[2](h))))  # type: ignore[index]
            loss.backward()
            return seen.detach()

        applied = self.assert_same_training(small, self.plan, batches(), step)
        self.assertEqual(applied.fell_back, 0)


class TwoModels(AppliedCase):
    def adversarial(self, applied_to: str) -> tuple[list[torch.Tensor], Any]:
        torch.manual_seed(0)
        maker, critic = small(), nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        makers, critics = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (maker, critic))

        def step(x: torch.Tensor) -> torch.Tensor:
            fake = maker(x)
            critics.zero_grad()
            (critic(x[:, :4]).mean() - critic(fake.detach()).mean()).backward()
            critics.step()
            makers.zero_grad()
            loss = critic(fake).mean()
            loss.backward()
            makers.step()
            return loss.detach()

        applied: list[Any] = []
        if applied_to == "both":
            from planned import Planner

            plan = Planner(stowage.record(step, torch.zeros(4, 8)).document).plan()
            models: Any = {"critic": critic, "maker": maker}
            applied = [stowage.apply(models, [makers, critics], write_plan(plan, self.path))]
        elif applied_to == "each":
            for model, width, optimizer in ((maker, 8, makers), (critic, 4, critics)):
                plan = plan_of(model, torch.zeros(4, width))
                applied.append(stowage.apply(model, optimizer, write_plan(plan, self.path)))
        seen = []
        try:
            for x in batches():
                seen += [step(x), *(p.grad.clone() for m in (maker, critic) for p in m.parameters())]
        finally:
            for one in applied:
                one.remove()
        return seen, applied

    def test_one_plan_for_both_and_one_for_each(self) -> None:
        unplanned, _ = self.adversarial("none")
        for way in ("both", "each"):
            with self.subTest(way=way):
                planned, applied = self.adversarial(way)
                self.assert_equal_bits(unplanned, planned)
                for one in applied:
                    self.assertGreater(one.bytes_out, 0)
                    self.assertEqual(one.bytes_back, one.bytes_out)


if __name__ == "__main__":
    unittest.main()
