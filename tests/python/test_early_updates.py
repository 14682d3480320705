"""Updates as gradients come: the same losses, parameters and state as with the update after backward, and
an error where a script would see a difference."""

from __future__ import annotations

import copy
import unittest
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import nn
from updates_case import UpdatesCase, every_implementation, loss_of, network, usual

import stowage
from stowage.errors import StowageError
from stowage.plans.early_updates import SpentGradient

HINT = '  optimizer.step() after each backward, or take "updates": "early" out of the plan'


class EarlyCase(UpdatesCase):
    PLAN: ClassVar[dict[str, Any]] = {"updates": "early"}

    def test_every_optimizer(self) -> None:
        for optimizer, options in every_implementation():
            with self.subTest(optimizer=optimizer.__name__, **options):
                self.same(usual, optimizer, with_gradients=False, **options)

    def test_muon(self) -> None:
        def matrices(model: nn.Module) -> list[nn.Parameter]:
            return [one for one in model.parameters() if one.dim() == 2]

        seen = []
        for planned in (False, True):
            torch.manual_seed(0)
            model = network()
            optimizer = torch.optim.Muon(matrices(model), lr=0.1)
            applied = stowage.apply(model, optimizer, self.path) if planned else None
            usual(model, optimizer)
            if applied is not None:
                applied.remove()
            seen.append([one.detach() for one in model.parameters()])
        for ours, theirs in zip(*seen):
            self.assertTrue(torch.equal(ours, theirs))

    def test_a_gradient_is_let_go_in_backward(self) -> None:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        before = model[0].weight.detach().clone()
        with stowage.apply(model, optimizer, self.path):
            loss_of(model, 0).backward()
            self.assertIsInstance(model[0].weight.grad, SpentGradient)
            self.assertEqual(model[0].weight.grad.shape, model[0].weight.shape)
            self.assertFalse(torch.equal(model[0].weight, before))
            updated = model[0].weight.detach().clone()
            optimizer.step()
            self.assertTrue(torch.equal(model[0].weight, updated))
            self.assertIsInstance(model[0].weight.grad, SpentGradient)
        self.assertIsNone(model[0].weight.grad)

    def test_gradients_that_are_zeroed(self) -> None:
        for of_model in (True, False):
            def loop(model: nn.Module, optimizer: torch.optim.Optimizer, of_model: bool = of_model
                     ) -> list[torch.Tensor]:
                for number in range(3):
                    (model if of_model else optimizer).zero_grad(set_to_none=False)
                    loss_of(model, number).backward()
                    optimizer.step()
                return []

            self.same(loop, with_gradients=False)

    def test_a_parameter_without_a_gradient_is_not_updated(self) -> None:
        for to_none in (True, False):
            def loop(model: nn.Module, optimizer: torch.optim.Optimizer, to_none: bool = to_none
                     ) -> list[torch.Tensor]:
                for number in range(4):
                    optimizer.zero_grad(set_to_none=to_none)
                    if number % 2:
                        model[0](torch.ones(2, 8)).square().mean().backward()
                    else:
                        loss_of(model, number).backward()
                    optimizer.step()
                return []

            self.same(loop, with_gradients=False, momentum=0.9, optimizer=torch.optim.SGD)

    def test_schedules_groups_and_hooks_of_steps(self) -> None:
        def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            optimizer.add_param_group({"params": [extra := nn.Parameter(torch.ones(3))], "lr": 0.5})
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
            steps = []
            optimizer.register_step_pre_hook(lambda *_: steps.append(1))
            for number in range(3):
                optimizer.zero_grad()
                (loss_of(model, number) + extra.sum()).backward()
                optimizer.step()
                schedule.step()
                optimizer.param_groups[0]["weight_decay"] = 0.1 * number
            self.assertEqual(len(steps), 3)
            return [extra.detach()]

        self.same(loop, with_gradients=False)

    def test_a_state_that_is_saved_and_loaded(self) -> None:
        def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            usual(model, optimizer)
            kept = copy.deepcopy(optimizer.state_dict())
            usual(model, optimizer)
            optimizer.load_state_dict(kept)
            usual(model, optimizer)
            # In the order of the first updates, which is backward's here.
            return [value for _, state in sorted(optimizer.state_dict()["state"].items())
                    for value in state.values()]

        self.same(loop, with_gradients=False)

    def test_a_closure(self) -> None:
        def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            def closure() -> torch.Tensor:
                optimizer.zero_grad()
                loss = loss_of(model, 1)
                loss.backward()
                return loss

            return [optimizer.step(closure).detach() for _ in range(3)]

        self.same(loop, with_gradients=False)

    def test_backward_under_autocast(self) -> None:
        def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
            for number in range(2):
                optimizer.zero_grad()
                with torch.autocast("cpu", torch.bfloat16):
                    loss_of(model, number).backward()
                optimizer.step()
            return []

        self.same(loop, with_gradients=False)

    def test_several_optimizers(self) -> None:
        seen = []
        for planned in (False, True):
            torch.manual_seed(0)
            model = network()
            both = [torch.optim.AdamW(model[0].parameters(), lr=0.1),
                    torch.optim.SGD(model[1:].parameters(), lr=0.1, momentum=0.9)]
            applied = stowage.apply(model, both, self.path) if planned else None
            for number in range(3):
                for one in both:
                    one.zero_grad()
                loss_of(model, number).backward()
                for one in both:
                    one.step()
            if applied is not None:
                applied.remove()
            seen.append([one.detach() for one in model.parameters()])
        for ours, theirs in zip(*seen):
            self.assertTrue(torch.equal(ours, theirs))


