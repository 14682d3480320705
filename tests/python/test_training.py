"""The ways in which people train: each recorded as it is written."""

from __future__ import annotations

import collections
import subprocess
import sys
import unittest
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import stowage
from command_case import PACKAGE
from references import has
from step_memory import StepMemory


def network(width: int = 64, depth: int = 4) -> nn.Module:
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*layers)


def document_of(model: Any, *inputs: Any, **options: Any) -> dict[str, Any]:
    options = {"loss": lambda output: output.float().mean(), **options}
    return stowage.record(model, inputs, **options).document


def kernels(document: dict[str, Any], phase: str | None = None) -> list[str]:
    return [node[1] for node in document["step"]["nodes"] if phase in (None, node[2])]


def kinds(document: dict[str, Any]) -> set[str]:
    return {row[1] for row in document["step"]["storages"]}


@unittest.skipIf(torch.cuda.is_available(), "a GPU's driver is there")
class AfterABackward(unittest.TestCase):
    def test_a_backward_before_the_recording_is_refused(self) -> None:
        code = ("import torch, stowage\n"
                "net = torch.nn.Linear(4, 4)\n"
                "net(torch.zeros(2, 4)).sum().backward()\n"
                "try:\n"
                "    stowage.record(net, torch.zeros(2, 4), loss=torch.mean)\n"
                "except stowage.StowageError as error:\n"
                "    print(error)\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                              cwd=PACKAGE)
        self.assertEqual(done.stdout, "a backward pass has run in this process before, on a machine "
                                      "without a GPU: PyTorch's engine cannot run one on a pretended "
                                      "device any more\n"
                                      "  record before anything trains, or in a process of its own\n")


class Precision(unittest.TestCase):
    def test_autocast_casts_weights_once(self) -> None:
        document = document_of(network(), torch.zeros(4, 64), precision="amp-bf16")
        copies = [row for row in document["step"]["storages"] if row[1] == "parameter_copy"]
        self.assertEqual(sorted(row[3] for row in copies), [128] * 4 + [8192] * 4)
        self.assertEqual(document["precision"], "amp-bf16")

    def test_a_model_in_bfloat16(self) -> None:
        document = document_of(network(), torch.zeros(4, 64), precision="bf16", optimizer="adamw")
        self.assertEqual({row[1] for row in document["parameters"]}, {"bfloat16"})
        self.assertEqual(document["layouts"][document["step"]["inputs"][1]][0], "bfloat16")

    def test_channels_last_goes_through(self) -> None:
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        model = model.to(memory_format=torch.channels_last)
        images = torch.zeros(2, 3, 8, 8).to(memory_format=torch.channels_last)
        document = document_of(model, images)
        self.assertEqual(document["settings"]["layout"], "nhwc")
        output = document["layouts"][document["step"]["output"][1]]
        self.assertEqual(document["shapes"][output[2]], [288, 1, 48, 8])


class Checkpoint(unittest.TestCase):
    def test_regions_run_again_and_the_peak_is_lower(self) -> None:
        class Checkpointed(nn.Module):
            def __init__(self, on: bool) -> None:
                super().__init__()
                self.blocks = nn.ModuleList(network(64, 2) for _ in range(4))
                self.on = on

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                for block in self.blocks:
                    x = checkpoint(block, x, use_reentrant=False) if self.on else block(x)
                return x

        images = torch.zeros(4096, 64)
        plain, saving = (document_of(Checkpointed(on), images) for on in (False, True))
        self.assertEqual(kernels(saving, "forward"), kernels(plain, "forward"))
        again = [node for node in saving["step"]["nodes"]
                 if node[2] == "backward" and node[1] == "aten::gelu"]
        self.assertEqual(len(again), 8 - 4)
        self.assertLess(StepMemory(saving).peak, 0.7 * StepMemory(plain).peak)

    def test_reentrant_regions_too(self) -> None:
        class Reentrant(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.block = nn.Linear(8, 8), network(8, 2)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return checkpoint(self.block, self.first(x), use_reentrant=True)

        document = document_of(Reentrant(), torch.zeros(4, 8))
        self.assertEqual(kernels(document).count("aten::gelu"), 4)


    def test_gradients_belong_to_the_layers_that_they_are_of(self) -> None:
        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.norm, self.last = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x + self.last(torch.relu(self.norm(self.first(x))))

        class Model(nn.Module):
            def __init__(self, again: bool | None) -> None:
                super().__init__()
                self.blocks = nn.ModuleList(Block() for _ in range(6))
                self.again = again

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                first = torch.autograd._get_sequence_nr()
                x = x + self.blocks[0].first.bias
                for block in self.blocks:
                    x = block(x) if self.again is None else (
                        checkpoint(block, x, use_reentrant=self.again))
                x.register_hook(lambda gradient: count_from(first))
                return x

        def count_from(number: int) -> None:
            """The engine's thread gives the nodes of regions that run again numbers of its own, from
            here on those of forward's first nodes."""
            one = torch.ones((), requires_grad=True)
            with torch.enable_grad():
                while torch.autograd._get_sequence_nr() < number:
                    one + 1

        def gradients(again: bool | None) -> collections.Counter[tuple[str, str]]:
            document = document_of(Model(again), torch.zeros(4, 8))
            self.assertFalse(document["fixed_batch"])
            layers = [row[0] for row in document["origins"]]
            return collections.Counter(
                (node[1], layers[node[3]]) for node in document["step"]["nodes"]
                if node[2] == "backward" and "backward" in node[1])

        plain = gradients(None)
        self.assertEqual(plain["aten::threshold_backward", "blocks.3"], 1)
        self.assertEqual(gradients(False), plain)
        self.assertEqual(gradients(True), plain)


@unittest.skipUnless(has("peft") and has("transformers"), "peft or transformers is not installed")
class Lora(unittest.TestCase):
    def test_adapters_train_and_the_base_is_frozen(self) -> None:
        import peft
        import transformers

        config = transformers.LlamaConfig(hidden_size=64, intermediate_size=128,
                                          num_hidden_layers=2, num_attention_heads=4,
                                          num_key_value_heads=2, vocab_size=256)
        with torch.device("meta"):
            model = peft.get_peft_model(
                transformers.LlamaForCausalLM(config),
                peft.LoraConfig(r=8, lora_alpha=16, lora_dropout=0.05,
                                target_modules=["q_proj", "v_proj"]))
        ids = torch.zeros(2, 16, dtype=torch.int64)
        document = stowage.record(model, {"input_ids": ids, "labels": ids, "use_cache": False},
                                  optimizer="adamw").document
        trained = [row for row in document["parameters"] if row[3] == "trained"]
        self.assertEqual(len(trained), 2 * 2 * 2)
        self.assertTrue(all("lora_" in row[0] for row in trained))
        gradients = [row for row in document["step"]["storages"] if row[1] == "gradient"]
        self.assertEqual(len(gradients), len(trained))
        self.assertFalse(document["fixed_batch"])


class OwnCode(unittest.TestCase):
    def test_a_model_that_trains_in_parts_stays_so(self) -> None:
        model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))
        model[1].eval()
        document = document_of(model, torch.zeros(2, 3, 4, 4))
        self.assertFalse(model[1].training)
        statistics = next(row for row in document["step"]["storages"] if row[0] == "1.running_mean")
        self.assertNotIn("carries_over", (statistics + [{}])[-1])

    def test_a_function_is_a_whole_step(self) -> None:
        model = network()
        optimizer = torch.optim.Adam(model.parameters())
        weight = model[0].weight

        def train(x: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            loss = model(x).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        document = stowage.record(train, torch.zeros(4, 64)).document
        self.assertEqual(document["settings"]["optimizer"]["name"], "adam")
        self.assertIn("aten::_foreach_norm.Scalar", kernels(document, "update"))
        self.assertEqual(len(document["parameters"]), 8)
        self.assertIs(model[0].weight, weight)
        self.assertIs(optimizer.param_groups[0]["params"][0], weight)
        self.assertEqual(len(optimizer.state), 0)

    def test_gradients_are_kept_to_the_end_where_zero_grad_comes_first(self) -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def train(x: torch.Tensor) -> None:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()

        document = stowage.record(train, torch.zeros(4, 64)).document
        gradients = [row for row in document["step"]["storages"] if row[1] == "gradient"]
        self.assertEqual(len(gradients), 8)
        self.assertTrue(all(row[6] == {"held_to_end": True} for row in gradients))

    def test_a_trainer_with_its_model(self) -> None:
        class Trainer:
            def __init__(self) -> None:
                self.model = network()
                self.optimizer = torch.optim.AdamW(self.model.parameters())

            def training_step(self, x: torch.Tensor) -> None:
                with torch.autocast("cuda", torch.float16):
                    loss = self.model(x).float().mean()
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()

        document = stowage.record(Trainer().training_step, torch.zeros(4, 64)).document
        self.assertIn("parameter_copy", kinds(document))
        self.assertEqual(document["settings"]["optimizer"]["name"], "adamw")

    def test_custom_functions_and_hooks(self) -> None:
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
                context.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
                x, = context.saved_tensors
                return gradient * x + gradient * x

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(8, 8)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return Square.apply(self.linear(x))

        net = Net()
        net.linear.register_forward_hook(lambda module, inputs, output: output + 1)
        document = document_of(net, torch.zeros(4, 8))
        self.assertEqual(kernels(document, "forward"),
                         ["aten::addmm", "aten::add.Tensor", "aten::mul.Tensor"])
        # The sum in `backward` is Python's, not the engine's: it makes a tensor.
        self.assertIn("aten::add.Tensor", kernels(document, "backward"))

    def test_optimizers_in_every_form(self) -> None:
        expected = {"foreach": "aten::_foreach_lerp_.Scalar", "fused": "aten::_fused_adam_",
                    "for-loop": "aten::lerp_.Scalar"}
        for implementation, kernel in expected.items():
            with self.subTest(implementation):
                document = document_of(network(), torch.zeros(4, 64), optimizer="adam",
                                       implementation=implementation)
                self.assertIn(kernel, kernels(document, "update"))

    def test_every_fused_optimizer_steps(self) -> None:
        expected = {"sgd": "aten::_fused_sgd_", "momentum": "aten::_fused_sgd_",
                    "adagrad": "aten::_fused_adagrad_", "adamw": "aten::_fused_adamw_"}
        for optimizer, kernel in expected.items():
            with self.subTest(optimizer):
                document = document_of(network(), torch.zeros(4, 64), optimizer=optimizer,
                                       implementation="fused")
                self.assertEqual(kernels(document, "update").count(kernel), 1)

    def test_adafactor_asks_for_a_norm(self) -> None:
        document = document_of(network(), torch.zeros(4, 64), optimizer="adafactor")
        self.assertEqual(document["settings"]["optimizer"]["name"], "adafactor")

    def test_compiled_models_are_recorded_as_eager_ones(self) -> None:
        document = document_of(torch.compile(network()), torch.zeros(4, 64))
        self.assertEqual(document["warnings"][0]["message"], "torch.compile is left out: the step is "
                                                             "recorded as eager PyTorch runs it")
        self.assertEqual(kernels(document, "forward").count("aten::gelu"), 4)

    def test_an_optimizer_that_the_file_cannot_name(self) -> None:
        class Mine(torch.optim.SGD):
            pass

        document = document_of(network(), torch.zeros(4, 64), optimizer=lambda p: Mine(p, lr=0.1))
        self.assertEqual(document["warnings"][0]["message"],
                         "the optimizer is Mine, which 'settings' cannot name; its updates are in "
                         "the step as they ran")

    def test_recurrent_layers_have_one_buffer_of_weights(self) -> None:
        class Tagger(nn.Module):
            def __init__(self, kind: str) -> None:
                super().__init__()
                self.rnn = kind(8, 16, num_layers=2, batch_first=True)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.rnn(x)[0]

        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            with self.subTest(kind.__name__):
                document = document_of(Tagger(kind), torch.zeros(3, 5, 8))
                self.assertIn("aten::_cudnn_rnn", kernels(document, "forward"))
                weights = [row for row in document["step"]["storages"] if row[1] == "parameter"]
                self.assertEqual(len(weights), 1)


class Refusals(unittest.TestCase):
    def refusal(self, model: Any, *inputs: Any, **options: Any) -> stowage.StowageError:
        with self.assertRaises(stowage.StowageError) as caught:
            document_of(model, *inputs, **options)
        return caught.exception

    def test_item_names_the_operator_and_the_line(self) -> None:
        class Looks(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = self.linear(x)
                return x * x.mean().item()

        error = self.refusal(Looks(), torch.zeros(2, 4))
        self.assertRegex(error.message, r"test_training\.py:\d+: aten\._local_scalar_dense\.default "
                                        r"\(in Looks\) reads a tensor's values, and recorded tensors "
                                        r"have none$")

    def test_a_branch_on_values(self) -> None:
        class Branches(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.linear(x) if x.sum() > 0 else x

        self.assertIn("reads a tensor's values", self.refusal(Branches(), torch.zeros(2, 4)).message)

    def test_a_size_that_depends_on_values(self) -> None:
        class Selects(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.linear(x)[x > 0]

        self.assertIn("aten.index.Tensor (in Selects) makes a tensor whose size depends on values",
                      self.refusal(Selects(), torch.zeros(2, 4)).message)

    def test_an_operator_without_shapes(self) -> None:
        with torch.library._scoped_library("stowage_test", "FRAGMENT") as library:
            library.define("opaque(Tensor x) -> Tensor")
            library.impl("opaque", lambda x: x.clone(), "CPU")

            class Opaque(nn.Module):
                def __init__(self) -> None:
                    super().__init__()
                    self.linear = nn.Linear(4, 4)

                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    return torch.ops.stowage_test.opaque(self.linear(x))

            error = self.refusal(Opaque(), torch.zeros(2, 4))
        self.assertRegex(error.message, r"test_training\.py:\d+: stowage_test\.opaque\.default "
                                        r"\(in Opaque\) has no rule for the shapes of its results")
        self.assertIn("register_fake", error.hint)

    def test_a_model_that_does_not_train(self) -> None:
        model = nn.Linear(4, 4).requires_grad_(False)
        self.assertEqual(self.refusal(model, torch.zeros(2, 4)).message,
                         "no parameter of Linear trains")

    def test_a_loss_that_is_no_number(self) -> None:
        error = self.refusal(nn.Linear(4, 4), torch.zeros(2, 4), loss=lambda output: output)
        self.assertEqual(error.message, "the loss is a tensor of shape [2, 4], not a number")

    def test_sparse_gradients(self) -> None:
        error = self.refusal(nn.Embedding(10, 4, sparse=True), torch.zeros(2, 3, dtype=torch.int64))
        self.assertIn("a tensor of layout torch.sparse_coo", error.message)

    def test_an_optimizer_that_runs_the_model(self) -> None:
        error = self.refusal(nn.Linear(4, 4), torch.zeros(2, 4),
                             optimizer=lambda p: torch.optim.LBFGS(p))
        self.assertEqual(error.message, "LBFGS runs the model itself, in a closure")

    def test_words_that_are_none(self) -> None:
        error = self.refusal(nn.Linear(4, 4), torch.zeros(2, 4), precision="fp8")
        self.assertEqual(error.message,
                         "precision='fp8' is none of fp32, fp64, fp16, bf16, amp-fp16, amp-bf16")

    def test_an_unknown_optimizer(self) -> None:
        error = self.refusal(nn.Linear(4, 4), torch.zeros(2, 4), optimizer="adamm")
        self.assertEqual(error.message, "there is no optimizer 'adamm'")
        self.assertIn("adam", error.hint)
