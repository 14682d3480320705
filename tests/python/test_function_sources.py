"""FILE.py:FUNCTION: which axes of its inputs are the batch, and what is said where none is known."""

from __future__ import annotations

import pathlib
import sys
import unittest
from typing import Any

import torch

import stowage
from command_case import CommandCase

PARTS = """
    import random, torch
    from torch import nn
    import torch.nn.functional as functional

    def squares(output):
        return output.square().mean()

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(50, 8)
            self.rnn = nn.LSTM(8, 16, 2)

        def forward(self, tokens):
            return self.rnn(self.embed(tokens))[0].flatten(0, 1)

    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)

        def forward(self, x, mask, scale=1):
            return self.layer(x, src_mask=mask) * scale

    class Edges(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 8)

        def forward(self, x, edges):
            y = self.linear(x)
            return torch.zeros_like(y).index_add(0, edges[1], y[edges[0]])

    class Clips(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 4)

        def forward(self, frames, clips):
            return self.linear(frames).view(clips.shape[0], -1, 4).mean(1) + clips

    class Noise(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 4)

        def forward(self, samples):
            return self.linear(torch.randn(samples, 8, device=self.linear.weight.device))

    class Built(nn.Module):
        # for a batch: by a parameter, by a number
        def __init__(self, batch, parameter):
            super().__init__()
            self.identity = random.getrandbits(40)
            self.linear = nn.Linear(8, 4)
            self.state = nn.Parameter(torch.zeros(batch, 4)) if parameter else None
            if not parameter:
                self.rows = batch

        def forward(self, x):
            state = self.state
            if state is None:
                state = torch.zeros(self.rows, 4, device=x.device)
            return self.linear(x) + state

    class Heads(nn.Module):
        # at batch 1 one of its views has another stride, along an axis of one element
        def __init__(self):
            super().__init__()
            self.qkv = nn.Conv1d(8, 24, 1)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, 1)
            scores = torch.einsum("bct,bcs->bts", q, k).softmax(-1)
            return torch.einsum("bts,bcs->bct", scores, v)

    class Pairs(nn.Module):
        # at batch 1 the copy is left out
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 4)

        def forward(self, x):
            return self.linear(x.transpose(0, 1).contiguous())

    class Looks(nn.Module):
        # its constructor reads values
        def __init__(self):
            super().__init__()
            self.scale = torch.ones(3).sum().item()
            self.rates = torch.linspace(0, 1, 3).numpy().tolist()
            self.linear = nn.Linear(8, 4)

        def forward(self, x):
            return self.linear(x) * self.scale

    class Branches(Looks):
        def forward(self, x):
            y = self.linear(x)
            return y if y.sum() > 0 else -y
"""
FUNCTIONS = PARTS + """
    def time_first(batch):
        return Tagger(), torch.zeros(5, batch, dtype=torch.long), squares

    def with_mask(batch):
        return Masked(), (torch.zeros(batch, 6, 8), torch.zeros(6, 6)), squares

    def in_a_dict(batch):
        return Masked(), {"x": torch.zeros(batch, 6, 8), "mask": torch.zeros(6, 6),
                          "scale": torch.tensor(2.0)}, squares

    def clips(batch):
        return Clips(), [torch.zeros(16 * batch, 8), torch.zeros(batch, 4)], squares

    def samples(batch):
        return Noise(), batch, squares

    def at_a_time_step(batch):
        # another number at each call, which decides no size
        return Masked(), (torch.zeros(batch, 6, 8), torch.zeros(6, 6), next(times)), squares

    times = iter(range(9))

    def own_input_as_target(batch):
        images = torch.zeros(batch, 8)
        return nn.Linear(8, 8), images, images, functional.mse_loss

    def loss_of_the_batch(batch):
        return nn.Linear(8, 4), torch.zeros(batch, 8), lambda out: out.view(batch, 4).mean()

    def loss_of_the_model(batch):
        net = nn.Linear(8, 4)
        return net, torch.zeros(batch, 8), lambda out: out.mean() + net.weight.square().sum()

    def keyword_only(*, batch):
        return nn.Linear(8, 4), torch.zeros(batch, 8), squares

    def positional_only(batch, /):
        return nn.Linear(8, 4), torch.zeros(batch, 8), squares

    def default(batch_size=6):
        return nn.Linear(8, 4), torch.zeros(batch_size, 8), squares

    def edges():
        return Edges(), (torch.zeros(20, 4), torch.zeros(2, 40, dtype=torch.long)), squares

    def whatever(*arguments, **options):
        assert not arguments and not options
        return nn.Linear(8, 4), torch.zeros(5, 3, 8), squares

    def multiples_of_four(batch):
        if batch % 4:
            raise ValueError("no multiple of 4")
        return nn.Linear(8, 4), torch.zeros(batch, 8), squares

    def ignores_its_batch(batch):
        return nn.Linear(8, 4), torch.zeros(5, 8), squares

    def any_length(batch):
        return nn.Linear(8, 4), torch.zeros(batch, next(lengths), 8), squares

    lengths = iter((3, 7))

    def state_of_the_batch(batch):
        return Built(batch, True), torch.zeros(batch, 8), squares

    def number_of_the_batch(batch):
        return Built(batch, False), torch.zeros(batch, 8), squares

    def alone(batch):
        return Built(batch, True)

    def once(batch):
        global was_called
        if was_called:
            raise RuntimeError("defined already")
        was_called = True
        return nn.Linear(8, 4), torch.zeros(batch, 8), squares

    was_called = False

    def on_a_gpu(batch):
        return nn.Linear(8, 4).cuda(), torch.zeros(batch, 8), squares

    def weighted(batch):
        weight = torch.ones(batch, 4)
        return nn.Linear(8, 4), torch.zeros(batch, 8), lambda out: (out * weight).mean()

    def weighted_on_the_device(batch):
        weight = torch.ones(batch, 4)
        return (nn.Linear(8, 4), torch.zeros(batch, 8),
                lambda out: (out * weight.to(out.device)).mean())

    model = nn.Linear(8, 4)

    def sparse(batch):
        return nn.Linear(8, 4), torch.zeros(batch, 8).to_sparse(), squares

    def leaves(batch):
        raise SystemExit(3)

    def heads(batch):
        return Heads(), torch.zeros(batch, 8, 16), squares

    def neighbours(batch):
        # differences of samples: at batch 2 there is one, whose strides say nothing
        net = nn.Linear(8, 4)
        return net, torch.zeros(batch, 8), lambda out: (out[1:] - out[:-1]).t().square().mean()

    def after_two(batch):
        # all samples but two: none at batch 2
        return nn.Linear(8, 4), torch.zeros(batch, 8), lambda out: out[2:].square().mean()

    def pairs(batch):
        return Pairs(), torch.zeros(batch, 6, 8), squares

    def looks(batch):
        return Looks(), torch.zeros(batch, 8), squares

    def branches(batch):
        return Branches(), torch.zeros(batch, 8), squares
"""
NO_BATCH = ("'net.py:{0}' takes no batch, and nothing says which axis of its inputs is the batch")
NO_BATCH_HINT = ("let it take the batch: def {0}(batch), or say which axis is: --batch-axes 0, or "
                 "--batch-axes 0,1,none for each tensor")


