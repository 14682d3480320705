"""The rows of saved tensors in recordings: names, layouts, and the kernels between which each is kept."""

from __future__ import annotations

import unittest
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import stowage


def recorded(model: nn.Module, inputs: torch.Tensor | None = None, **options: Any) -> dict[str, Any]:
    given = torch.zeros(4, 8) if inputs is None else inputs
    return stowage.record(model, given, loss=lambda output: output.mean(), **options).document


def keys(document: dict[str, Any]) -> list[str]:
    return [row[4] for row in document["step"]["saved"] if len(row) > 3]


def small() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


class Rows(unittest.TestCase):
    def test_each_call_has_a_row_with_its_key_layout_and_nodes(self) -> None:
        document = recorded(small())
        step = document["step"]
        self.assertEqual(keys(document), ["0#0", "1#0", "2#0", "2#1"])
        rows = [[step["storages"][row[1]][0], row[2], *row[5:7]] for row in step["saved"]]
        nodes = [row[0] for row in step["nodes"]]
        self.assertEqual(rows, [
            ["input", "mat1", -1, nodes.index("0.mm")],
            ["1.relu", "result", nodes.index("1.relu"), nodes.index("1.threshold_backward")],
            ["1.relu", "mat1", nodes.index("1.relu"), nodes.index("2.mm")],
            ["2.weight", "mat2", nodes.index("1.relu"), nodes.index("2.mm")]])
        layouts = [document["layouts"][row[3]] for row in step["saved"]]
        self.assertEqual(document["shapes"][layouts[1][1]], [[0, 1], 16])
        self.assertEqual(document["shapes"][layouts[3][1]], [16, 4])
        self.assertEqual(document["shapes"][layouts[3][2]], [1, 16])

    def held(self, model: nn.Module, inputs: torch.Tensor | None = None) -> list[tuple[str, str]]:
        """(key, name of the last node during which something besides autograd holds it)."""
        document = recorded(model, inputs)
        nodes = document["step"]["nodes"]
        return [(row[4], nodes[row[7]][0]) for row in document["step"]["saved"]
                if document["step"]["storages"][row[1]][2] == "transient"]

    def test_what_the_script_holds_beside_autograd(self) -> None:
        class Inner(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.part = nn.Linear(16, 16)

            def forward(self, h: torch.Tensor) -> torch.Tensor:
                return self.part(h.exp()).tanh()

        class Outer(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.inner = nn.Linear(8, 16), Inner()

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.inner(self.first(x).sigmoid()).sin()

        # The sigmoid's result is Inner's argument, and lives until Inner returns; exp's is that of `part`
        # alone. The output is the script's to the end.
        self.assertEqual(self.held(Outer()), [
            ("Outer#0", "inner.tanh"), ("inner#0", "inner.part.addmm"),
            ("inner.part#0", "inner.part.addmm"), ("inner#1", "Outer.sin"), ("Outer#1", "Outer.sin")])

    def test_what_the_script_holds_into_backward_and_beyond(self) -> None:
        model = small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def until_the_update(x: torch.Tensor) -> None:
            output = model(x)
            output.square().mean().backward()
            del output
            optimizer.step()
            optimizer.zero_grad()

        def to_the_end(x: torch.Tensor) -> None:
            output = model(x)
            output.square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

        for step, phase in ((until_the_update, "backward"), (to_the_end, "update")):
            document = stowage.record(step, torch.zeros(4, 8)).document
            held = {row[4]: row[7] for row in document["step"]["saved"]}
            phases = [row[2] for row in document["step"]["nodes"]]
            last = len(phases) - 1 - phases[::-1].index(phase)
            self.assertEqual(held["#0"], last)

    def test_a_step_that_cannot_let_go_says_nothing_of_it(self) -> None:
        model, calls = small(), []

        def step(x: torch.Tensor) -> None:
            calls.append(1)
            if len(calls) == 5:
                raise ValueError("the fifth call")
            model(x).mean().backward()

        document = stowage.record(step, torch.zeros(4, 8)).document
        self.assertEqual(len(calls), 5)
        self.assertEqual({row[7] for row in document["step"]["saved"]}, {-1})

    def test_a_fifth_step_with_other_kernels_says_nothing_either(self) -> None:
        model, calls = small(), []

        def step(x: torch.Tensor) -> None:
            calls.append(1)
            (model(x).mean() if len(calls) < 5 else model(x).exp().mean()).backward()

        document = stowage.record(step, torch.zeros(4, 8)).document
        self.assertEqual({row[7] for row in document["step"]["saved"]}, {-1})

    def test_micro_batches_after_the_first_have_rows_without_keys(self) -> None:
        document = recorded(small(), micro_batches=2)
        self.assertEqual(keys(document), ["0#0", "1#0", "2#0", "2#1"])
        others = [row for row in document["step"]["saved"] if len(row) == 3]
        self.assertEqual([row[2] for row in others], ["mat1", "result", "mat1", "mat2"])

    def test_a_second_forward_before_the_backward_counts_on(self) -> None:
        class Twice(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.part = nn.Linear(8, 8)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.part(self.part(x)).tanh()

        self.assertEqual(keys(recorded(Twice())), ["part#0", "part#1", "part#2", "Twice#0"])

    def test_a_checkpointed_region_has_its_inputs_keys_alone(self) -> None:
        class Region(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return checkpoint(self.second, self.first(x).tanh(), use_reentrant=False).exp()

        document = recorded(Region())
        self.assertEqual(keys(document), ["first#0", "Region#0", "Region#1", "Region#2"])

    def test_what_a_graph_of_gradients_saves_has_no_key(self) -> None:
        model = small()

        def step(x: torch.Tensor) -> None:
            x = x.detach().requires_grad_()
            gradient, = torch.autograd.grad(model(x).tanh().sum(), x, create_graph=True)
            gradient.square().sum().backward()

        document = stowage.record(step, torch.zeros(4, 8)).document
        self.assertEqual(keys(document), ["0#0", "0#1", "1#0", "2#0", "2#1", "#0"])
        self.assertTrue(any(len(row) == 3 for row in document["step"]["saved"]))

    def test_a_name_that_a_file_cannot_hold_makes_no_key(self) -> None:
        for name in ("m" * 5000, "a\x1b"):
            model = nn.Sequential()
            model.add_module(name, nn.Linear(8, 8))
            model.add_module("last", nn.Tanh())
            document = recorded(model)
            self.assertEqual(keys(document), ["last#0"])
            self.assertEqual([row[2] for row in document["step"]["saved"] if len(row) == 3], ["mat1"])

    def test_two_models_have_prefixes(self) -> None:
        first, second = small(), small()

        def step(x: torch.Tensor) -> None:
            first(x).mean().backward()
            second(x).mean().backward()

        document = stowage.record(step, torch.zeros(4, 8)).document
        self.assertEqual(keys(document), ["first.0#0", "first.1#0", "first.2#0", "first.2#1"])

    def test_a_step_that_saves_other_tensors_at_another_batch_fixes_the_batch(self) -> None:
        class Doubled(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                ctx.save_for_backward(*([x] if x.shape[0] == 4 else [x, x]))
                return x * 2

            @staticmethod
            def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
                return gradient * ctx.saved_tensors[0]

        class Odd(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.part = nn.Linear(8, 8)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y: torch.Tensor = Doubled.apply(self.part(x))
                return y

        document = recorded(Odd())
        self.assertTrue(document["fixed_batch"])
        self.assertEqual([warning["message"] for warning in document["warnings"]], [
            "the step is recorded for batch 4 alone: Odd#1: what is saved for backward at batch 4 is not "
            "what is saved at batch 5"])


if __name__ == "__main__":
    unittest.main()
