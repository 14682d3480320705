"""What a step file says of a small step: nodes, views, storages, lifetimes, sizes."""

from __future__ import annotations

import unittest
from typing import Any

import torch
import torch.nn.functional as functional
from torch import nn

import stowage
from step_memory import StepMemory
from stowage.document.affine import Affine, NotAffine
from stowage.document.extents import Extent


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def recorded(model: nn.Module | None = None, batch: int = 2, **options: Any) -> dict[str, Any]:
    options = {"target": torch.zeros(batch, dtype=torch.int64), "loss": functional.cross_entropy,
               **options}
    return stowage.record(model or mlp(), torch.zeros(batch, 8), **options).document


def kernels(document: dict[str, Any], phase: str | None = None) -> list[str]:
    return [node[1] for node in document["step"]["nodes"] if phase in (None, node[2])]


def storage(document: dict[str, Any], name: str) -> list[Any]:
    return next(row for row in document["step"]["storages"] if row[0] == name)


def attributes(document: dict[str, Any], kernel: str) -> dict[str, Any]:
    node = next(node for node in document["step"]["nodes"] if node[1] == kernel)
    return document["attributes"][node[5]]


class Fit(unittest.TestCase):
    def test_a_size_is_a_line_through_three_batches(self) -> None:
        affine = Affine([2, 3, 7])
        self.assertEqual(affine.fit((5, 5, 5)), 5)
        self.assertEqual(affine.fit((20, 30, 70)), [0, 10])
        self.assertEqual(affine.fit((7, 8, 12)), [5, 1])

    def test_what_is_no_line_is_none(self) -> None:
        affine = Affine([2, 3, 7])
        self.assertIsNone(affine.fit((4, 9, 49)))
        self.assertIsNone(affine.fit((20, 30, 71)))

    def test_a_stride_along_one_element_says_nothing(self) -> None:
        affine = Affine([1, 2, 3, 7])
        ones = [(4, 1), (4, 2), (4, 3), (4, 7)]
        self.assertEqual(affine.strides(ones, [(1, 1), (2, 16), (3, 16), (7, 16)], "x"), ((0, 1), 16))
        self.assertEqual(affine.strides(ones, [(1, 9), (2, 4), (3, 6), (7, 14)], "x"), ((0, 1), (0, 2)))
        self.assertEqual(affine.strides([(1,)] * 4, [(5,), (9,), (1,), (8,)], "x"), (5,))
        empty = [(0, 4), (1, 4), (2, 4), (6, 4)]
        self.assertEqual(affine.strides(empty, [(4, 7), (9, 1), (8, 1), (8, 1)], "x"), (8, 1))

    def test_a_stride_of_two_batches_is_a_number_or_a_multiple(self) -> None:
        affine = Affine([2, 3, 7])
        shapes = [(1,), (2,), (6,)]
        self.assertEqual(affine.strides(shapes, [(99,), (8,), (8,)], "x"), (8,))
        self.assertEqual(affine.strides(shapes, [(99,), (6,), (14,)], "x"), ((0, 2),))
        for strides in ([(99,), (7,), (15,)], [(1,), (2,), (4,)]):
            with self.assertRaises(NotAffine) as caught:
                affine.strides(shapes, strides, "x")
            self.assertEqual(str(caught.exception), f"x: {tuple(s[0] for s in strides)} at the batches "
                                                    "(2, 3, 7)")

    def test_a_tensor_stays_within_its_storage_at_every_batch(self) -> None:
        rows = Extent(((0, 1), 8), (8, 1), 0, 4)
        rows.check((0, 32), "x")
        for extent, said in (
                (rows._replace(offset=8), "x: at batch 1 it would use 64 bytes of a tensor of 32 bytes"),
                (rows._replace(shape=((0, 2), 8)),
                 "x: at batch 1 it would use 64 bytes of a tensor of 32 bytes"),
                (rows._replace(shape=((-1, 2), 8)),
                 "x: at batch 1048576 it would use 67108832 bytes of a tensor of 33554432 bytes"),
                (rows._replace(shape=((0, 1), (0, 1)), strides=(0, 0)),
                 "x: a tensor has 2 axes that grow with the batch")):
            with self.assertRaises(NotAffine) as caught:
                extent.check((0, 32), "x")
            self.assertEqual(str(caught.exception), said)
        Extent(((0, 1), 0), (8, 1), 800, 4).check((0, 32), "x")


