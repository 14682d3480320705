"""Regions of other sizes than a block: rows of an nn.Sequential, regions in regions, and their inputs,
which leave for the host."""

from __future__ import annotations

import unittest
import weakref
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import stowage
from applied_case import AppliedCase, mean_square, plan_of, usual_step
from planned import planned_bytes, write_plan


class Block(nn.Module):
    """Dropout, running statistics, and a residual."""

    def __init__(self, width: int, drop: bool = True) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(width, 2 * width), nn.BatchNorm1d(2 * width)
        self.drop, self.last = nn.Dropout(0.5) if drop else nn.Identity(), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.last(self.drop(self.norm(self.first(x)).relu())) + x).relu()


class Net(nn.Module):
    """Two stages of blocks, as residual networks have them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(8, 8)
        self.layer1 = nn.Sequential(*(Block(8) for _ in range(4)))
        # What is saved outside of regions is the same on the CPU: dropout's mask is not.
        self.layer2 = nn.Sequential(nn.Linear(8, 4), nn.ReLU(inplace=True), Block(4, False),
                                    Block(4, False))
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer2(self.layer1(self.stem(x).tanh())))


def batches(count: int = 3, size: int = 6) -> list[torch.Tensor]:
    torch.manual_seed(2)
    return [torch.randn(size, 8) for _ in range(count)]


ROWS = ("layer1[0:2]", "layer1[2:4]", "layer2[0:3]")
NESTED = ("layer1", "layer1.0", "layer1.2", "layer2[0:3]", "layer2.2")


class Regions(AppliedCase):
    def plan(self, regions: tuple[str, ...], build: Any = Net, **options: Any) -> dict[str, Any]:
        return plan_of(build(), torch.zeros(6, 8), regions, **options)

    def runs_of(self, model: nn.Module, plan: dict[str, Any], path: str) -> int:
        """How often a module runs in a step under the plan."""
        runs: list[int] = []
        model.get_submodule(path).register_forward_hook(lambda *_: runs.append(1))
        with stowage.apply(model, None, write_plan(plan, self.path)):
            usual_step(model, batches()[0])
        return len(runs)

    def test_rows_of_a_sequence(self) -> None:
        plan = self.plan(ROWS)
        applied = self.assert_same_training(Net, plan, batches())
        self.assertEqual((applied.first_reason, applied.bytes_out), ("", 3 * planned_bytes(plan, 6)))
        self.assertEqual([self.runs_of(Net(), plan, f"layer1.{place}.norm") for place in range(4)],
                         [2, 2, 2, 2])
        self.assertEqual(self.runs_of(Net(), plan, "layer2.3.norm"), 1)

    def test_a_row_of_the_model_itself(self) -> None:
        def build() -> nn.Module:
            return nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Tanh(),
                                 nn.Linear(8, 2))

        plan = self.plan(("Sequential[1:4]",), build, with_inputs=True)
        self.assertIn("Sequential[1:4]#input0", [entry["start"] for entry in plan["offload"]])
        self.assertEqual(self.assert_same_training(build, plan, batches()).first_reason, "")

    def test_regions_in_regions(self) -> None:
        plan = self.plan(NESTED)
        applied = self.assert_same_training(Net, plan, batches())
        self.assertEqual(applied.first_reason, "")
        # The inside of an inner region runs in the second run of the outer one, and once more.
        self.assertEqual([self.runs_of(Net(), plan, f"layer1.{place}.norm") for place in range(4)],
                         [3, 2, 3, 2])
        self.assertEqual(self.runs_of(Net(), plan, "layer2.2.norm"), 2)  # the outer one stops before it

    def test_autocast_in_regions_in_regions(self) -> None:
        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                loss = mean_square(model(x))
            loss.backward()
            return loss.detach()

        for regions in (ROWS, NESTED):
            self.assert_same_training(Net, {**self.plan(regions), "offload": []}, batches(), step)

    def test_the_same_values_as_checkpoints_by_hand(self) -> None:
        def rows(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            h = checkpoint_sequential(model.layer1, 2, model.stem(x).tanh(), use_reentrant=False)
            return model.head(model.layer2(h))

        def nested(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            def stage(h: torch.Tensor) -> torch.Tensor:
                for block in model.layer1:
                    h = checkpoint(block, h, use_reentrant=False)
                return h

            h = checkpoint(stage, model.stem(x).tanh(), use_reentrant=False)
            return model.head(model.layer2(h))

        blocks = tuple(f"layer1.{place}" for place in range(4))
        for by_hand, regions in ((rows, ("layer1[0:2]", "layer1[2:4]")), (nested, ("layer1", *blocks))):
            def step(model: nn.Module, x: torch.Tensor, forward: Any = by_hand) -> torch.Tensor:
                loss = mean_square(forward(model, x))
                loss.backward()
                return loss.detach()

            hand, _ = self.train(Net, batches(), step, None)
            planned, _ = self.train(Net, batches(), usual_step, {**self.plan(regions), "offload": []})
            # By hand, running statistics move twice and more: gradients and losses are the same.
            for ours, theirs in zip(planned[:1 + len(list(Net().parameters()))], hand):
                self.assertTrue(torch.equal(ours, theirs))

    def test_inputs_of_regions_leave(self) -> None:
        blocks = tuple(f"layer1.{place}" for place in range(4))
        for regions in (blocks, ROWS, NESTED):
            with self.subTest(regions=regions):
                plan = self.plan(regions, with_inputs=True)
                starts = [entry["start"] for entry in plan["offload"]]
                self.assertIn(f"{regions[0]}#input0", starts)
                self.assertNotIn("layer1.0#input0", starts if regions is NESTED else ())
                applied = self.assert_same_training(Net, plan, batches())
                self.assertEqual((applied.first_reason, applied.bytes_out, applied.bytes_back),
                                 ("", 3 * planned_bytes(plan, 6), 3 * planned_bytes(plan, 6)))

    def test_an_input_is_let_go_when_its_region_has_run_and_comes_for_its_second_run(self) -> None:
        plan = self.plan(tuple(f"layer1.{place}" for place in range(4)), with_inputs=True)
        entry = next(one for one in plan["offload"] if one["start"] == "layer1.1#input0")
        self.assertEqual((entry["release"], entry["fetch"]), ("layer1.2#input0", "layer1.2#input0"))
        model = Net()
        with stowage.apply(model, None, write_plan(plan, self.path)), stowage.verify(
                self.path) as found:
            usual_step(model, batches()[0])
        self.assertEqual([event.what for event in found.events if event.key == "layer1.1#input0"],
                         ["pack", "start", "release", "fetch", "unpack"])
        self.assertEqual((found.bytes_out, found.bytes_back),
                         (planned_bytes(plan, 6), planned_bytes(plan, 6)))

    def test_an_input_of_another_shape_stays(self) -> None:
        plan = self.plan(("layer1",), with_inputs=True)
        for entry in plan["offload"]:
            for one in entry["saved"]:
                if one["key"] == "layer1#input0":
                    one["shape"] = ["batch", 9]
        applied = self.assert_same_training(Net, plan, batches())
        self.assertEqual(applied.first_reason, "layer1#input0 is float32 [6, 8] at batch 6, and the plan "
                         "has float32 [batch, 9]")

    def test_tensors_among_several_arguments(self) -> None:
        class Two(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.part = nn.Linear(8, 8)

            def forward(self, x: torch.Tensor, scale: float, y: torch.Tensor, z: torch.Tensor) -> Any:
                return self.part(x * y).tanh() * scale + z

        class Outer(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.before, self.two, self.after = nn.Linear(8, 8), Two(), nn.Linear(8, 2)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = self.before(x)
                y = x.tanh()
                return self.after(self.two(x, 0.5, y, y))

        plan = self.plan(("two",), Outer, with_inputs=True)
        keys = [[one["key"] for one in entry["saved"]] for entry in plan["offload"]]
        self.assertIn(["two#input0"], keys)
        self.assertIn(["Outer#0", "two#input1", "two#input2"], keys)
        self.assertEqual(self.assert_same_training(Outer, plan, batches()).first_reason, "")

    def test_what_an_inner_region_gets_by_keyword_is_made_again(self) -> None:
        living: list[weakref.ref[torch.Tensor]] = []

        class Inner(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.part = nn.Linear(8, 8)

            def forward(self, *, x: torch.Tensor, pair: tuple[torch.Tensor, ...], scale: float) -> Any:
                return self.part(x * pair[0]).tanh() * scale + pair[1]

        class Outer(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.inner = nn.Linear(8, 8), Inner()

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                h = self.first(x).tanh()
                sine = h.sin()
                living[:] = [weakref.ref(h), weakref.ref(sine)]
                return self.inner(x=h, pair=(sine, h.cos()), scale=0.5)

        def build() -> nn.Module:
            return nn.Sequential(nn.Linear(8, 8), Outer(), nn.Linear(8, 2))

        plan = {**self.plan(("1", "1.inner"), build), "offload": []}
        self.assert_same_training(build, plan, batches())
        model = build()
        with stowage.apply(model, None, write_plan(plan, self.path)):
            loss = model(batches()[0])
            self.assertEqual([one() for one in living], [None, None])
            loss.sum().backward()

    def test_rows_that_a_model_does_not_have_are_refused(self) -> None:
        plan = {**self.plan(ROWS), "offload": []}
        whole = f"{self.path} is for another model ('Net'): it checkpoints "
        ending = (", which this model does not have\n  record this model's step, and plan it")
        for names, message in (
                (("layer1[2:5]",), whole + "the children 'layer1[2:5]'" + ending),
                (("layer1.0[0:2]",), whole + "'layer1.0[0:2]', children in a row of an nn.Sequential" +
                 ending),
                (("layer3[0:2]",), whole + "a module 'layer3'" + ending),
                (("layer1[2:2]",), f"{self.path}: checkpoint[0].module: 'layer1[2:2]' has no children"),
                (("layer1[0:2]", "layer1[1:3]"),
                 f"{self.path}: checkpoint[1].module: 'layer1[1:3]' overlaps 'layer1[0:2]'"),
                (("layer1", "layer1"), f"{self.path}: checkpoint[1].module: 'layer1' stands twice")):
            with self.subTest(names=names), self.assertRaises(stowage.StowageError) as raised:
                stowage.apply(Net(), None, write_plan(
                    {**plan, "checkpoint": [{"module": name} for name in names]}, self.path))
            self.assertEqual(str(raised.exception), message)


if __name__ == "__main__":
    unittest.main()