def storages(document: dict[str, Any], kind: str = "") -> dict[str, Any]:
    """{name: bytes} of the storages of a kind."""
    return {row[0]: row[3] for row in document["step"]["storages"] if kind in ("", row[1])}


class FunctionSource(CommandCase):
    files = {"net.py": FUNCTIONS}

    def follows(self, function: str, *words: str) -> dict[str, Any]:
        """The file of a function whose sizes follow the batch, without a warning."""
        document, errors = self.recorded(f"net.py:{function}", *words)
        self.assertEqual((document["fixed_batch"], document["warnings"], errors), (False, [], ""))
        return document

    def fixed(self, function: str, *words: str) -> tuple[int, str]:
        """(batch, the one warning) of a function whose step is recorded for its batch alone."""
        document, errors = self.recorded(f"net.py:{function}", *words)
        self.assertTrue(document["fixed_batch"])
        message, hint = document["warnings"][0]["message"], document["warnings"][0]["hint"]
        self.assertEqual((len(document["warnings"]), errors), (1, f"warning: {message}\n  {hint}\n"))
        return document["batch"], message


class Axes(FunctionSource):
    def test_the_second_axis_is_the_batch(self) -> None:
        """A function that takes the batch gives what `batch_axes` says of its inputs."""
        document = self.follows("time_first", "--batch", "32")
        self.assertEqual(storages(document, "input"), {"input": [0, 5 * 8]})
        sys.path.insert(0, self.folder)
        self.addCleanup(sys.path.remove, self.folder)
        import net

        model, tokens, loss = net.time_first(32)
        said = stowage.record(model, tokens, loss=loss, batch_axes=1).document
        self.assertEqual(said["batch"], 32)
        self.assertEqual(storages(document), storages(said))
        self.assertEqual([node[:3] for node in document["step"]["nodes"]],
                         [node[:3] for node in said["step"]["nodes"]])

    def test_an_input_without_a_batch_axis(self) -> None:
        document = self.follows("with_mask", "--batch", "4")
        self.assertEqual(storages(document, "input"), {"input.0": [0, 192], "input.1": 144})
        self.assertEqual(self.check()["verdict"], "fits")

    def test_keywords_and_a_tensor_without_axes(self) -> None:
        self.assertEqual(storages(self.follows("in_a_dict"), "input"),
                         {"x": [0, 192], "mask": 144, "scale": 4})

    def test_an_axis_of_several_times_the_batch(self) -> None:
        self.assertEqual(storages(self.follows("clips"), "input"),
                         {"input.0": [0, 512], "input.1": [0, 16]})

    def test_a_batch_that_is_a_number(self) -> None:
        self.assertEqual(storages(self.follows("samples"))["Noise.randn"], [0, 32])

    def test_a_number_that_is_another_at_each_call(self) -> None:
        self.follows("at_a_time_step")

    def test_an_input_that_is_its_own_target_is_one_tensor(self) -> None:
        document = self.follows("own_input_as_target")
        self.assertEqual(list(storages(document, "input").values()), [[0, 32]])
        self.assertEqual(self.check()["verdict"], "fits")

    def test_a_loss_of_the_batch_and_one_of_the_model(self) -> None:
        self.follows("loss_of_the_batch", "--batch", "4")
        self.follows("loss_of_the_model", "--batch", "4")

    def test_how_a_function_may_take_the_batch(self) -> None:
        for function, batch in (("keyword_only", 2), ("positional_only", 2), ("default", 6)):
            with self.subTest(function):
                self.assertEqual(self.follows(function)["batch"], batch)
                self.assertEqual(self.follows(function, "--batch", "5")["batch"], 5)