class Refusals(UpdatesCase):
    PLAN: ClassVar[dict[str, Any]] = {"updates": "early"}

    def stopped(self, script: Callable[[nn.Module, torch.optim.Optimizer], Any]) -> str:
        """The first line of what a script is stopped with, which takes a step before."""
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        with stowage.apply(model, optimizer, self.path), self.assertRaises(StowageError) as raised:
            usual(model, optimizer)
            script(model, optimizer)
        first, _, hint = str(raised.exception).partition("\n")
        self.assertIn('"updates": "early" out of the plan', hint)
        return first

    def test_what_looks_at_gradients(self) -> None:
        def clips(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
            optimizer.zero_grad()
            loss_of(model, 0).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)

        self.assertRegex(self.stopped(clips), r"^0\.weight was updated as its gradient came, and "
                                              r"aten\.linalg_vector_norm\.default uses the gradient$")

        def shows(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
            print(model[3].bias.grad.norm())

        self.assertEqual(self.stopped(shows), "3.bias was updated as its gradient came, and "
                                              "aten.linalg_vector_norm.default uses the gradient")

    def test_a_scaler_of_gradients(self) -> None:
        def scales(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
            scaler = torch.amp.GradScaler("cpu")
            optimizer.zero_grad()
            scaler.scale(loss_of(model, 0)).backward()
            scaler.step(optimizer)

        self.assertRegex(self.stopped(scales), "^0.weight was updated as its gradient came, and aten.* "
                                               "uses the gradient$")

    def test_gradients_that_add_up(self) -> None:
        def adds(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
            optimizer.zero_grad()
            for _ in range(2):
                loss_of(model, 0).backward()

        self.assertEqual(self.stopped(adds), "3.bias was updated as its gradient came, and backward adds "
                                             "to the gradient before zero_grad()")
        self.assertEqual(self.stopped(lambda model, _: loss_of(model, 0).backward()),
                         "3.bias was updated as its gradient came, and backward adds to the gradient "
                         "before zero_grad()")

    def test_a_step_that_is_left_out(self) -> None:
        def skips(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
            for _ in range(2):
                optimizer.zero_grad()
                loss_of(model, 0).backward()

        self.assertEqual(self.stopped(skips), "3.bias was updated as its gradient came, and backward ran "
                                              "again before optimizer.step()")

        def drops(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
            optimizer.zero_grad()
            loss_of(model, 0).backward()
            optimizer.zero_grad()
            optimizer.step()

        self.assertEqual(self.stopped(drops), "0.weight was updated as its gradient came, and the "
                                              "gradient was dropped before optimizer.step()")

    def test_a_gradient_that_is_taken_twice(self) -> None:
        self.assertEqual(self.stopped(lambda _, optimizer: optimizer.step()),
                         "0.weight was updated as its gradient came, and optimizer.step() takes the same "
                         "gradient again")

    def test_options_that_change_before_the_step(self) -> None:
        def changes(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
            optimizer.zero_grad()
            loss_of(model, 0).backward()
            optimizer.param_groups[0]["lr"] = 0.01
            optimizer.step()

        self.assertEqual(self.stopped(changes),
                         "the optimizer's lr changed between backward and optimizer.step(): updates came "
                         "as gradients did, with what it was before")

    def test_optimizers_that_take_all_parameters_together(self) -> None:
        model = network()
        with self.assertRaises(StowageError) as raised:
            stowage.apply(model, torch.optim.LBFGS(model.parameters()), self.path)
        self.assertEqual(str(raised.exception),
                         "LBFGS takes all parameters together: it is not run for one at a time\n"
                         "  make a plan without early updates")
        with self.assertRaises(StowageError) as raised:
            stowage.apply(model, None, self.path)
        self.assertEqual(str(raised.exception), f"{self.path} updates early, and apply got no optimizer\n"
                                                "  stowage.apply(model, optimizer, plan)")

    def test_sparse_gradients(self) -> None:
        model = nn.Embedding(4, 3, sparse=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with stowage.apply(model, optimizer, self.path), self.assertRaisesRegex(
                StowageError, r"a gradient of \(4, 3\) is sparse or of a subclass: an update as it comes "
                              "takes plain ones"):
            model(torch.tensor([1])).sum().backward()

    def test_replicas(self) -> None:
        model = nn.Linear(2, 2)
        wrapped = nn.parallel.DistributedDataParallel.__new__(nn.parallel.DistributedDataParallel)
        nn.Module.__init__(wrapped)
        wrapped.module = model
        with self.assertRaises(StowageError) as raised:
            stowage.apply(wrapped, torch.optim.SGD(model.parameters(), lr=0.1), self.path)
        self.assertEqual(str(raised.exception),
                         f"{self.path} takes gradients as they come, before DistributedDataParallel has "
                         "summed those of all processes\n"
                         "  make a plan with neither early updates nor an optimizer on the CPU")


class Watched(UpdatesCase):
    PLAN: ClassVar[dict[str, Any]] = {"updates": "early"}

    def test_what_backward_has_not_put_there_waits(self) -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        before = model[0].bias.detach().clone()
        with stowage.apply(model, optimizer, self.path) as applied:
            model[0].bias.grad = torch.ones(16)
            with self.assertWarns(stowage.PlanWarning) as warned:
                optimizer.step()
        self.assertTrue(torch.equal(model[0].bias, before - 0.1))
        self.assertEqual((applied.fell_back, applied.first_reason),
                         (1, "backward has not put the gradient of 0.bias there"))
        self.assertEqual(str(warned.warning),
                         f"stowage.apply updates parameters in optimizer.step() that {self.path} updates "
                         "as their gradients come: backward has not put the gradient of 0.bias there. "
                         "Values are as without the plan; memory is larger than planned")

    def test_a_step_is_held_to_the_plan(self) -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with stowage.apply(model, optimizer, self.path):
            with stowage.verify(self.path) as found:
                usual(model, optimizer)
            self.assertEqual([event.key for event in found.events if event.what == "update"],
                             3 * ["3.bias", "3.weight", "1.weight", "1.bias", "0.bias", "0.weight"])
            with self.assertRaisesRegex(StowageError, "no parameter was updated as its gradient came"):
                with stowage.verify(self.path):
                    model(torch.ones(1, 8, requires_grad=True))

    def test_the_device_has_one_gradient_at_a_time(self) -> None:
        def build() -> tuple[Any, Any, Callable[[], torch.Tensor]]:
            model = nn.Sequential(*(nn.Linear(256, 256, bias=False) for _ in range(8))).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

            def step() -> torch.Tensor:
                optimizer.zero_grad()
                loss = model(torch.zeros(4, 256, device="cuda")).mean()
                loss.backward()
                optimizer.step()
                return loss

            return model, optimizer, step

        size = 4 * 256 * 256
        found = stowage.rehearse(build, self.path)
        self.assertEqual((found.bytes_out, found.bytes_back, found.first_reason), (0, 0, ""))
        self.assertLess(found.peak_bytes, (8 + 1.5) * size)
        self.assertGreater(stowage.rehearse(build, None).peak_bytes, 2 * 8 * size)


if __name__ == "__main__":
    unittest.main()
