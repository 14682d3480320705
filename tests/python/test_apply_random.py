"""Random networks under random plans, sensible or not: every bit is that of a run without the plan, and
nothing is left. The seed stands in a failure's message; STOWAGE_SEEDS=0-999 runs others."""

from __future__ import annotations

import gc
import os
import random
import unittest
import warnings
from typing import Any

import torch
from torch import nn

import stowage
from stowage.plans.applied import Applied
from stowage.plans.plan_file import Plan, PlanReader
from stowage.plans.stash import Stash

WIDTH = 12


class RandomNet(nn.Module):
    """A chain of random operators with shortcuts; every tensor has WIDTH columns."""

    def __init__(self, choice: random.Random) -> None:
        super().__init__()
        kinds = ("linear", "relu", "relu_", "tanh", "gram", "half", "norm", "batch", "drop", "add", "mul",
                 "mul_", "cat", "again", "softmax", "detached", "branch")
        self.kinds = [choice.choice(kinds) for _ in range(choice.randint(4, 14))]
        self.parts = nn.ModuleList(self.part(kind) for kind in self.kinds)
        self.places = [choice.random() for _ in self.kinds]

    @staticmethod
    def part(kind: str) -> nn.Module:
        made: dict[str, Any] = {
            "linear": lambda: nn.Linear(WIDTH, WIDTH), "relu": nn.ReLU, "tanh": nn.Tanh,
            "norm": lambda: nn.LayerNorm(WIDTH), "batch": lambda: nn.BatchNorm1d(WIDTH),
            "drop": lambda: nn.Dropout(0.3), "cat": lambda: nn.Linear(2 * WIDTH, WIDTH)}
        return made.get(kind, nn.Identity)()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = [x.clone()]
        for kind, part, place in zip(self.kinds, self.parts, self.places):
            h, other = seen[-1], seen[int(place * len(seen))]
            seen.append(self.step(kind, part, h, other, place))
        return seen[-1] + seen[0]

    def step(self, kind: str, part: nn.Module, h: torch.Tensor, other: torch.Tensor,
             place: float) -> torch.Tensor:
        found: torch.Tensor
        if kind == "gram":
            return (h @ h.t()) @ h / len(h)
        if kind == "half":
            return torch.cat([h[:, :WIDTH // 2] * other[:, WIDTH // 2:], h[:, WIDTH // 2:]], 1)
        if kind == "add":
            return h + other
        if kind == "mul":
            return h * other
        if kind == "mul_":
            return (h * 0.5).mul_(other)
        if kind == "relu_":
            return torch.relu_(h * 2)
        if kind == "softmax":
            return h.softmax(1)
        if kind == "detached":
            return h * other.detach().t().contiguous().t()
        if kind == "branch":
            return h.sigmoid() if h.detach().sum() > 0 else h.square()
        found = part(torch.cat([h, other], 1) if kind == "cat" else h)
        return found


def step_of(choice: random.Random) -> Any:
    kind = choice.choice(("usual", "usual", "twice", "kept", "penalty"))

    def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        if kind == "penalty":
            x = x.clone().requires_grad_()
        loss = model(x).square().mean()
        if kind == "kept":
            loss.backward(retain_graph=True)
        if kind == "twice":
            model(x * 0.5).sin().mean().backward()
        if kind == "penalty":
            gradient, = torch.autograd.grad(loss, x, create_graph=True)
            loss = loss + gradient.square().mean()
        loss.backward()
        return loss.detach()

    return step


class Observed:
    """What a model's first pass saves: by storage, rows (key, dtype, shape, bytes of the storage)."""

    def __init__(self, model: nn.Module, x: torch.Tensor) -> None:
        self.keys: list[str] = []
        self.storages: dict[int, list[tuple[str, str, list[int], int]]] = {}
        held: list[torch.Tensor] = []
        with stowage.apply(model, None, PlanReader("none", empty_plan([])).plan()) as applied:
            pack = applied.offloading.pack

            def note(tensor: torch.Tensor) -> Any:
                handle = pack(tensor)
                if handle.key is not None and not self.is_over:
                    held.append(tensor.detach())  # so that no address is used again
                    self.keys.append(handle.key)
                    storage = tensor.untyped_storage()
                    self.storages.setdefault(storage._cdata, []).append((
                        handle.key, str(tensor.dtype).removeprefix("torch."), list(tensor.shape),
                        storage.nbytes()))
                return handle

            applied.offloading.pack = note  # type: ignore[method-assign]
            self.is_over = False
            loss = model(x).square().mean()
            self.is_over = True
            del loss


def empty_plan(offload: list[dict[str, Any]], checkpoint: list[str] | None = None) -> dict[str, Any]:
    return {"format": "stowage-pytorch-plan", "version": 1, "model": "net", "names": "recorded",
            "offload": offload, "checkpoint": [{"module": path} for path in checkpoint or []]}


def random_plan(choice: random.Random, seen: Observed, modules: list[str]) -> Plan:
    """Some of the storages, with any calls as their places; some with a mistake."""
    def somewhere() -> str | None:
        return choice.choice([*seen.keys, None])

    entries = []
    for rows in seen.storages.values():
        if choice.random() < 0.25:
            continue
        saved = [{"key": key, "dtype": dtype, "shape": shape} for key, dtype, shape, _ in rows]
        mistake = choice.random()
        if mistake < 0.05:
            saved = saved[:1]
        elif mistake < 0.1:
            saved[-1]["shape"] = [*rows[-1][2], 1]
        entries.append({"saved": saved, "bytes": [rows[0][3] + (mistake > 0.97), 0],
                        "start": choice.choice(saved)["key"] if mistake > 0.9 else saved[-1]["key"],
                        "release": somewhere(), "fetch": somewhere()})
    checkpoint = [path for path in modules if choice.random() < 0.2]
    return PlanReader("random", empty_plan(entries, checkpoint)).plan()


class Random(unittest.TestCase):
    def train(self, seed: int, plan: Plan | None) -> tuple[list[torch.Tensor], Applied | None]:
        choice = random.Random(seed)
        torch.manual_seed(seed)
        model = RandomNet(choice)
        step = step_of(choice)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05) if list(model.parameters()) else None
        applied = None if plan is None else stowage.apply(model, optimizer, plan)
        values = []
        for size in (4, 4, 3, 4):
            model.zero_grad()
            values.append(step(model, torch.randn(size, WIDTH, requires_grad=True)))
            if optimizer is not None:
                optimizer.step()
            values += [p.grad.clone() for p in model.parameters() if p.grad is not None]
            values += [buffer.clone() for buffer in model.buffers()]
        if applied is not None:
            applied.remove()
        return values, applied

    def plan(self, seed: int) -> Plan:
        choice = random.Random(seed)
        torch.manual_seed(seed)
        model = RandomNet(choice)
        seen = Observed(model, torch.randn(4, WIDTH, requires_grad=True))
        return random_plan(random.Random(seed + 1), seen, [f"parts.{n}" for n in range(len(model.parts))])

    def test_random_plans_change_no_bit(self) -> None:
        first, _, last = os.environ.get("STOWAGE_SEEDS", "0-39").partition("-")
        moved = 0
        for seed in range(int(first), int(last) + 1):
            with self.subTest(seed=seed), warnings.catch_warnings():
                warnings.simplefilter("ignore", stowage.PlanWarning)
                unplanned, _ = self.train(seed, None)
                planned, applied = self.train(seed, self.plan(seed))
                assert applied is not None
                self.assertEqual(len(unplanned), len(planned))
                for place, (one, other) in enumerate(zip(unplanned, planned)):
                    self.assertTrue(torch.equal(one, other) or (one.isnan() == other.isnan()).all()
                                    and torch.equal(one.nan_to_num(), other.nan_to_num()),
                                    f"tensor {place} differs")
                moved += applied.bytes_out
                gc.collect()
                self.assertFalse(any(type(one) is Stash for one in gc.get_objects()))
        self.assertGreater(moved, 0)


if __name__ == "__main__":
    unittest.main()
