"""What `export` writes: blocks, repeats, conditions, names, the loss; and what it refuses."""

from __future__ import annotations

import pathlib
import tempfile
import unittest
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as functional
from torch import nn

from exported import Attention, Net, Unit, source, text_of
from stowage import __main__ as command_line
from stowage.errors import StowageError
from stowage.export import export
from stowage.export.capture import Operation, Value

if TYPE_CHECKING:
    from collections.abc import Callable

NET = """\
model: net
source: a test
inputs:
  image: {shape: [batch, 3, 8, 8]}
  label: {shape: [batch], dtype: int64}
blocks:
  unit:
    arguments: {channels: 16, stride: 1, has_shortcut: false}
    layers:
      - conv2d: {name: conv, channels: channels, kernel: 3, stride: stride, padding: 1, bias: false}
      - batch_norm: {name: norm}
      - conv2d: {name: shortcut, from: input, when: has_shortcut, channels: 16, kernel: 1, stride: 2}
      - add: {from: [shortcut, norm]}
      - relu: {name: act, in_place: true}
layers:
  - conv2d: {name: stem, channels: 8, kernel: 3, padding: 1}
  - unit: {name: stage1, repeat: 2, channels: 8}
  - unit: {name: stage2, repeat: 3, stride: 2 if index == 0 else 1, has_shortcut: index == 0}
  - mean: {axes: [2, 3]}
  - dropout: {name: drop, p: 0.2}
  - linear: {name: head, features: 10}
loss:
  cross_entropy: {from: [head, label]}
"""


