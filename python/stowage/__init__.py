"""Stowage's Python part: a PyTorch step, recorded without a GPU, for `stowage check` to weigh.

    import stowage

    stowage.record(model, images, target=labels, loss=functional.cross_entropy,
                   optimizer="adamw", output="step.json")

    @stowage.step                       # for `python -m stowage record train.py -o step.json`
    def train_step(images, labels): ...

And a plan of `stowage plan step.json --for pytorch -o plan.json`, carried out:

    stowage.apply(model, optimizer, "plan.json")
"""

from stowage.carry_out import apply, read_plan, rehearse, verify
from stowage.errors import PlanWarning, StowageError
from stowage.options import RecordOptions
from stowage.plans.plan_file import Plan
from stowage.record import RecordedStep, record
from stowage.script import step
from stowage.version import VERSION as __version__

__all__ = ["Plan", "PlanWarning", "RecordOptions", "RecordedStep", "StowageError", "__version__", "apply",
           "read_plan", "record", "rehearse", "step", "verify"]