class NoBatch(FunctionSource):
    def test_a_function_that_takes_no_batch_has_its_own_inputs_alone(self) -> None:
        for function in ("edges", "whatever"):
            with self.subTest(function):
                self.assertEqual(self.fixed(function), (
                    1, f"the step is recorded for batch 1 alone: {NO_BATCH.format(function)}"))
                self.assertEqual(self.check()["verdict"], "fits")

    def test_another_batch_of_it_is_asked_for(self) -> None:
        self.assertEqual(self.mistake("net.py:whatever", "--batch", "8"),
                         f"error: --batch 8: {NO_BATCH.format('whatever')}\n"
                         f"  {NO_BATCH_HINT.format('whatever')}\n")

    def test_the_command_line_says_the_axes(self) -> None:
        document = self.follows("whatever", "--batch-axes", "0", "--batch", "8")
        self.assertEqual((document["batch"], storages(document, "input")), (8, {"input": [0, 96]}))
        document = self.follows("whatever", "--batch-axes", "1")
        self.assertEqual((document["batch"], storages(document, "input")), (3, {"input": [0, 160]}))
        document = self.record("net.py:edges", "--batch-axes", "none,none")
        self.assertEqual((document["batch"], document["fixed_batch"], document["warnings"]),
                         (1, True, []))

    def test_axes_that_no_tensor_has(self) -> None:
        for axes, message in (
                ("3", "--batch-axes: input 0 has 3 axes and no axis 3\n"),
                ("0,none", "--batch-axes has 2 entries for 1 tensors\n  one for each, none where a "
                           "tensor does not follow the batch\n")):
            self.assertEqual(self.mistake("net.py:whatever", "--batch-axes", axes), f"error: {message}")
        self.assertEqual(self.mistake("net.py:edges", "--batch-axes", "none", "--batch", "3"),
                         "error: batch 3 is asked for, and no input follows the batch\n  leave the batch "
                         "out, or say by --batch-axes which axis is the batch\n")
        self.assertIn("argument --batch-axes: invalid axes value: 'first'",
                      self.mistake("net.py:edges", "--batch-axes", "first"))

    def test_axes_where_they_are_known(self) -> None:
        self.assertEqual(self.mistake("net.py:default", "--batch-axes", "0"),
                         "error: --batch-axes: 'net.py:default' takes the batch itself\n"
                         "  leave it out\n")

    def test_an_axis_that_is_none_fixes_the_batch(self) -> None:
        """The second row of [2, edges] is not there at batch 1."""
        self.assertEqual(self.fixed("edges", "--batch-axes", "0"), (
            2, "the step is recorded for batch 2 alone: Edges.index_add: at batch 1 it would use 640 "
               "bytes of a tensor of 320 bytes"))
        self.assertEqual(self.check()["verdict"], "fits")

    def test_an_export_asks(self) -> None:
        self.assertEqual(self.mistake("net.py:whatever", "--loss", "mse", command="export"),
                         f"error: {NO_BATCH.format('whatever')}\n  {NO_BATCH_HINT.format('whatever')}\n")
        code, output, errors = self.run_command(
            "export", "net.py:whatever", "--loss", "mse", "--batch-axes", "0", "-o", "-")
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("  input: {shape: [batch, 3, 8]}\n", output)