class Sequence(nn.Module):
    """A list of modules as one."""

    def __init__(self, *modules: nn.Module, forward: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.parts = nn.ModuleList(modules)
        self.how = forward

    def forward(self, x: torch.Tensor) -> Any:
        if self.how:
            return self.how(self, x)
        for part in self.parts:
            x = part(x)
        return x


def layers_of(text: str) -> str:
    return text[text.index("layers:\n"):text.rindex("loss:")]


class Text(unittest.TestCase):
    maxDiff = None

    def test_modules_become_blocks_with_arguments(self) -> None:
        self.assertEqual(text_of(Net(), 3, 8, 8), NET)

    def test_the_same_model_gives_the_same_bytes(self) -> None:
        self.assertEqual(text_of(Net(), 3, 8, 8), text_of(Net(), 3, 8, 8))

    def test_parameters_read_by_operators_are_layers(self) -> None:
        text = text_of(Attention(), 6, 16)
        self.assertIn("  - parameter: {name: table, shape: [1, 6, 16]}\n", text)
        self.assertIn("scaled_dot_product_attention: {from: [reshape_2, reshape_3, reshape_4]}",
                      text)

    def test_a_module_that_runs_twice_ties_its_parameters(self) -> None:
        shared = nn.Linear(4, 4)
        self.assertEqual(layers_of(text_of(Sequence(shared, nn.ReLU(), shared), 4)), """\
layers:
  - linear: {name: parts_0, features: 4}
  - relu: {name: parts_1}
  - linear: {name: parts_2, features: 4, tie: {weight: parts_0.weight, bias: parts_0.bias}}
""")

    def test_stochastic_depth_along_a_chain_is_linear_in_the_index(self) -> None:
        import importlib.util
        if importlib.util.find_spec("torchvision") is None:
            self.skipTest("torchvision is not installed")
        from torchvision.ops import StochasticDepth

        class Dropped(nn.Module):
            def __init__(self, p: float) -> None:
                super().__init__()
                self.linear = nn.Linear(4, 4)
                self.depth = StochasticDepth(p, "row")

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x + self.depth(self.linear(x))

        text = text_of(Sequence(*(Dropped(0.1 * n) for n in range(3))), 4)
        self.assertIn("  - dropped: {name: parts, repeat: 3, p: 0.1 * index}\n", text)
        self.assertIn("      - drop_path: {name: depth, p: p}\n", text)

    def test_auxiliary_losses_keep_their_weight(self) -> None:
        def two(model: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return model.parts[0](x), model.parts[1](x)

        def loss(output: Any, target: Any) -> torch.Tensor:
            first, second = output
            return (functional.mse_loss(first, target) + 0.3 * functional.mse_loss(second, target))

        text = text_of(Sequence(nn.Linear(4, 4), nn.Linear(4, 4), forward=two), 4, loss=loss,
                       target=(4,))
        self.assertTrue(text.endswith("""\
loss:
  - mse: {from: [parts_0, label]}
  - mse: {from: [parts_1, label], weight: 0.3}
"""), text)

    def test_what_nothing_reads_is_kept(self) -> None:
        model = Sequence(nn.Linear(4, 4), nn.Linear(4, 2), forward=lambda m, x: m.parts[0](x))
        model.register_buffer("mean", torch.zeros(3))
        self.assertEqual(layers_of(text_of(model, 4)), """\
layers:
  - linear: {name: parts_0, features: 4}
  - parameter: {name: parts_1_weight, shape: [2, 4]}
  - parameter: {name: parts_1_bias, shape: [2]}
  - constant: {name: mean, shape: [3], buffer: true}
""")

    def test_frozen_parameters(self) -> None:
        model = Sequence(nn.Linear(4, 4), nn.Linear(4, 2))
        model.parts[0].requires_grad_(False)
        self.assertEqual(layers_of(text_of(model, 4)), """\
layers:
  - linear: {name: parts_0, features: 4, frozen: true}
  - linear: {name: parts_1, features: 2}
""")

    def test_what_is_written_over_a_part_is_a_layer(self) -> None:
        def written(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            y = model.parts[0](x)
            y[:, 2:, 1] = model.parts[1](x)[:, 2:, 0]
            return model.parts[1](y)

        text = text_of(Sequence(nn.Linear(4, 4), nn.Linear(4, 4), forward=written), 5, 4)
        self.assertIn("slice_scatter: {from: [parts_0, reshape_2], start: [0, 2, 1], "
                      "in_place: true}", text)

    def test_a_view_that_shows_what_was_written_is_refused(self) -> None:
        def written(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            y = model.parts[0](x)
            seen = y[:, 1:]
            y[:, 2:] = x[:, 2:]
            return seen

        with self.assertRaises(StowageError) as caught:
            text_of(Sequence(nn.Linear(4, 4), forward=written), 5, 4)
        self.assertIn("aten.copy_ into a tensor of which a view is read afterwards",
                      caught.exception.message)

    def test_evaluation_mode_of_a_part_is_kept(self) -> None:
        norm = nn.BatchNorm2d(3)
        norm.train = lambda mode=True: norm  # as who freezes a backbone writes
        norm.training = False
        text = text_of(Sequence(norm, nn.Flatten(), nn.Linear(12, 2)), 3, 2, 2)
        self.assertIn("batch_norm: {name: parts_0, training: false}", text)


class Refusals(unittest.TestCase):
    maxDiff = None

    def test_all_unknown_operators_are_named_at_once(self) -> None:
        def strange(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            return model.parts[0](torch.special.i0(x)) + torch.special.i1(torch.special.i0(x))

        with self.assertRaises(StowageError) as caught:
            text_of(Sequence(nn.Linear(4, 4), forward=strange), 4)
        self.assertEqual(caught.exception.message, """\
the catalogue of layers lacks what this model runs:
      2  aten.special_i0  in the model itself
      1  aten.special_i1  in the model itself""")

    def test_a_sum_past_a_norm_reads_the_value_before_the_norm(self) -> None:
        class TinyRMSNorm(nn.Module):
            """As transformers writes it: the cast to float32 is its input itself, which the sum reads."""

            def __init__(self) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.ones(4))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = x.to(torch.float32)
                x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
                return self.weight * x.to(torch.float32)

        def residual(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            stem, norm, inner = model.parts
            x = stem(x)
            return x + inner(norm(x))

        text = text_of(Sequence(nn.Linear(4, 4), TinyRMSNorm(), nn.Linear(4, 4), forward=residual), 4)
        self.assertEqual(layers_of(text), """\
layers:
  - linear: {name: parts_0, features: 4}
  - rms_norm: {name: parts_1, implementation: composite}
  - linear: {name: parts_2, features: 4}
  - add: {from: [parts_2, parts_0]}
""")

    def test_a_value_that_names_its_maker_can_be_printed(self) -> None:
        value = Value("result", (2,), "float32")
        value.producer = Operation("relu", "", {"self": value}, [value], ())
        value.readers.append(value.producer)
        self.assertEqual(repr(value), "Value(kind='result', shape=(2,), dtype='float32', name='', "
                                      "index=0, frozen=False, order=())")

    def test_what_depends_on_the_batch_is_refused(self) -> None:
        def by_batch(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            return model.parts[0](x) if x.shape[0] % 2 else model.parts[0](x).relu()

        with self.assertRaises(StowageError) as caught:
            text_of(Sequence(nn.Linear(4, 4), forward=by_batch), 4)
        self.assertEqual(caught.exception.message,
                         "the operations that run depend on the batch or sequence length")

    def test_what_runs_among_the_samples_is_refused(self) -> None:
        def among(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            return model.parts[0]((x @ x.t()).softmax(-1) @ x)

        with self.assertRaises(StowageError) as caught:
            text_of(Sequence(nn.Linear(4, 4), forward=among), 4)
        self.assertEqual(caught.exception.message, """\
the catalogue of layers lacks what this model runs:
      1  aten.matmul among the samples of a batch: what it makes grows with the square of the batch\
  in the model itself""")

    def test_a_loss_that_the_catalogue_lacks(self) -> None:
        with self.assertRaises(StowageError) as caught:
            text_of(nn.Linear(4, 4), 4, loss=lambda output, _: output.mean())
        self.assertEqual(caught.exception.message, "the catalogue does not have the model's loss")

    def test_a_file_is_written_whole_or_not_at_all(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "net.py"
            model.write_text("import torch\n"
                             "def build(batch):\n"
                             "    return torch.nn.Linear(4, 3), torch.empty(batch, 4)\n"
                             "def strange(batch):\n"
                             "    class Strange(torch.nn.Module):\n"
                             "        def forward(self, x):\n"
                             "            return torch.special.i0(x)\n"
                             "    return Strange(), torch.empty(batch, 4)\n")
            output = pathlib.Path(folder) / "net.yaml"

            def run(name: str, *more: str) -> int:
                return command_line.main(["export", f"{model}:{name}", "-o", str(output), *more])

            self.assertEqual(run("strange"), 2)
            self.assertFalse(output.exists())
            self.assertEqual(run("build", "--loss", "mse"), 0)
            self.assertTrue(output.read_text().endswith("mse: {from: [linear_1, label]}\n"),
                            output.read_text())
            self.assertEqual([p.name for p in pathlib.Path(folder).glob("*.part")], [])


class Groups(unittest.TestCase):
    def test_unit_alone_has_no_block(self) -> None:
        self.assertNotIn("blocks:", export(source(nn.Sequential(
            Unit(3, 3, 1), nn.Flatten(), nn.Linear(48, 2)), 3, 4, 4)))


if __name__ == "__main__":
    unittest.main()
