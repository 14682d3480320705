"""`apply` and `verify`: a plan for PyTorch, carried out by PyTorch in the user's own script.

Neither imports torch before it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from stowage.plans.applied import Applied, Models, Optimizers
    from stowage.plans.plan_file import PlanLike
    from stowage.plans.rehearsal import Rehearsal
    from stowage.plans.verification import Verification


def apply(model: Models, optimizer: Optimizers, plan: PlanLike, *,
          device: torch.device | str | None = None) -> Applied:
    """Carry out a plan of `stowage plan --for pytorch` in this thread, until the process ends or
    `remove()` of the result is called (`with stowage.apply(...):` does so at the block's end).

    model      an nn.Module, or {name: nn.Module} for a plan of several, by the names of the recording
    optimizer  the one that steps, several, or None; its steps tell where a training step ends
    plan       the plan's file, or what stowage.read_plan returned
    device     where parameters and buffers go that the plan does not stream, instead of model.to(device)
               before; None: they stay where they are

    Losses, gradients and updates are those without the plan, bit for bit. A tensor that is not as the
    plan has it stays on the device, and a PlanWarning says so, once. Raises StowageError for a plan that
    cannot be read or is for another model.
    """
    from stowage import active_script
    from stowage.plans.applied import applied_plan

    if active_script.active is not None:
        from stowage.errors import StowageError

        raise StowageError("a step is recorded without a plan, and this script applies one",
                           "let the script call stowage.apply only where a plan is given")
    return applied_plan(model, optimizer, plan, device)


def read_plan(path: Any) -> Any:
    """The plan of a file, to be looked at or applied several times (stowage/plans/plan_file.py). Raises
    StowageError for a file that cannot be read or is no plan for PyTorch."""
    from stowage.plans.plan_file import read_plan as read

    return read(path)


def verify(plan: PlanLike) -> Verification:
    """A context manager around one training step, within which what happens is compared with the plan.

        with stowage.verify("plan.json") as found:
            train_step(images, labels)
        print(found.seconds, found.bytes_out)

    The plan is applied already. At the block's end a StowageError names the first difference: a tensor
    that fell back, calls that are missing or too many, bytes moved, the order in which storages left and
    came back, on CUDA memory above the planned peak. An exception of the block's own passes through.
    """
    from stowage.plans.verification import Verification

    return Verification(plan)


def rehearse(build: Callable[[], tuple[Any, Any, Callable[[], Any]]], plan: PlanLike | None, *,
             steps: int = 2, compute_capability: tuple[int, int] = (8, 6)) -> Rehearsal:
    """Carry out a plan on the pretended device: no GPU is needed, and no tensor has memory.

    build  called with the device pretended; returns (model, optimizer, step); step() trains once
    plan   as for apply; None: without a plan
    steps  so many are run; the last is told about

    Returns bytes moved each way, tensors that fell back, and the peak of living storages in bytes,
    without what kernels allocate within themselves. Raises StowageError as apply does.
    """
    from stowage.plans.rehearsal import rehearsal

    return rehearsal(build, plan, steps, compute_capability)
