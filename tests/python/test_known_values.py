"""Small tensors that a script makes of Python's numbers keep their values on the pretended device."""

from __future__ import annotations

import pathlib
import textwrap
import unittest

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from command_case import CommandCase
from stowage.pretend.session import pretended_cuda


class Known(unittest.TestCase):
    def setUp(self) -> None:
        self.enterContext(pretended_cuda())

    def test_numbers_are_read_back(self) -> None:
        self.assertEqual(torch.tensor([3, 4]).tolist(), [3, 4])
        self.assertEqual(torch.as_tensor([1.5, 2]).tolist(), [1.5, 2])
        self.assertEqual(torch.LongTensor([7]).item(), 7)
        self.assertEqual(int(torch.tensor([[3, 4]])[0, 1]), 4)
        self.assertTrue(torch.tensor([False, True]).any())
        self.assertEqual([float(one) for one in torch.tensor([1, 2])], [1, 2])

    def test_what_is_computed_of_them_is_known(self) -> None:
        # As torchvision's RegNet finds the depths of its stages.
        self.assertEqual(torch.diff(torch.tensor([0, 1, 4, 10])).int().tolist(), [1, 3, 6])
        self.assertEqual(torch.cat([torch.tensor([1]), torch.tensor([2, 3])]).cumsum(0).tolist(),
                         [1, 3, 6])

    def test_on_the_device(self) -> None:
        boxes = torch.as_tensor([5], dtype=torch.float, device="cuda")  # as losses of detectors do
        self.assertEqual(torch.clamp(boxes / 2, min=1).item(), 2.5)
        moved = torch.tensor([1, 2]).to("cuda") * 3
        self.assertEqual((moved.device.type, moved.tolist()), ("cuda", [3, 6]))

    def test_sizes_that_depend_on_them(self) -> None:
        found = torch.nonzero(torch.tensor([1, 0, 3], device="cuda"))
        self.assertEqual((found.device.type, found.tolist()), ("cuda", [[0], [2]]))
        self.assertEqual(torch.unique(torch.tensor([4, 4, 2])).tolist(), [2, 4])
        with self.assertRaises(DynamicOutputShapeException):
            torch.nonzero(torch.randn(3, device="cuda"))

    def test_what_is_written_in_place(self) -> None:
        whole = torch.tensor([1, 2, 3], device="cuda")
        part = whole[1:]
        part += 1
        self.assertEqual(whole.tolist(), [1, 3, 4])
        torch._foreach_add_([whole, part], 1)
        self.assertEqual((whole.tolist(), part.tolist()), ([2, 5, 6], [5, 6]))

    def test_what_is_unknown_makes_unknown(self) -> None:
        def written(part: torch.Tensor) -> None:
            part += torch.randn(1, device="cuda")

        for change in (written, torch.Tensor.uniform_, lambda part: torch._foreach_mul_(
                [part], [torch.randn(1, device="cuda")])):
            whole = torch.tensor([1.0, 2.0], device="cuda")
            other = torch.tensor([3.0], device="cuda")
            change(whole[1:])
            for unknown in (whole, whole[:1], whole + 1, whole * other):
                with self.assertRaises(DataDependentOutputException):
                    unknown.tolist()
            self.assertEqual(other.tolist(), [3.0])

    def test_a_parameter_is_known_until_it_is_updated(self) -> None:
        scale = torch.nn.Parameter(torch.tensor([2.0, 4.0], device="cuda"))
        optimizer = torch.optim.SGD([scale], lr=1.0)
        self.assertEqual(scale.tolist(), [2.0, 4.0])
        scale.grad = torch.randn(2, device="cuda")
        optimizer.step()
        with self.assertRaises(DataDependentOutputException):
            scale.tolist()

    def test_another_type_by_data(self) -> None:
        scale = torch.tensor([2.0, 4.0])
        scale.data = torch.randn(2, dtype=torch.float16)
        with self.assertRaises(DataDependentOutputException):
            scale.tolist()

    def test_large_tensors_have_no_values(self) -> None:
        for tensor in (torch.zeros(513, 512), torch.arange(1 << 18), torch.ones(3000, 2000)):
            with self.assertRaises(DataDependentOutputException):
                tensor.view(-1)[0].item()

    def test_filled_tensors(self) -> None:
        mask = torch.ones(2, 4096, dtype=torch.long, device="cuda")  # attention_mask
        self.assertTrue(torch.all(mask == 1))
        self.assertFalse((mask < 1).any())
        self.assertEqual(torch.arange(3, device="cuda").tolist(), [0, 1, 2])
        self.assertEqual(torch.full((2,), 1.5).tolist(), [1.5, 1.5])
        unknown = torch.randn(3, device="cuda")
        self.assertEqual(torch.zeros_like(unknown).tolist(), [0, 0, 0])
        self.assertEqual(unknown.new_ones(2).tolist(), [1, 1])
        self.assertEqual(torch.full_like(unknown, 2, dtype=torch.long).tolist(), [2, 2, 2])
        self.assertEqual(torch.eye(2).tolist(), [[1, 0], [0, 1]])

    def test_what_happens_to_lie_in_memory_is_unknown(self) -> None:
        for tensor in (torch.empty(2), torch.empty_like(torch.ones(2)), torch.ones(2).new_empty(2),
                       torch.empty_strided((2,), (1,)), torch.ones(1).resize_(2),
                       torch.randint(3, (2,)), torch.randperm(4)):
            with self.assertRaises(DataDependentOutputException):
                tensor[0].item()

    def test_shifted_tokens_are_unknown_where_the_tokens_are(self) -> None:
        tokens = torch.randint(100, (1, 4), device="cuda")
        shifted = tokens.new_zeros(tokens.shape)
        shifted[:, 1:] = tokens[:, :-1].clone()
        with self.assertRaises(DataDependentOutputException):
            shifted.tolist()

    def test_real_tensors_of_the_cpu_stay_known_on_the_device(self) -> None:
        rates = torch.linspace(0, 1, 3)  # real
        self.assertEqual(rates.to("cuda").tolist(), [0, 0.5, 1])
        self.assertEqual((torch.ones(3, device="cuda") * rates.to("cuda")).tolist(), [0, 0.5, 1])

    def test_a_call_that_fails_says_what_pytorch_says(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "shape '\\[5\\]' is invalid for input of size 2"):
            torch.tensor([1, 2]).view(5)