class OneBatchAlone(FunctionSource):
    def test_a_function_that_raises_at_another_batch(self) -> None:
        self.assertEqual(self.fixed("multiples_of_four", "--batch", "8"), (
            8, "the step is recorded for batch 8 alone: at batch 9 it raises ValueError: no multiple of "
               "4"))

    def test_a_function_that_can_be_called_once(self) -> None:
        self.assertEqual(self.fixed("once", "--batch", "8"), (
            8, "the step is recorded for batch 8 alone: a second call of 'net.py:once' raises "
               "RuntimeError: defined already"))

    def test_inputs_that_do_not_follow_the_batch(self) -> None:
        self.assertEqual(self.fixed("ignores_its_batch", "--batch", "8"), (
            8, "the step is recorded for batch 8 alone: 'net.py:ignores_its_batch' returns inputs of the "
               "same sizes at batch 8 and at batch 9"))

    def test_a_model_that_is_built_for_a_batch(self) -> None:
        said = "the step is recorded for batch 4 alone: the model is built for a batch: its "
        for function, what in (("state_of_the_batch", "state is [4, 4] at batch 4 and [5, 4] at batch 5"),
                               ("number_of_the_batch", "rows is 4 at batch 4 and 5 at batch 5")):
            self.assertEqual(self.fixed(function, "--batch", "4"), (4, said + what))
        self.assertEqual(self.fixed("alone", "--batch", "4", "--input", "8")[1],
                         said + "state is [4, 4] at batch 4 and [5, 4] at batch 5")
        self.assertEqual(
            self.mistake("net.py:state_of_the_batch", "--loss", "mse", command="export"),
            "error: state_of_the_batch has no description: the model is built for a batch: its state is "
            "[2, 4] at batch 2 and [3, 4] at batch 3\n  record it at the batch that is asked for\n")

    def test_inputs_that_are_others_at_each_call(self) -> None:
        self.assertEqual(self.mistake("net.py:any_length"),
                         "error: 'net.py:any_length' returns other inputs at each call: input 0 is "
                         "[2, 3, 8], then [2, 7, 8]\n  let it return inputs of the same sizes each time, "
                         "the largest that a step gets\n")

    def test_a_loss_that_reads_another_tensor(self) -> None:
        self.assertEqual(self.mistake("net.py:weighted"),
                         "error: the loss reads a tensor that is neither the model's output nor its "
                         "target\n  return it as the target: model, inputs, target, loss; or let the "
                         "loss move it: weight.to(output.device)\n")
        self.follows("weighted_on_the_device")

    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_a_function_that_asks_for_a_gpu(self) -> None:
        line = pathlib.Path("net.py").read_text().split("\n").index(
            "    return nn.Linear(8, 4).cuda(), torch.zeros(batch, 8), squares") + 1
        self.assertEqual(self.mistake("net.py:on_a_gpu"),
                         f"error: net.py:{line}: 'net.py:on_a_gpu' asks for a GPU, and there is none\n  "
                         "leave the device out of it: the model and its inputs are recorded on a device "
                         "that is pretended\n")

    def test_a_model_that_is_no_function(self) -> None:
        self.assertEqual(self.mistake("net.py:model", "--input", "8"),
                         "error: 'net.py:model' is a model, not a function that returns one\n"
                         "  def build_model(): return model\n")

    def test_inputs_that_are_sparse(self) -> None:
        self.assertEqual(self.mistake("net.py:sparse"),
                         "error: an input is a tensor of layout torch.sparse_coo\n"
                         "  sparse tensors are not recorded\n")

    def test_a_function_that_ends_the_process(self) -> None:
        self.assertEqual(self.mistake("net.py:leaves"),
                         "error: net.py ended with exit code 3 before its step\n  its own options stand "
                         "after --: record train.py -o s.json -- --epochs 1\n")