class Document(unittest.TestCase):
    def setUp(self) -> None:
        self.document = recorded()

    def test_head(self) -> None:
        document = self.document
        self.assertEqual((document["format"], document["version"]), ("stowage-step", 1))
        version = torch.__version__.partition("+")[0]
        self.assertEqual(document["written_by"], f"stowage.record 0.1.0, torch {version}")
        self.assertEqual((document["runtime"], document["precision"], document["batch"]),
                         ("pytorch", "fp32", 2))
        self.assertFalse(document["fixed_batch"])

    def test_kernels_are_the_dispatchers_names_in_order(self) -> None:
        self.assertEqual(kernels(self.document, "forward"),
                         ["aten::addmm", "aten::relu", "aten::addmm"])
        self.assertEqual(kernels(self.document, "loss"),
                         ["aten::_log_softmax", "aten::nll_loss_forward"])
        self.assertEqual(kernels(self.document, "update"), ["aten::_foreach_add_.List"])

    def test_arguments_and_results_have_names(self) -> None:
        found = attributes(self.document, "aten::addmm")
        self.assertEqual((found["arguments"], found["results"]), ("self,mat1,mat2", "0"))
        update = attributes(self.document, "aten::_foreach_add_.List")
        self.assertEqual((update["arguments"], update["results"]), ("self:4,other:4", "self:4"))

    def test_views_are_no_nodes(self) -> None:
        self.assertNotIn("aten::t", kernels(self.document))
        transposed = self.document["step"]["nodes"][0][6][5]
        layout = self.document["layouts"][transposed]
        self.assertEqual(self.document["shapes"][layout[1]], [8, 16])
        self.assertEqual(self.document["shapes"][layout[2]], [1, 8])
        self.assertTrue(layout[4])

    def test_sizes_are_affine(self) -> None:
        self.assertEqual(storage(self.document, "0.addmm")[3], [0, 64])
        self.assertEqual(storage(self.document, "0.weight")[3], 512)
        self.assertEqual(storage(self.document, "input")[3], [0, 32])

    def test_classes(self) -> None:
        kinds = {row[0]: row[1] for row in self.document["step"]["storages"]}
        self.assertEqual(kinds["0.weight"], "parameter")
        self.assertEqual(kinds["0.weight.grad"], "gradient")
        self.assertEqual(kinds["1.relu"], "activation")
        self.assertEqual(kinds["loss.nll_loss_forward:1"], "saved_auxiliary")
        self.assertEqual(kinds["2.mm"], "activation_gradient")

    def test_output_and_loss_are_kept_until_they_are_assigned_again(self) -> None:
        self.assertEqual(storage(self.document, "2.addmm")[6], {"replaced_after": 2})
        self.assertEqual(storage(self.document, "loss.nll_loss_forward")[6], {"replaced_after": 4})

    def test_saved_tensors_have_roles(self) -> None:
        names = [row[0] for row in self.document["step"]["storages"]]
        saved = {(names[row[1]], row[2]) for row in self.document["step"]["saved"]}
        self.assertIn(("input", "mat1"), saved)
        self.assertIn(("1.relu", "result"), saved)
        self.assertIn(("2.weight", "mat2"), saved)

    def test_optimizer_state_is_made_by_the_first_step(self) -> None:
        document = recorded(optimizer="adam")
        row = storage(document, "adam.0.weight.exp_avg")
        self.assertEqual(row[1:4], ["optimizer_state", "persistent", 512])
        self.assertEqual(row[6], {"carries_over": True})
        self.assertEqual(document["step"]["host_state_bytes"], 4 * 4)

    def test_state_that_is_made_with_the_optimizer_says_so(self) -> None:
        row = storage(recorded(optimizer="adagrad"), "adagrad.0.weight.sum")
        self.assertEqual(row[6], {"carries_over": True, "before_first_step": True})

    def test_gradients_that_are_zeroed_in_place_stay(self) -> None:
        document = recorded(zero_grad_to_none=False)
        row = storage(document, "0.weight.grad")
        self.assertEqual(row[1:3], ["gradient", "persistent"])
        self.assertIn("first_made_by", row[6])
        self.assertEqual(document["settings"]["zero_grad"], "to_zero")
        self.assertGreater(StepMemory(document).live[0], StepMemory(document, first=True).live[0])

    def test_inference_has_no_loss_and_no_gradients(self) -> None:
        document = recorded(mode="inference")
        self.assertEqual(document["settings"]["mode"], "inference")
        self.assertEqual(document["step"]["losses"], [])
        self.assertEqual(set(document["step"]["gradients"]), {-1})
        self.assertEqual(kernels(document), ["aten::addmm", "aten::relu", "aten::addmm"])

    def test_accumulation_repeats_forward_and_backward(self) -> None:
        document = recorded(micro_batches=3)
        self.assertEqual(len(document["step"]["losses"]), 2 * 3)
        self.assertEqual(sorted({node[4] for node in document["step"]["nodes"]}), [0, 1, 2])
        self.assertEqual(kernels(document, "update"), ["aten::_foreach_add_.List"])

    def test_what_is_there_for_each_micro_batch(self) -> None:
        part = self.document["step"]["micro_batch"]
        nodes, rows = self.document["step"]["nodes"], self.document["step"]["storages"]
        self.assertEqual(part["nodes"], [0, len(nodes) - 1])
        self.assertEqual([row[0] for row in rows[:part["storages"][0]]],
                         ["0.weight", "0.bias", "2.weight", "2.bias"])
        self.assertEqual(part["storages"][1], len(rows))
        arrived = {rows[row[2][0]][0]: nodes[row[1]][0] for row in part["arrivals"]}
        self.assertEqual(arrived, {"2.weight.grad": "2.mm.2", "2.bias.grad": "2.sum",
                                   "0.weight.grad": "0.mm", "0.bias.grad": "0.sum"})
        self.assertEqual([(row[0], rows[row[1]][0]) for row in part["variables"]],
                         [("result", "2.addmm"), ("result", "loss.nll_loss_forward"),
                          ("first_gradient", "loss.ones_like"), ("input", "input"),
                          ("input", "target")])

    def test_a_step_of_several_micro_batches_is_not_repeated(self) -> None:
        self.assertNotIn("micro_batch", recorded(micro_batches=2)["step"])

    def test_tied_weights_are_one_storage(self) -> None:
        model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
        model[1].weight = model[0].weight
        document = recorded(model)
        self.assertEqual([row[0] for row in document["parameters"]],
                         ["0.weight", "0.bias", "1.bias"])

    def test_the_model_has_its_own_tensors_afterwards(self) -> None:
        model = mlp()
        weight = model[0].weight
        recorded(model)
        self.assertIs(model[0].weight, weight)
        self.assertEqual(weight.device.type, "cpu")
        self.assertIsNone(weight.grad)


