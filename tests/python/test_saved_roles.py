"""Whose a saved tensor is: a result of the call before it, or an argument of the next."""

from __future__ import annotations

import unittest
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import nn

import stowage

if TYPE_CHECKING:
    from collections.abc import Callable


class Chain(nn.Module):
    """A linear layer, what is asked about, and a linear layer whose argument is its result."""

    def __init__(self, call: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.first, self.last, self.call = nn.Linear(8, 8), nn.Linear(8, 8), call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.call(self.first(x)))


def saved(model: nn.Module, inputs: torch.Tensor | None = None) -> list[tuple[str, str, str]]:
    """(layer, key, role) of each."""
    given = torch.zeros(4, 8) if inputs is None else inputs
    document = stowage.record(model, given, loss=lambda output: output.mean()).document
    return [(document["origins"][row[0]][0], row[4], row[2])
            for row in document["step"]["saved"] if len(row) > 3]


def hooked(call: Callable[[torch.Tensor], torch.Tensor]) -> int:
    """How many tensors PyTorch saves after the call's last kernel, by its own hooks."""
    from torch.utils._python_dispatch import TorchDispatchMode

    after: list[bool] = []

    class Kernels(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            after.clear()
            return result

    argument = torch.rand(4, 8, requires_grad=True).clone() + 0.1
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: (after.append(True), t)[1], lambda t: t)
    with hooks, Kernels():
        call(argument)
    return len(after)


IN_PLACE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "add_": lambda x: x.add_(1), "celu_": F.celu_, "clamp_": lambda x: x.clamp_(0), "elu_": F.elu_,
    "exp_": torch.Tensor.exp_, "hardtanh_": F.hardtanh_, "leaky_relu_": F.leaky_relu_,
    "mul_": lambda x: x.mul_(2.0), "reciprocal_": torch.Tensor.reciprocal_, "relu_": F.relu_,
    "rsqrt_": torch.Tensor.rsqrt_, "sigmoid_": torch.Tensor.sigmoid_,
    "silu_": lambda x: F.silu(x, inplace=True), "sqrt_": torch.Tensor.sqrt_, "tanh_": torch.Tensor.tanh_}


class Roles(unittest.TestCase):
    def test_a_result_is_its_own_calls_and_once(self) -> None:
        for name, call in {**IN_PLACE, "exp": torch.exp, "gelu": F.gelu, "relu": F.relu,
                           "sum": lambda x: x + 1}.items():
            with self.subTest(name):
                rows = saved(Chain(call))
                results = [row for row in rows if row[2] == "result"]
                self.assertEqual([layer for layer, *_ in results], ["Chain"] * hooked(call))
                self.assertIn(("last", "last#0", "mat1"), rows)

    def test_a_module_in_place_that_runs_twice(self) -> None:
        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
                self.relu = nn.ReLU(inplace=True)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = self.second(self.relu(self.first(x)))
                y += x
                return self.relu(y)

        rows = saved(nn.Sequential(Block(), Block()))
        self.assertEqual([row for row in rows if row[1].endswith("relu#0") or row[1].endswith("relu#1")],
                         [(f"{block}.relu", f"{block}.relu#{call}", "result")
                          for block in (0, 1) for call in (0, 1)])


if __name__ == "__main__":
    unittest.main()
