"""Modules that the plan checkpoints: values, random numbers and buffers are those of a step without
it."""

from __future__ import annotations

import copy
import pickle
import unittest
from typing import Any

import torch
from torch import nn

import stowage
from applied_case import AppliedCase, mean_square, plan_of, usual_step
from planned import planned_bytes, write_plan


class Block(nn.Module):
    """Dropout, running statistics, and a keyword argument."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(8, 16), nn.BatchNorm1d(16)
        self.drop, self.last = nn.Dropout(0.5), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
        return self.last(self.drop(self.norm(self.first(x)).relu())) * scale


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.block, self.after = nn.Linear(8, 8), Block(), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.before(x).relu()
        return self.after(self.block(h, scale=h.mean()) + h)


def batches(count: int = 3, size: int = 6) -> list[torch.Tensor]:
    torch.manual_seed(2)
    return [torch.randn(size, 8) for _ in range(count)]


class Checkpoints(AppliedCase):
    def plan(self, build: Any = Net, checkpoint: tuple[str, ...] = ("block",)) -> dict[str, Any]:
        return plan_of(build(), torch.zeros(6, 8), checkpoint)

    def test_dropout_statistics_and_keywords(self) -> None:
        plan = self.plan()
        self.assertFalse(any(one["key"].startswith("block")
                             for entry in plan["offload"] for one in entry["saved"]))
        applied = self.assert_same_training(Net, plan, batches())
        self.assertEqual((applied.first_reason, applied.bytes_out), ("", 3 * planned_bytes(plan, 6)))

    def test_the_inside_runs_twice(self) -> None:
        model, runs = Net(), []
        model.block.first.register_forward_hook(lambda *_: runs.append(1))
        with stowage.apply(model, None, write_plan(self.plan(), self.path)):
            usual_step(model, batches()[0])
        self.assertEqual(len(runs), 2)
        self.assertEqual(model.block.norm.num_batches_tracked, 1)

    def test_inputs_leave_with_their_storage(self) -> None:
        """`before`'s relu is the block's input: it is offloaded, and kept by nothing on the device."""
        plan = self.plan()
        self.assertIn("Net#0", [entry["saved"][0]["key"] for entry in plan["offload"]])
        model = Net()
        with stowage.apply(model, None, write_plan(plan, self.path)) as applied:
            events: list[Any] = []
            applied.events.watchers.append(events)
            usual_step(model, batches()[0])
        self.assertEqual([event.what for event in events if event.key == "Net#0" and
                          event.what != "unpack"], ["pack", "start", "release", "fetch"])

    def test_nested_modules(self) -> None:
        self.assert_same_training(Net, self.plan(checkpoint=("block", "block.norm", "after")), batches())

    def test_the_whole_model(self) -> None:
        self.assert_same_training(Net, self.plan(checkpoint=("Net",)), batches())

    def test_buffers_that_the_result_depends_on(self) -> None:
        def build() -> nn.Module:
            return nn.Sequential(
                nn.Linear(8, 8), nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)),
                nn.Linear(8, 4))

        plan = plan_of(build(), torch.zeros(6, 8), ("1",), least=1 << 30)
        self.assertEqual(plan["offload"], [])
        self.assert_same_training(build, plan, batches())

    def test_autocast(self) -> None:
        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                loss = mean_square(model(x))
            loss.backward()
            return loss.detach()

        plan = {**self.plan(), "offload": []}
        self.assert_same_training(Net, plan, batches(), step)

    def test_a_kept_graph_runs_it_once_more(self) -> None:
        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            loss = mean_square(model(x))
            loss.backward(retain_graph=True)
            loss.backward()
            return loss.detach()

        self.assert_same_training(Net, self.plan(), batches(), step)

    def test_evaluation_runs_it_once(self) -> None:
        model, runs = Net(), []
        model.block.first.register_forward_hook(lambda *_: runs.append(1))
        with stowage.apply(model, None, write_plan(self.plan(), self.path)):
            with torch.no_grad():
                model(batches()[0])
        self.assertEqual(len(runs), 1)

    def test_lists_that_grow_after_the_call(self) -> None:
        class Layer(nn.Module):
            def __init__(self, inputs: int) -> None:
                super().__init__()
                self.norm, self.linear = nn.BatchNorm1d(inputs), nn.Linear(inputs, 4)

            def forward(self, parts: list[torch.Tensor], named: dict[str, Any]) -> torch.Tensor:
                return self.linear(self.norm(torch.cat([*parts, *named["more"]], 1))).relu()

        class Dense(nn.Module):
            """Each layer reads all results before it, as DenseNet's do."""

            def __init__(self) -> None:
                super().__init__()
                self.layers = nn.ModuleList(Layer(16 + 8 * index) for index in range(3))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                parts, named = [x], {"more": [x.sin()]}
                for layer in self.layers:
                    parts.append(layer(parts, named))
                    named["more"].append(parts[-1].tanh())
                return torch.cat(parts, 1)

        plan = self.plan(Dense, ("layers.0", "layers.1", "layers.2"))
        self.assertEqual(len(plan["checkpoint"]), 3)
        self.assert_same_training(Dense, plan, batches())

    def test_an_exception_inside(self) -> None:
        model = Net()

        def fail(*_: Any) -> None:
            raise ZeroDivisionError

        with stowage.apply(model, None, write_plan(self.plan(), self.path)) as applied:
            handle = model.block.last.register_forward_pre_hook(fail)
            with self.assertRaises(ZeroDivisionError):
                model(batches()[0])
            handle.remove()
            usual_step(model, batches()[0])
            self.assertEqual((applied.fell_back, applied.offloading.in_region), (0, 0))

    def test_the_model_and_its_copies_are_as_without_a_plan(self) -> None:
        model = Net()
        plain, own = pickle.dumps(model), Block.forward
        with stowage.apply(model, None, write_plan(self.plan(), self.path)):
            self.assertIsNot(Block.forward, own)
            self.assertEqual(pickle.dumps(model), plain)
            twin, runs = copy.deepcopy(model), []
            twin.block.first.register_forward_hook(lambda *_: runs.append(1))
            usual_step(twin, batches()[0])
            self.assertEqual(len(runs), 1)
        self.assertIs(Block.forward, own)

    def test_subclasses_that_call_their_parents_forward(self) -> None:
        class Child(Block):
            def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
                return super().forward(x, scale=scale).tanh()

        def build() -> nn.Module:
            model = Net()
            model.block = Child()
            model.other = Block()  # type: ignore[assignment]
            return model

        plan = {**self.plan(build, ("block", "other")), "offload": []}
        self.assert_same_training(build, plan, batches())

    def test_modules_that_cannot_be_run_again_are_refused(self) -> None:
        scripted, wrapped = Net(), Net()
        scripted.after = torch.jit.script(scripted.after)
        wrapped.after.forward = wrapped.after.forward  # type: ignore[method-assign]
        plan = write_plan({**self.plan(), "offload": [], "checkpoint": [{"module": "after"}]}, self.path)
        for model, message in (
                (scripted, "after is compiled by torch.jit, and cannot be checkpointed\n  make a plan "
                           "without checkpoints, or leave torch.jit out"),
                (wrapped, "after has a forward of its own, beside its class's: it is not checkpointed\n"
                          "  apply the plan before other libraries wrap the model")):
            with self.assertRaises(stowage.StowageError) as raised:
                stowage.apply(model, None, plan)
            self.assertEqual(str(raised.exception), message)


if __name__ == "__main__":
    unittest.main()
