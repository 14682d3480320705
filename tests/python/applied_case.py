"""Training with and without a plan on the CPU, compared bit for bit."""

from __future__ import annotations

import gc
import tempfile
import unittest
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import stowage
from planned import Planner, write_plan
from stowage.plans.stash import Stash

Step = Callable[[nn.Module, torch.Tensor], torch.Tensor]


# PyTorch's engine is set up by the first backward of a process: it has to be one on the pretended device,
# else no test can record a step after another has trained on the CPU.
stowage.record(nn.Linear(1, 1), torch.zeros(2, 1), loss=torch.mean)


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4))


class Net(nn.Module):
    """Layers 8 -> 16 -> 4 around a function of the test's."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 4)

    def middle(self, h: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.middle(self.first(x)))


def batches(count: int = 3, size: int = 4) -> list[torch.Tensor]:
    torch.manual_seed(2)
    return [torch.randn(size, 8) for _ in range(count)]


def living_stashes() -> int:
    return sum(type(one) is Stash for one in gc.get_objects())


def mean_square(output: torch.Tensor) -> torch.Tensor:
    return output.float().square().mean()


def plan_of(model: nn.Module, inputs: torch.Tensor, checkpoint: tuple[str, ...] = (), least: int = 1,
            with_inputs: bool = False, **options: Any) -> dict[str, Any]:
    """The plan of a recording of the model that offloads all it can; `with_inputs`: of what is
    checkpointed, too."""
    recorded = stowage.record(model, inputs, loss=mean_square, **options)
    return Planner(recorded.document).plan(least, checkpoint, with_inputs)


def usual_step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    loss = mean_square(model(x))
    loss.backward()
    return loss.detach()


class AppliedCase(unittest.TestCase):
    """`self.path` is a place for a plan."""

    def setUp(self) -> None:
        self.path = self.enterContext(tempfile.TemporaryDirectory()) + "/plan.json"
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("ignore", stowage.PlanWarning)

    def train(self, build: Callable[[], nn.Module], batches: list[torch.Tensor], step: Step,
              plan: dict[str, Any] | None, ) -> tuple[list[torch.Tensor], Any]:
        """([losses, gradients, parameters, buffers of all steps], the Applied)."""
        torch.manual_seed(0)
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        applied = None
        if plan is not None:
            applied = stowage.apply(model, optimizer, write_plan(plan, self.path))
        seen = []
        torch.manual_seed(1)
        try:
            for x in batches:
                optimizer.zero_grad()
                seen.append(step(model, x))
                seen += [p.grad.clone() for p in model.parameters() if p.grad is not None]
                optimizer.step()
                seen += [value.clone() for value in model.state_dict().values()]
        finally:
            if applied is not None:
                applied.remove()
        return seen, applied

    def assert_equal_bits(self, ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> None:
        self.assertEqual(len(ours), len(theirs))
        for place, (one, other) in enumerate(zip(ours, theirs)):
            self.assertTrue(torch.equal(one, other), f"tensor {place} differs")

    def assert_same_training(self, build: Callable[[], nn.Module], plan: dict[str, Any],
                             batches: list[torch.Tensor], step: Step = usual_step) -> Any:
        """Trains twice and compares all bits; returns the Applied."""
        unplanned, _ = self.train(build, batches, step, None)
        planned, applied = self.train(build, batches, step, plan)
        self.assert_equal_bits(unplanned, planned)
        return applied
