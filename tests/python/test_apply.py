"""A plan is carried out: losses, gradients, parameters and buffers are those without it, bit for bit,
and bytes moved are the plan's."""

from __future__ import annotations

import copy
import gc
import pickle
import unittest
import warnings
from typing import Any

import torch
from torch import nn

import stowage
from applied_case import AppliedCase, mean_square, plan_of, usual_step
from planned import planned_bytes, write_plan
from stowage.plans.stash import Stash


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4))


class Net(nn.Module):
    """Layers 8 -> 16 -> 4 around a function of the test's."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 4)

    def middle(self, h: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.middle(self.first(x)))


class Transposed(Net):
    def middle(self, h: torch.Tensor) -> torch.Tensor:
        h = h.tanh()
        return (h @ h.t()) @ h


class Sliced(Net):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(4, 4)

    def middle(self, h: torch.Tensor) -> torch.Tensor:
        part = h[:, 4:8]
        return part * part


def batches(count: int = 3, size: int = 4) -> list[torch.Tensor]:
    torch.manual_seed(2)
    return [torch.randn(size, 8) for _ in range(count)]


def living_stashes() -> int:
    return sum(type(one) is Stash for one in gc.get_objects())


class Steps(AppliedCase):
    def assert_no_fallback(self, applied: Any, plan: dict[str, Any], sizes: list[int]) -> None:
        self.assertEqual((applied.fell_back, applied.first_reason), (0, ""))
        moved = sum(planned_bytes(plan, size) for size in sizes)
        self.assertEqual((applied.bytes_out, applied.bytes_back), (moved, moved))
        self.assertGreater(moved, 0)

    def test_the_recorded_step(self) -> None:
        plan = plan_of(small(), torch.zeros(4, 8))
        applied = self.assert_same_training(small, plan, batches())
        self.assert_no_fallback(applied, plan, [4, 4, 4])

    def test_another_batch_and_a_shorter_last_one(self) -> None:
        plan = plan_of(small(), torch.zeros(4, 8))
        given = [*batches(2, 6), *batches(1, 3)]
        applied = self.assert_same_training(small, plan, given)
        self.assert_no_fallback(applied, plan, [6, 6, 3])

    def test_a_constant_storage_that_leaves_first_says_nothing_of_the_batch(self) -> None:
        def build() -> nn.Module:
            return nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4))

        plan = plan_of(build(), torch.zeros(4, 8))
        plan["offload"].sort(key=lambda entry: entry["bytes"][1])
        self.assertEqual(plan["offload"][0]["bytes"][1], 0)
        plan["offload"] = [entry for entry in plan["offload"] if not entry["saved"][0]["key"] == "1#0"]
        del plan["batch"]
        applied = self.assert_same_training(build, plan, batches())
        self.assert_no_fallback(applied, plan, [4, 4, 4])

    def test_a_longer_last_batch_stays_on_the_device(self) -> None:
        plan = plan_of(small(), torch.zeros(4, 8))
        applied = self.assert_same_training(small, plan, [*batches(2), *batches(1, 9)])
        self.assertEqual(applied.first_reason,
                         "2#0 has 576 bytes, and its host memory, of the first pass's batch, 256")
        self.assertEqual(applied.bytes_out, 2 * planned_bytes(plan, 4))

    def test_a_transposed_view_shares_the_copy(self) -> None:
        plan = plan_of(Transposed(), torch.zeros(4, 8))
        entry = max(plan["offload"], key=lambda entry: len(entry["saved"]))
        self.assertGreater(len(entry["saved"]), 2)
        applied = self.assert_same_training(Transposed, plan, batches())
        self.assert_no_fallback(applied, plan, [4, 4, 4])

    def test_a_view_of_a_tensor_that_is_gone_moves_the_whole_storage(self) -> None:
        plan = plan_of(Sliced(), torch.zeros(4, 8))
        self.assertIn([0, 64], [entry["bytes"] for entry in plan["offload"]])
        applied = self.assert_same_training(Sliced, plan, batches())
        self.assert_no_fallback(applied, plan, [4, 4, 4])

    def test_accumulation(self) -> None:
        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            return usual_step(model, x) + usual_step(model, x * 2)

        plan = plan_of(small(), torch.zeros(4, 8))
        applied = self.assert_same_training(small, plan, batches(), step)
        self.assert_no_fallback(applied, plan, [4] * 6)
        self.assertEqual(applied.events.passes, 6)

    def test_autocast(self) -> None:
        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                loss = mean_square(model(x))
            loss.backward()
            return loss.detach()

        def build() -> nn.Module:  # one weight twice: its cast is cached, and saved twice
            layer = nn.Linear(8, 8)
            return nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU())

        plan = plan_of(build(), torch.zeros(4, 8), precision="amp-bf16")
        applied = self.assert_same_training(build, plan, batches(), step)
        self.assertEqual(applied.first_reason, "")
        self.assertGreater(applied.bytes_out, 0)

    def test_a_frozen_base_with_adapters(self) -> None:
        class Adapted(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.base = nn.Linear(8, 16).requires_grad_(False)
                self.down, self.up = nn.Linear(8, 2, bias=False), nn.Linear(2, 16, bias=False)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return (self.base(x) + self.up(self.down(x))).relu().square()

        plan = plan_of(Adapted(), torch.zeros(4, 8))
        applied = self.assert_same_training(Adapted, plan, batches())
        self.assert_no_fallback(applied, plan, [4, 4, 4])

    def test_a_gradient_checkpoint_of_the_models_own(self) -> None:
        class Own(Net):
            def middle(self, h: torch.Tensor) -> torch.Tensor:
                found: torch.Tensor = torch.utils.checkpoint.checkpoint(
                    lambda t: t.exp().sin(), h.tanh(), use_reentrant=False)
                return found

        plan = plan_of(Own(), torch.zeros(4, 8))
        applied = self.assert_same_training(Own, plan, batches())
        self.assert_no_fallback(applied, plan, [4, 4, 4])


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


class Written(AppliedCase):
    class InPlace(Net):
        """`last` writes the tensor that `first`'s tanh saved."""

        writes = True

        def middle(self, h: torch.Tensor) -> torch.Tensor:
            h = h.tanh()
            saved = h.exp()
            if self.writes:
                with torch.no_grad():
                    h.add_(1)
            return saved

    def plan(self) -> dict[str, Any]:
        model = self.InPlace()
        model.writes = False
        return plan_of(model, torch.zeros(4, 8))

    def error(self, plan: dict[str, Any] | None) -> str:
        with self.assertRaises(RuntimeError) as raised:
            self.train(self.InPlace, batches(1), usual_step, plan)
        return str(raised.exception)

    def test_a_saved_tensor_that_is_written_is_pytorchs_error(self) -> None:
        expected = ("one of the variables needed for gradient computation has been modified by an "
                    "inplace operation: [torch.FloatTensor [4, 16]]")
        self.assertIn(expected, self.error(None))
        self.assertIn("is at version 1; expected version 0 instead", self.error(None))
        plan = self.plan()
        for entry in plan["offload"]:
            entry["release"] = None
        self.assertEqual(self.error(plan), expected + " is at version 1; expected version 0 instead.")
        plan["offload"] = []
        self.assertEqual(self.error(plan), expected + " is at version 1; expected version 0 instead.")

    def test_one_that_is_written_after_it_was_let_go_has_its_saved_value(self) -> None:
        written, applied = self.train(self.InPlace, batches(1), usual_step, self.plan())
        self.assertEqual(applied.fell_back, 0)

        class NotWritten(self.InPlace):  # type: ignore[misc, name-defined]
            writes = False

        expected, _ = self.train(NotWritten, batches(1), usual_step, None)
        self.assert_equal_bits(expected, written)


