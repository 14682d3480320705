"""Training with a plan that moves updates, compared with the training without, bit for bit."""

from __future__ import annotations

import json
import tempfile
import unittest
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import nn

import stowage

Loop = Callable[[nn.Module, torch.optim.Optimizer], list[torch.Tensor]]


def plan_file(folder: str, **changes: Any) -> str:
    content = {"format": "stowage-pytorch-plan", "version": 1, "model": "net", "names": "recorded",
               "batch": 8, "micro_batches": 1, "offload": [], "checkpoint": [], **changes}
    path = folder + "/plan.json"
    with open(path, "w") as file:
        json.dump(content, file)
    return path


# As in applied_case.py: the engine's first backward has to be one on the pretended device.
stowage.record(nn.Linear(1, 1), torch.zeros(2, 1), loss=torch.mean)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 4))


def loss_of(model: nn.Module, seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    output: torch.Tensor = model(torch.randn(8, 8))
    return output.square().mean()


class UpdatesCase(unittest.TestCase):
    """`self.path`: a plan with `PLAN` in it."""

    PLAN: ClassVar[dict[str, Any]] = {"optimizer_on_cpu": {"gradients_in_flight": 2}}

    def setUp(self) -> None:
        self.path = plan_file(self.enterContext(tempfile.TemporaryDirectory()), **self.PLAN)

    def trained(self, loop: Loop, optimizer: Callable[..., torch.optim.Optimizer], planned: bool,
                gradients: bool = True, **options: Any
                ) -> tuple[list[torch.Tensor], Any, torch.optim.Optimizer]:
        """(what the loop saw and the parameters in the end, the Applied, the optimizer)"""
        torch.manual_seed(0)
        model = network()
        steps = optimizer(model.parameters(), **options)
        applied = stowage.apply(model, steps, self.path) if planned else None
        seen = loop(model, steps)
        if applied is not None:
            applied.remove()
        return [*seen, *(one.detach().clone() for one in model.parameters()),
                *(one.grad.clone() for one in model.parameters() if one.grad is not None and gradients)
                ], applied, steps

    def same(self, loop: Loop, optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.AdamW,
             with_gradients: bool = True, **options: Any) -> Any:
        options = {"lr": 0.1, **options}
        plain, _, _ = self.trained(loop, optimizer, False, with_gradients, **options)
        planned, applied, steps = self.trained(loop, optimizer, True, with_gradients, **options)
        self.assertEqual(len(plain), len(planned))
        for ours, theirs in zip(planned, plain):
            self.assertIs(type(ours), torch.Tensor)
            self.assertTrue(torch.equal(ours, theirs))
        return applied


def usual(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    losses = []
    for number in range(3):
        optimizer.zero_grad()
        loss = loss_of(model, number)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


OPTIMIZERS: list[tuple[Any, dict[str, Any]]] = [
    (torch.optim.SGD, {}), (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
    (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    (torch.optim.Adam, {"amsgrad": True, "weight_decay": 0.1}), (torch.optim.AdamW, {}),
    (torch.optim.NAdam, {"momentum_decay": 0.01}), (torch.optim.RAdam, {}), (torch.optim.Adamax, {}),
    (torch.optim.Adagrad, {"lr_decay": 0.1}), (torch.optim.Adadelta, {}), (torch.optim.ASGD, {}),
    (torch.optim.RMSprop, {"centered": True, "momentum": 0.5}), (torch.optim.Rprop, {}),
    (torch.optim.Adafactor, {}),
]


def every_implementation() -> list[tuple[Any, dict[str, Any]]]:
    """All of torch.optim that updates parameter by parameter, in every way that the CPU has."""
    ways = []
    for optimizer, options in OPTIMIZERS:
        ways += [(optimizer, options), (optimizer, {**options, "foreach": True})]
        if optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad):
            ways.append((optimizer, {**options, "fused": True}))
    return ways
