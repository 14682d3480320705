"""A plan is carried out: losses, gradients, parameters and buffers are those without it, bit for bit,
and bytes moved are the plan's."""

from __future__ import annotations

import unittest
from typing import Any

import torch
from torch import nn

from applied_case import AppliedCase, Net, batches, mean_square, plan_of, small, usual_step
from planned import planned_bytes
from stowage.plans.stash import Stash


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
