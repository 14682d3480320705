"""stowage.verify: what happened in a step, against the plan; the first difference is named."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import stowage
from applied_case import AppliedCase, mean_square, plan_of, usual_step
from planned import planned_bytes, write_plan


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4))


class Verification(AppliedCase):
    def setUp(self) -> None:
        super().setUp()
        self.model, self.x = small(), torch.randn(4, 8)
        self.plan = plan_of(self.model, self.x)

    def difference(self, change: Callable[[dict[str, Any]], Any],
                   step: Callable[[], Any] | None = None) -> str:
        change(self.plan)
        plan = stowage.read_plan(write_plan(self.plan, self.path))
        with stowage.apply(self.model, None, plan), self.assertRaises(stowage.StowageError) as raised:
            with stowage.verify(plan) as found:
                (step or (lambda: usual_step(self.model, self.x)))()
        words = f"the step differs from {self.path}: "
        self.assertEqual(str(raised.exception), words + found.difference)
        return found.difference

    def test_a_step_that_is_as_planned(self) -> None:
        plan = stowage.read_plan(write_plan(self.plan, self.path))
        with stowage.apply(self.model, None, plan) as applied:
            for _ in range(2):
                with stowage.verify(self.path) as found:
                    usual_step(self.model, self.x)
                    usual_step(self.model, self.x)
                self.assertEqual(found.difference, "")
                moved = 2 * planned_bytes(self.plan, 4)
                self.assertEqual((found.bytes_out, found.bytes_back, found.passes), (moved, moved, 2))
                self.assertEqual(found.saved, self.plan["passes"]["saved"])
                self.assertIsNone(found.peak_allocated)
                self.assertGreater(found.seconds, 0)
            self.assertEqual(applied.events.watchers, [])

    def test_other_calls(self) -> None:
        self.assertEqual(self.difference(lambda p: p["passes"].update(saved=99)),
                         f"it saves {len(self.keys())} tensors, and the plan has 99")
        self.assertEqual(self.difference(lambda p: p["passes"].update(first=["9#0"])),
                         "it saves 0#0 where the plan has 9#0")

    def keys(self) -> list[str]:
        return ["0#0", "1#0", "2#0", "2#1", "3#0", "4#0", "4#1", "#0"]

    def test_tensors_that_fall_back(self) -> None:
        self.assertEqual(self.difference(lambda p: p["offload"][0].update(bytes=[0, 60])),
                         "2 tensors fell back: 1#0 lies in a storage of 256 bytes, and the plan has "
                         "60*batch")

    def test_a_step_that_saves_nothing(self) -> None:
        self.assertEqual(self.difference(lambda p: None, lambda: None), "it saves no tensor for backward")

    def test_a_step_without_a_backward(self) -> None:
        kept: list[Any] = []
        self.assertEqual(self.difference(lambda p: None,
                                         lambda: kept.append(mean_square(self.model(self.x)))),
                         "2#0 left and did not come back")

    def test_anchors_that_do_not_come(self) -> None:
        def never_saved(plan: dict[str, Any]) -> None:
            plan["offload"][0].update(release="4#7")

        def never_needed(plan: dict[str, Any]) -> None:
            plan["offload"][0].update(release=None, fetch="4#7")

        self.assertEqual(self.difference(never_saved), "4#7, at which 2#0 is let go, was not saved")
        self.assertEqual(self.difference(never_needed),
                         "4#7, at which 2#0 is fetched, was not needed in backward")

    def test_a_fetch_that_comes_after_its_own_use(self) -> None:
        self.assertEqual(self.difference(lambda p: p["offload"][0].update(fetch="0#0")),
                         "2#0 was fetched before 0#0 was needed")

    def test_memory_above_the_planned_peak(self) -> None:
        from stowage.plans.verification import Verification as Found

        found = Found(stowage.read_plan(write_plan({**self.plan, "totals": {
            "peak_allocated_bytes": 100, "peak_reserved_bytes": 200}}, self.path)))
        found.peak_allocated, found.peak_reserved = 100, 201
        self.assertEqual(found.of_memory(),
                         "its peak of reserved memory is 201 bytes, and the plan's 200")

    def test_a_plan_that_is_not_applied(self) -> None:
        with self.assertRaises(stowage.StowageError) as raised:
            with stowage.verify(write_plan(self.plan, self.path)):
                self.fail("it must not begin")
        self.assertEqual(str(raised.exception), f"{self.path} is not applied in this thread\n"
                                                "  stowage.apply(model, optimizer, plan) comes first")

    def test_an_exception_of_the_block_passes(self) -> None:
        write_plan(self.plan, self.path)
        with stowage.apply(self.model, None, self.path) as applied:
            with self.assertRaises(ZeroDivisionError), stowage.verify(self.path):
                raise ZeroDivisionError
            self.assertEqual(applied.events.watchers, [])


if __name__ == "__main__":
    unittest.main()
