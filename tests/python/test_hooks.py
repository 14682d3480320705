"""Hooks: what they run is part of the recorded step, and what they raise is raised."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import stowage


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


def recorded(model: nn.Module, **options: Any) -> stowage.RecordedStep:
    return stowage.record(model, torch.zeros(8, 16), loss=lambda output: output.mean(), **options)


def kernels(step: stowage.RecordedStep, phase: str = "backward") -> list[str]:
    return [row[1] for row in step.document["step"]["nodes"] if row[2] == phase]


PLAIN = kernels(recorded(network()))


def more(step: stowage.RecordedStep) -> list[str]:
    """Backward kernels that the network without hooks does not run."""
    left = list(PLAIN)
    return [kernel for kernel in kernels(step)
            if kernel not in left or left.remove(kernel)]  # type: ignore[func-returns-value]


def double(gradient: torch.Tensor) -> torch.Tensor:
    return gradient * 2


def fail(*_: Any) -> None:
    raise ValueError("the hook's own")


class Parameters(unittest.TestCase):
    def test_a_hook_on_a_gradient(self) -> None:
        model = network()
        model[0].weight.register_hook(double)
        self.assertEqual(more(recorded(model)), ["aten::mul.Tensor"])

    def test_a_hook_on_an_accumulated_gradient(self) -> None:
        def hook(weight: torch.Tensor) -> None:
            assert weight.grad is not None
            weight.grad.mul_(2)

        model = network()
        model[2].weight.register_post_accumulate_grad_hook(hook)
        found = recorded(model)
        self.assertEqual(more(found), ["aten::mul_.Tensor"])
        self.assertEqual(found.warnings, [])

    def test_both_in_one_model_and_a_result_that_pytorch_refuses(self) -> None:
        model = network()
        model[0].weight.register_hook(double)
        model[2].weight.register_post_accumulate_grad_hook(lambda weight: weight.grad.mul_(2))
        found = recorded(model)
        self.assertEqual(more(found), ["aten::mul_.Tensor", "aten::mul.Tensor"])
        self.assertEqual(found.warnings, [
            "a hook of register_post_accumulate_grad_hook on '2.weight' returns a value, for which "
            "PyTorch ends backward with an error; what the hook runs is recorded"])

    def test_what_a_hook_raises_is_raised(self) -> None:
        registrations: list[Callable[[nn.Module], Any]] = [
            lambda model: model[0].weight.register_hook(fail),
            lambda model: model[0].weight.register_post_accumulate_grad_hook(fail),
            lambda model: model[0].register_forward_hook(fail),
            lambda model: model[0].register_full_backward_hook(fail)]
        for register in registrations:
            model = network()
            register(model)
            with self.assertRaisesRegex(ValueError, "the hook's own"):
                recorded(model)

    def test_a_hook_that_removes_itself_runs_once(self) -> None:
        model = network()
        calls = []

        def hook(gradient: torch.Tensor) -> None:
            calls.append(gradient.shape)
            handle.remove()

        handle = model[0].weight.register_hook(hook)
        self.assertEqual(more(recorded(model)), [])
        self.assertEqual(calls, [(16, 16)])

    def test_hooks_stay_on_the_models_own_parameters(self) -> None:
        model = network()
        handle = model[0].weight.register_hook(double)
        recorded(model)
        self.assertEqual(list(model[0].weight._backward_hooks.values()), [double])
        handle.remove()
        self.assertEqual(more(recorded(model)), [])

    def test_a_functions_models_have_theirs(self) -> None:
        model = network()
        model[0].weight.register_hook(double)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x: torch.Tensor) -> None:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()

        self.assertEqual(more(stowage.record(step, torch.zeros(8, 16))), ["aten::mul.Tensor"])

    def test_an_optimizer_that_steps_in_hooks(self) -> None:
        model = network()
        optimizers = {parameter: torch.optim.AdamW([parameter]) for parameter in model.parameters()}

        def hook(parameter: torch.Tensor) -> None:
            names = {id(p): name for name, p in model.named_parameters()}
            optimizer = by_name[names[id(parameter)]]
            optimizer.step()
            optimizer.zero_grad()

        by_name = {name: optimizers[parameter] for name, parameter in model.named_parameters()}
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(hook)

        def step(x: torch.Tensor) -> None:
            model(x).mean().backward()
            _ = by_name

        found = stowage.record(step, torch.zeros(8, 16))
        self.assertNotIn("not_updated", found.document)
        self.assertEqual(found.document["settings"]["optimizer"]["name"], "adamw")


class Others(unittest.TestCase):
    def test_hooks_on_activations(self) -> None:
        class Hooked(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.part = network()

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = self.part[0](x)
                y.register_hook(double)
                return self.part[2](self.part[1](y))

        self.assertEqual(more(recorded(Hooked())), ["aten::mul.Tensor"])

    def test_hooks_on_modules(self) -> None:
        model = network()
        model[0].register_forward_hook(lambda module, inputs, output: output * 2)
        model[0].register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
        found = recorded(model)
        self.assertEqual([kernel for kernel in kernels(found, "forward")
                          if kernel in ("aten::mul.Tensor", "aten::add.Tensor")],
                         ["aten::add.Tensor", "aten::mul.Tensor"])
        model = network()
        model[2].register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 2,))
        self.assertEqual(more(recorded(model)), ["aten::mul.Tensor"])

    def test_hooks_on_an_optimizers_step(self) -> None:
        model = network()
        def clip(own: torch.optim.Optimizer, arguments: Any, keywords: Any) -> None:
            torch.nn.utils.clip_grad_norm_(own.param_groups[0]["params"], 1.0)

        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.register_step_pre_hook(clip)
        self.assertIn("aten::_foreach_norm.Scalar",
                      kernels(recorded(model, optimizer=optimizer), "update"))


if __name__ == "__main__":
    unittest.main()
