"""An inference in parts: outputs are those of the parts, put together; what cannot be cut runs whole."""

from __future__ import annotations

import unittest
import warnings
from typing import Any

import torch
from torch import nn

import stowage
from applied_case import AppliedCase
from planned import write_plan
from test_apply_stream import Network, built, streamed_bytes, streaming


def chunked(inputs: list[list[Any]], output: list[Any], parts: int = 3, batch: int = 6) -> dict[str, Any]:
    return {"format": "stowage-pytorch-plan", "version": 1, "written_by": "tests", "names": "recorded",
            "model": "Network", "mode": "inference", "batch": batch, "micro_batches": 1, "offload": [],
            "checkpoint": [], "stream": [], "optimizer_on_cpu": None, "totals": {},
            "chunks": {"parts": parts, "inputs": inputs, "output": output}}


class Net(nn.Module):
    """Writes down the sizes of its calls."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.sizes = nn.Linear(4, 5), []

    def forward(self, x: torch.Tensor, scale: Any = 1, *, more: Any = None) -> Any:
        self.sizes.append(x.shape[0])
        return self.result(self.layer(x) * scale if more is None else self.layer(x) * scale + more)

    def result(self, y: torch.Tensor) -> Any:
        return y


class Chunks(AppliedCase):
    def setUp(self) -> None:
        super().setUp()
        torch.manual_seed(1)
        self.x = torch.randn(6, 4)

    def applied(self, model: nn.Module, plan: dict[str, Any] | None = None) -> Any:
        given = plan or chunked([["batch", 4]], ["batch", 5])
        return self.enterContext(stowage.apply(model, None, write_plan(given, self.path)))

    def assert_parts(self, model: Any, sizes: list[int], *arguments: Any, **keywords: Any) -> Any:
        model.sizes.clear()
        with torch.no_grad():
            found = model(*arguments, **keywords)
        self.assertEqual(model.sizes, sizes)
        return found

    def test_outputs_are_those_of_the_parts(self) -> None:
        model = Net().eval()
        with torch.no_grad():
            expected = torch.cat([model(part) for part in self.x.split(2)])
        applied = self.applied(model)
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                self.assertTrue(torch.equal(self.assert_parts(model, [2, 2, 2], self.x), expected))
        self.assertEqual(applied.first_reason, "")

    def test_other_batches(self) -> None:
        model = Net().eval()
        self.applied(model)
        for batch, sizes in ((1, [1]), (2, [2]), (3, [2, 1]), (7, [2, 2, 2, 1])):
            x = torch.randn(batch, 4)
            found = self.assert_parts(model, sizes, x)
            with torch.no_grad():
                self.assertTrue(torch.equal(found, torch.cat([model.layer(one) for one in x.split(2)])))

    def test_training_and_gradients_run_whole(self) -> None:
        model = Net()
        self.applied(model)
        self.assert_parts(model, [6], self.x)
        model.eval().sizes.clear()
        model(self.x).sum().backward()
        self.assertEqual(model.sizes, [6])

    def test_constants_and_keywords(self) -> None:
        class Several(Net):
            def result(self, y: torch.Tensor) -> Any:
                return {"y": y, "pair": (y.sum(1), None), "word": "same"}

        model = Several().eval()
        plan = chunked([["batch", 4], [5], ["batch", 1]], ["batch", 5])
        scale, more = torch.randn(5), torch.randn(6, 1)
        with torch.no_grad():
            parts = [model(x, scale, more=m) for x, m in zip(self.x.split(2), more.split(2))]
        self.applied(model, plan)
        found = self.assert_parts(model, [2, 2, 2], self.x, scale, more=more)
        self.assertTrue(torch.equal(found["y"], torch.cat([one["y"] for one in parts])))
        self.assertTrue(torch.equal(found["pair"][0], torch.cat([one["pair"][0] for one in parts])))
        self.assertEqual((found["pair"][1], found["word"]), (None, "same"))

    def assert_whole(self, result: Any, reason: str, *arguments: Any, runs: list[int],
                     plan: dict[str, Any] | None = None) -> None:
        class Other(Net):
            def result(self, y: torch.Tensor) -> Any:
                return result(y)

        model = Other().eval()
        with torch.no_grad():
            expected = model(*arguments)
        applied = self.applied(model, plan)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                found = self.assert_parts(model, runs, *arguments)
        self.assertEqual([str(one.message) for one in caught],
                         [f"stowage.apply runs a batch whole that {self.path} has in parts: {reason}. "
                          "Values are as without the plan; memory is larger than planned"])
        if isinstance(expected, torch.Tensor):
            self.assertTrue(torch.equal(found, expected))
        applied.remove()

    def test_what_cannot_be_cut_runs_whole_and_says_so_once(self) -> None:
        self.assert_whole(torch.Tensor.sum, "the model returns a tensor of [] for a part of 2 of 6",
                          self.x, runs=[2, 6])
        self.assert_whole(torch.Tensor.t, "the model returns a tensor of [5, 2] for a part of 2 of 6",
                          self.x, runs=[2, 6])
        self.assert_whole(lambda y: y @ y.t(),
                          "the model returns a tensor of [2, 2] for a part of 2 of 6", self.x,
                          runs=[2, 6])
        self.assert_whole(lambda y: object(),
                          "the model returns a object, which has no axis for the batch", self.x,
                          runs=[2, 6])
        self.assert_whole(lambda y: float(y[0, 0]) if len(y) < 6 else y, "the model returns "
                          f"{float(Net().layer(self.x)[0, 0])!r} for one part, and "
                          f"{float(Net().layer(self.x)[2, 0])!r} for another", self.x, runs=[2, 2, 6])
        self.assert_whole(lambda y: y, "the model is called with 2 tensors, and the plan has 1",
                          self.x, torch.ones(5), runs=[6])
        self.assert_whole(lambda y: y, "the model is called with a tensor of [6, 4], and the plan has "
                          "[batch, 8]", self.x, runs=[6], plan=chunked([["batch", 8]], ["batch", 5]))
        self.assert_whole(lambda y: y, "the model is called with a Number, which parts may change",
                          self.x, Number(), runs=[6])

    def test_with_streamed_parameters(self) -> None:
        model, reference = built().eval(), built().eval()
        plan = {**chunked([["batch", 7]], ["batch", 7, 11], 2, 4),
                "stream": streaming(model, ["h.0", "h.3"], "inference")["stream"]}
        x = torch.arange(28).view(4, 7) % 11
        applied = self.applied(model, plan)
        with torch.no_grad(), stowage.verify(self.path):
            found = model(x)
        with torch.no_grad():
            self.assertTrue(torch.equal(found, torch.cat([reference(one) for one in x.split(2)])))
        self.assertEqual((applied.bytes_back, applied.first_reason), (2 * streamed_bytes(plan), ""))

    def test_plans_that_are_none(self) -> None:
        def refusal(**changes: Any) -> str:
            plan = chunked([["batch", 4]], ["batch", 5])
            plan["chunks"].update(changes)
            with self.assertRaises(stowage.StowageError) as raised:
                stowage.read_plan(write_plan(plan, self.path))
            return str(raised.exception).removeprefix(f"{self.path}: ")

        self.assertEqual(refusal(parts=4), "chunks.parts: 4 parts cannot share a batch of 6 equally")
        self.assertEqual(refusal(parts=1), "chunks.parts: 1 is out of range")
        self.assertEqual(refusal(output=None), "chunks.output: is missing")
        self.assertEqual(refusal(inputs=[["batch", 4], [3, "batch"]]),
                         "chunks.inputs[1]: has the batch elsewhere than in its first axis")
        self.assertEqual(refusal(output=["2*batch"]),
                         "chunks.output: has the batch elsewhere than in its first axis")
        with self.assertRaisesRegex(stowage.StowageError,
                                    "runs a model in parts, and apply got 2 models"):
            stowage.apply({"a": Net(), "b": Net()}, None,
                          write_plan(chunked([["batch", 4]], ["batch", 5]), self.path))


class Number:
    """An object that acts as a factor."""

    def __rmul__(self, other: torch.Tensor) -> torch.Tensor:
        return other * 2


class Pretended(unittest.TestCase):
    def test_the_peak_is_lower(self) -> None:
        from stowage.plans.plan_file import PlanReader

        def build() -> Any:
            model = Network(blocks=2).cuda().eval()
            x = torch.zeros(64, 7, dtype=torch.int64, device="cuda")
            return model, None, torch.no_grad()(lambda: model(x))

        plan = PlanReader("the plan", chunked([["batch", 7]], ["batch", 7, 11], 4, 64)).plan()
        found, whole = stowage.rehearse(build, plan), stowage.rehearse(build, None)
        self.assertEqual(found.first_reason, "")
        self.assertLess(found.peak_bytes, 0.6 * whole.peak_bytes)


if __name__ == "__main__":
    unittest.main()
