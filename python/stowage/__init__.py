"""Stowage: what a neural network's step takes in GPU memory, before anything is run.

    import stowage

    stowage.check("resnet50", gpu="t4", batch=64).fits
    stowage.check(model, images, optimizer="adamw", gpu="rtx4090", precision="amp-bf16").device_bytes
    stowage.batch("resnet50", gpu="t4").recommended
    stowage.assert_fits(model, images, gpu="rtx3060")      # in a test

A PyTorch step can be recorded by itself, without a GPU, as a file for `stowage check`:

    stowage.record(model, images, target=labels, loss=functional.cross_entropy,
                   optimizer="adamw", output="step.json")

    @stowage.step                       # for `python -m stowage record train.py -o step.json`
    def train_step(images, labels): ...

And a plan is carried out:

    stowage.plan(model, images, gpu="rtx3060", batch=256, for_="pytorch", output="plan.json")
    stowage.apply(model, optimizer, "plan.json")
"""

from stowage.answers.ask import assert_fits, batch, check, diff, plan, table
from stowage.answers.difference import Difference
from stowage.answers.largest_batch import Batch
from stowage.answers.memory import Check, ServingCheck
from stowage.answers.placement import PlanAnswer
from stowage.answers.table import Table
from stowage.carry_out import apply, read_plan, rehearse, verify
from stowage.errors import PlanWarning, StowageError
from stowage.options import RecordOptions
from stowage.plans.plan_file import Plan
from stowage.record import RecordedStep, record
from stowage.script import step
from stowage.version import VERSION as __version__

__all__ = ["Batch", "Check", "Difference", "Plan", "PlanAnswer", "PlanWarning", "RecordOptions",
           "RecordedStep", "ServingCheck", "StowageError", "Table", "__version__", "apply", "assert_fits",
           "batch", "check", "diff", "plan", "read_plan", "record", "rehearse", "step", "table", "verify"]
