"""Tensors that are not as the plan has them stay on the device: values are the script's own."""

from __future__ import annotations

import unittest
import warnings
from typing import Any

import torch
from torch import nn

import stowage
from applied_case import AppliedCase, batches, small, usual_step


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


if __name__ == "__main__":
    unittest.main()