class Kept(AppliedCase):
    def reason(self, build: Any, plan: dict[str, Any], step: Any = usual_step) -> str:
        return str(self.assert_same_training(build, plan, batches(), step).first_reason)

    def entry(self, key: str, shape: list[Any], size: list[int],
              dtype: str = "float32") -> dict[str, Any]:
        return {"saved": [{"key": key, "dtype": dtype, "shape": shape}], "bytes": size, "start": key,
                "release": None, "fetch": None}

    def plan(self, *entries: dict[str, Any]) -> dict[str, Any]:
        return {"format": "stowage-pytorch-plan", "version": 1, "model": "small", "names": "recorded",
                "offload": list(entries)}

    def test_parameters(self) -> None:
        self.assertEqual(self.reason(small, self.plan(self.entry("2#1", [16, 16], [1024, 0]))),
                         "2#1 is a parameter or buffer of the model")

    def test_other_shapes_types_and_storages(self) -> None:
        for entry, reason in (
                (self.entry("1#0", ["batch", 17], [0, 68]),
                 "1#0 is float32 [4, 16], and the plan has float32 [batch, 17]"),
                (self.entry("1#0", ["batch", 16], [0, 64], "bfloat16"),
                 "1#0 is float32 [4, 16], and the plan has bfloat16 [batch, 16]"),
                (self.entry("1#0", ["batch", 16], [64, 64]),
                 "1#0 lies in a storage of 256 bytes, and the plan has 64*batch+64"),
                (self.entry("9#0", ["batch", 16], [0, 64]), None)):
            if reason is not None:
                with self.subTest(reason=reason):
                    self.assertEqual(self.reason(small, self.plan(entry)), reason)

    def test_tensors_of_one_entry_in_two_storages(self) -> None:
        entry = self.entry("1#0", ["batch", 16], [0, 64])
        entry["saved"].append({"key": "3#0", "dtype": "float32", "shape": ["batch", 16]})
        entry["start"] = "3#0"
        self.assertEqual(self.reason(small, self.plan(entry)), "3#0 lies in another storage than 1#0")

    def test_a_tensor_that_is_saved_after_its_storage_was_let_go(self) -> None:
        entry = self.entry("1#0", ["batch", 16], [0, 64])
        entry["saved"].append({"key": "2#0", "dtype": "float32", "shape": ["batch", 16]})
        entry["release"] = "2#0"
        self.assertEqual(self.reason(small, self.plan(entry)), "2#0 lies in another storage than 1#0")

    def test_another_batch_within_one_pass(self) -> None:
        plan = self.plan(self.entry("1#0", ["batch", 16], [0, 64]),
                         self.entry("3#0", ["2*batch", 16], [0, 128]))
        self.assertEqual(self.reason(small, plan),
                         "3#0 is float32 [4, 16] at batch 4, and the plan has float32 [2*batch, 16]")

    def test_subclasses_of_tensor(self) -> None:
        class Marked(torch.Tensor):
            pass

        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            return usual_step(model, x.as_subclass(Marked)).as_subclass(torch.Tensor)

        self.assertEqual(self.reason(small, self.plan(self.entry("0#0", ["batch", 8], [0, 32])), step),
                         "0#0 is a Marked, of more than bytes and sizes")

    def test_it_is_said_once(self) -> None:
        plan = self.plan(self.entry("2#1", [16, 16], [1024, 0]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _, applied = self.train(small, batches(), usual_step, plan)
        messages = [str(one.message) for one in caught if one.category is stowage.PlanWarning]
        self.assertEqual(messages, [
            f"stowage.apply keeps tensors on the device that {self.path} offloads: 2#1 is a parameter or "
            "buffer of the model. Values are as without the plan; memory is larger than planned"])
        self.assertEqual(applied.fell_back, 3)


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


class Addresses(unittest.TestCase):
    def test_a_storage_at_the_same_address_is_another(self) -> None:
        from stowage.plans.dimensions import Size
        from stowage.plans.plan_file import Offload

        entry = Offload((), Size(64), "0#0", None, None)
        for _ in range(100):
            tensor = torch.zeros(16)
            stash = Stash(entry, 0, tensor)
            self.assertTrue(stash.is_in(tensor.view(4, 4)))
            del tensor
            other = torch.zeros(16)
            if other.untyped_storage()._cdata == stash.address:
                self.assertFalse(stash.is_in(other))
                return
        self.skipTest("no address was used again")


if __name__ == "__main__":
    unittest.main()
