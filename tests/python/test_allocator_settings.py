"""What a plan wants of PyTorch's allocator is said where the process lacks it."""

from __future__ import annotations

import unittest
import warnings
from unittest import mock

import torch
from torch import nn

import stowage
from applied_case import AppliedCase, plan_of, small
from planned import write_plan
from stowage.plans import allocator

EXPANDS = "expandable_segments:True"


class Settings(unittest.TestCase):
    def test_which_settings_lack(self) -> None:
        self.assertEqual(allocator.lacking(EXPANDS, ""), [EXPANDS.lower()])
        self.assertEqual(allocator.lacking(EXPANDS, "expandable_segments:False"), [EXPANDS.lower()])
        self.assertEqual(allocator.lacking(EXPANDS, "max_split_size_mb:64, Expandable_Segments:true"), [])
        self.assertEqual(allocator.lacking("", EXPANDS), [])

    def test_those_of_the_process_are_pytorchs_own(self) -> None:
        with mock.patch.object(torch._C, "_accelerator_getAllocatorSettings", return_value=EXPANDS):
            self.assertEqual(allocator.settings_of_process(), EXPANDS)

    def test_an_older_pytorch_has_them_in_the_environment(self) -> None:
        asked = torch._C._accelerator_getAllocatorSettings
        del torch._C._accelerator_getAllocatorSettings
        try:
            with mock.patch.dict("os.environ", {"PYTORCH_CUDA_ALLOC_CONF": EXPANDS}):
                self.assertEqual(allocator.settings_of_process(), EXPANDS)
                self.assertEqual(allocator.variable_of_release(), "PYTORCH_CUDA_ALLOC_CONF")
        finally:
            torch._C._accelerator_getAllocatorSettings = asked


class Warned(AppliedCase):
    def warnings_of(self, device: str, present: str, plan: dict[str, object]) -> list[str]:
        model: nn.Module = small()
        with (warnings.catch_warnings(record=True) as caught,
              mock.patch("stowage.plans.applied.Applied.device_type", return_value=device),
              mock.patch("stowage.plans.allocator.settings_of_process", return_value=present)):
            warnings.simplefilter("always")
            stowage.apply(model, None, write_plan(plan, self.path)).remove()
        return [str(one.message) for one in caught if one.category is stowage.PlanWarning]

    def test_a_plan_for_expandable_segments(self) -> None:
        plan = {**plan_of(small(), torch.zeros(4, 8)), "allocator": EXPANDS}
        self.assertEqual(stowage.read_plan(write_plan(plan, self.path)).allocator, EXPANDS)
        self.assertEqual(self.warnings_of("cuda", "", plan), [
            f"the plan is made for PYTORCH_ALLOC_CONF={EXPANDS}, and this process runs without it: "
            "fragments of its memory may make it take more than planned. Set it in the environment, "
            "before the script starts"])
        self.assertEqual(self.warnings_of("cuda", EXPANDS, plan), [])
        self.assertEqual(self.warnings_of("cpu", "", plan), [])

    def test_a_plan_that_wants_nothing(self) -> None:
        self.assertEqual(self.warnings_of("cuda", "", plan_of(small(), torch.zeros(4, 8))), [])

    def test_what_is_no_text_is_refused(self) -> None:
        write_plan({**plan_of(small(), torch.zeros(4, 8)), "allocator": 3}, self.path)
        with self.assertRaises(stowage.StowageError) as raised:
            stowage.read_plan(self.path)
        self.assertEqual(str(raised.exception), f"{self.path}: allocator: is no text")


if __name__ == "__main__":
    unittest.main()