class Batches(unittest.TestCase):
    def test_sizes_that_grow_faster_fix_the_batch(self) -> None:
        class Contrastive(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(8, 8)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = self.linear(x)
                return y @ y.t()

        document = stowage.record(Contrastive(), torch.zeros(4, 8),
                                  loss=lambda output: output.mean()).document
        self.assertTrue(document["fixed_batch"])
        self.assertEqual(document["batch"], 4)
        self.assertRegex(document["warnings"][0]["message"], "^the step is recorded for batch 4 alone")

    def test_a_step_that_splits_its_batch_fixes_it(self) -> None:
        model = nn.Linear(8, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def accumulate(x: torch.Tensor) -> None:
            for part in x.chunk(2):
                model(part).mean().backward()
            optimizer.step()
            optimizer.zero_grad()

        document = stowage.record(accumulate, torch.zeros(4, 8)).document
        self.assertTrue(document["fixed_batch"])
        self.assertEqual(document["warnings"][0]["message"],
                         "the step is recorded for batch 4 alone: Linear.addmm: (2, 3, 6) at the "
                         "batches (4, 5, 11)")

    def test_a_step_that_raises_at_other_batches_fixes_it(self) -> None:
        class Fixed(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(8, 4)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.linear(x) + torch.zeros(4, 4, device=x.device)

        document = stowage.record(Fixed(), torch.zeros(4, 8),
                                  loss=lambda output: output.mean()).document
        self.assertTrue(document["fixed_batch"])
        self.assertEqual(len(document["warnings"]), 1)
        self.assertRegex(document["warnings"][0]["message"], "^the step is recorded for batch 4 alone: "
                                                             "at batch 5 it raises RuntimeError: ")
        output = next(row for row in document["step"]["storages"] if row[0] == "Fixed.add")
        self.assertIn("replaced_after", output[6])

    def test_another_axis_may_be_the_batch(self) -> None:
        document = stowage.record(nn.Linear(8, 4), torch.zeros(5, 3, 8), batch_axes=1,
                                  loss=lambda output: output.sum()).document
        self.assertEqual(document["batch"], 3)
        self.assertEqual(storage(document, "input")[3], [0, 5 * 8 * 4])

    def test_an_axis_that_is_no_multiple_of_the_batch_is_refused(self) -> None:
        with self.assertRaises(stowage.StowageError) as caught:
            stowage.record(nn.Linear(8, 4), {"input": torch.zeros(4, 8), "other": torch.zeros(6)},
                           loss=lambda output: output.sum())
        self.assertEqual(caught.exception.message,
                         "input 1 of shape [6] has 6 along axis 0, which is no multiple of the batch 4")
