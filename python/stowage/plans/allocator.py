"""The settings of PyTorch's caching allocator that a plan was made with, and those of this process."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

import torch

from stowage.errors import PlanWarning

if TYPE_CHECKING:
    from stowage.plans.plan_file import Plan

# c10/core/AllocatorConfig.h reads the first that is set; before PyTorch 2.9 there was the second alone.
VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def settings_of_process() -> str:
    """As PyTorch's variables say them: "expandable_segments:True"; "" where nothing is set."""
    asked = getattr(torch._C, "_accelerator_getAllocatorSettings", None)  # from PyTorch 2.9 on
    if asked is not None:
        return str(asked())
    return next((os.environ[name] for name in VARIABLES if name in os.environ), "")


def variable_of_release() -> str:
    return VARIABLES[0 if hasattr(torch._C, "_accelerator_getAllocatorSettings") else 1]


def lacking(wanted: str, present: str) -> list[str]:
    """The settings of `wanted` that `present` does not have: "name:value" each."""
    def pairs(settings: str) -> list[str]:
        return [part.strip().lower() for part in settings.split(",") if part.strip()]

    return [pair for pair in pairs(wanted) if pair not in pairs(present)]


def warn_of_settings(plan: Plan, device: str) -> None:
    """A PlanWarning where the plan's memory was simulated with settings that this process lacks; one per
    plan that is applied. Only CUDA memory has that allocator."""
    if device == "cuda" and lacking(plan.allocator, settings_of_process()):
        warnings.warn(f"the plan is made for {variable_of_release()}={plan.allocator}, and this process "
                      "runs without it: fragments of its memory may make it take more than planned. Set "
                      "it in the environment, before the script starts", PlanWarning, stacklevel=5)