class Recorded(CommandCase):
    files = {"net.py": """
        import torch
        import stowage

        class Staged(torch.nn.Module):
            def __init__(self):
                super().__init__()
                depths = torch.diff(torch.tensor([0, 1, 3])).tolist()
                self.stages = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(sum(depths)))

            def forward(self, x):
                sizes = torch.tensor([x.shape[0], 4], device=x.device)
                for stage in self.stages:
                    x = stage(x)
                return x.reshape(int(sizes.prod()))

        @stowage.step
        def squared(model, x):
            loss = (model(x) ** 2).mean()
            loss.backward()
            return loss

        squared(Staged().cuda(), torch.randn(6, 4, device="cuda"))
    """}

    def test_a_model_that_reads_them_while_it_is_built_and_while_it_runs(self) -> None:
        document = self.record("net.py")
        self.assertEqual([row[0] for row in document["parameters"]],
                         [f"stages.{index}.{name}" for index in range(3) for name in ("weight", "bias")])
        self.assertFalse(document["fixed_batch"])

    def test_a_region_that_makes_one_and_runs_again_in_backward(self) -> None:
        pathlib.Path("again.py").write_text(textwrap.dedent("""
            import torch
            import stowage
            from torch.utils.checkpoint import checkpoint

            def scaled(x):
                return (x * torch.tensor([1.0, 2.0], device=x.device)).exp()

            @stowage.step
            def step(model, x):
                loss = checkpoint(scaled, model(x), use_reentrant=False).mean()
                loss.backward()
                return loss

            step(torch.nn.Linear(3, 2).cuda(), torch.randn(6, 3, device="cuda"))
        """))
        kernels = [row[1] for row in self.record("again.py")["step"]["nodes"]]
        self.assertEqual(kernels.count("aten::exp"), 2)


if __name__ == "__main__":
    unittest.main()
