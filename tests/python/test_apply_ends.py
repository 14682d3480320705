"""How a plan ends, what is left of it, and which models, optimizers and scripts are refused."""

from __future__ import annotations

import copy
import gc
import pickle
import unittest
from typing import Any

import torch
from torch import nn

import stowage
from applied_case import AppliedCase, batches, living_stashes, mean_square, plan_of, small, usual_step
from planned import planned_bytes, write_plan


class Ends(AppliedCase):
    def setUp(self) -> None:
        super().setUp()
        self.model = small()
        write_plan(plan_of(self.model, torch.zeros(4, 8)), self.path)

    def hooks(self) -> Any:
        return torch._C._autograd._top_saved_tensors_default_hooks(True)

    def test_nothing_is_left_after_remove(self) -> None:
        applied = stowage.apply(self.model, None, self.path)
        usual_step(self.model, batches()[0])
        self.assertEqual(living_stashes(), 0)
        applied.remove()
        applied.remove()
        self.assertIsNone(self.hooks())
        self.assertEqual(torch.nn.modules.module._global_forward_hooks, {})
        moved = applied.bytes_out
        usual_step(self.model, batches()[0])
        self.assertEqual(applied.bytes_out, moved)

    def test_a_with_block(self) -> None:
        with self.assertRaises(ZeroDivisionError):  # noqa: SIM117
            with stowage.apply(self.model, None, self.path):
                raise ZeroDivisionError
        self.assertIsNone(self.hooks())

    def test_removed_between_forward_and_backward(self) -> None:
        applied = stowage.apply(self.model, None, self.path)
        loss = mean_square(self.model(batches()[0]))
        applied.remove()
        loss.backward()
        ours = [p.grad for p in self.model.parameters()]
        self.model.zero_grad()
        usual_step(self.model, batches()[0])
        self.assert_equal_bits(ours, [p.grad for p in self.model.parameters()])

    def test_removed_below_hooks_of_the_users_own(self) -> None:
        applied = stowage.apply(self.model, None, self.path)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            top = self.hooks()
            applied.remove()
            self.assertEqual(self.hooks(), top)
        self.assertIsNone(self.hooks())

    def test_plans_between_hooks_of_others(self) -> None:
        def pair() -> Any:
            return torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)

        for first_ends_first in (True, False):
            outer = stowage.apply(self.model, None, self.path)
            with pair():
                between = self.hooks()
                inner = stowage.apply(small(), None, self.path)
                twin = stowage.apply(small(), None, self.path)
                ours = self.hooks()
                self.assertNotEqual(ours, between)
                inner.remove()
                self.assertEqual(self.hooks(), ours)
                (outer if first_ends_first else twin).remove()
                self.assertEqual(self.hooks(), ours if first_ends_first else between)
                (twin if first_ends_first else outer).remove()
                self.assertEqual(self.hooks(), between)
            self.assertIsNone(self.hooks())

    def test_a_forward_that_raises(self) -> None:
        applied = stowage.apply(self.model, None, self.path)

        def fail(*_: Any) -> None:
            raise ZeroDivisionError

        handle = self.model[4].register_forward_pre_hook(fail)  # type: ignore[index]
        for _ in range(2):
            with self.assertRaises(ZeroDivisionError):
                self.model(batches()[0])
        gc.collect()
        self.assertEqual(living_stashes(), 0)
        handle.remove()
        moved = applied.bytes_out
        usual_step(self.model, batches()[0])
        self.assertGreater(applied.bytes_out, moved)
        self.assertEqual(applied.fell_back, 0)
        applied.remove()

    def test_a_backward_that_raises(self) -> None:
        applied = stowage.apply(self.model, None, self.path)

        def fail(_: torch.Tensor) -> None:
            raise ZeroDivisionError

        handle = self.model[2].weight.register_hook(fail)  # type: ignore[index]
        with self.assertRaises(ZeroDivisionError):
            usual_step(self.model, batches()[0])
        handle.remove()
        before = applied.bytes_back
        usual_step(self.model, batches()[0])
        gc.collect()
        self.assertEqual(living_stashes(), 0)  # PyTorch itself lets the last node go at the next backward
        self.assertEqual(applied.bytes_back - before, planned_bytes(plan_of(small(), batches()[0]), 4))
        applied.remove()

    def test_a_graph_that_is_dropped_begins_a_new_pass(self) -> None:
        with stowage.apply(self.model, None, self.path) as applied:
            for _ in range(3):
                self.model(batches()[0])
            self.assertEqual((applied.events.passes, applied.fell_back), (3, 0))

    def test_the_model_is_as_it_was(self) -> None:
        plain = pickle.dumps(self.model)
        keys = list(self.model.state_dict())
        with stowage.apply(self.model, None, self.path):
            self.assertEqual(list(self.model.state_dict()), keys)
            self.assertEqual(pickle.dumps(self.model), plain)
            twin = copy.deepcopy(self.model)
        self.assertEqual(mean_square(twin(batches()[0])), mean_square(self.model(batches()[0])))


class Refusals(AppliedCase):
    def refusal(self, model: Any, optimizer: Any = None, **changes: Any) -> str:
        write_plan({**plan_of(small(), torch.zeros(4, 8)), **changes}, self.path)
        with self.assertRaises(stowage.StowageError) as raised:
            stowage.apply(model, optimizer, self.path)
        self.assertIsNone(torch._C._autograd._top_saved_tensors_default_hooks(True))
        return str(raised.exception).replace(self.path, "p.json")

    def test_another_model(self) -> None:
        hint = "\n  record this model's step, and plan it"
        self.assertEqual(self.refusal(nn.Linear(8, 4)),
                         "p.json is for another model ('Sequential'): its tensor '1#0' is of a module "
                         "'1', which this model does not have" + hint)
        self.assertEqual(self.refusal(small(), checkpoint=[{"module": "9"}]),
                         "p.json is for another model ('Sequential'): it checkpoints a module '9', which "
                         "this model does not have" + hint)

    def test_what_is_no_model_or_optimizer(self) -> None:
        self.assertEqual(self.refusal(3), "apply takes a model, or {name: model}, not a int")
        self.assertEqual(self.refusal({}), "apply takes a model, and got none")
        self.assertEqual(self.refusal(small(), 3), "apply takes optimizers of torch.optim, not a int\n"
                                                   "  give it the optimizer itself, or None")

    def test_a_script_that_is_recorded(self) -> None:
        model = small()

        class Script:
            session = batch = options = None

        from unittest import mock

        with mock.patch("stowage.active_script.active", Script()):
            self.assertEqual(self.refusal_of_apply(model),
                             "a step is recorded without a plan, and this script applies one\n"
                             "  let the script call stowage.apply only where a plan is given")

    def refusal_of_apply(self, model: nn.Module) -> str:
        with self.assertRaises(stowage.StowageError) as raised:
            stowage.apply(model, None, self.path)
        return str(raised.exception)


if __name__ == "__main__":
    unittest.main()