class BatchOfOne(FunctionSource):
    def test_a_stride_along_one_element_fixes_nothing(self) -> None:
        one, two = (self.follows("heads", "--batch", batch) for batch in ("1", "2"))
        self.assertEqual((one["batch"], two["batch"]), (1, 2))
        self.assertEqual(storages(one), storages(two))
        self.assertEqual(one["layouts"], two["layouts"])
        self.assertEqual(one["shapes"], two["shapes"])

    def test_one_element_of_another_axis_fixes_nothing(self) -> None:
        two, four = (self.follows("neighbours", "--batch", batch) for batch in ("2", "4"))
        self.assertEqual(storages(two), storages(four))

    def test_a_view_of_all_samples_but_two_follows_the_batch(self) -> None:
        self.follows("after_two", "--batch", "8")
        self.assertEqual(self.check("--batch", "3")["verdict"], "fits")

    def test_a_kernel_that_one_sample_does_without_fixes_it(self) -> None:
        batch, message = self.fixed("pairs", "--batch", "1")
        self.assertEqual(batch, 1)
        self.assertRegex(message, r"^the step is recorded for batch 1 alone: the step has \d+ kernels at "
                                  r"batch 1 and \d+ at batch 2")
        self.follows("pairs", "--batch", "2")


class Values(FunctionSource):
    def test_a_model_that_reads_values_while_it_is_built(self) -> None:
        document = self.follows("looks", "--batch", "4")
        self.assertEqual(storages(document, "parameter"), {"linear.weight": 128, "linear.bias": 16})

    def test_a_model_that_reads_values_while_it_runs(self) -> None:
        line = pathlib.Path("net.py").read_text().split("\n").index(
            "        return y if y.sum() > 0 else -y") + 1
        self.assertEqual(
            self.mistake("net.py:branches"),
            f"error: net.py:{line}: aten._local_scalar_dense.default (in Branches) reads a tensor's "
            "values, and recorded tensors have none\n  take .item(), bool(tensor), masks as indices and "
            "the like out of what is recorded\n")
