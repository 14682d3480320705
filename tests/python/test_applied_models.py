"""Models of torchvision, timm and transformers: on the pretended device no tensor of the recorded step
falls back and bytes moved are the plan's; on the CPU every bit is that of a run without the plan."""

from __future__ import annotations

import copy
import unittest
import warnings
from collections.abc import Callable
from typing import Any

import torch

import stowage
from planned import Planner, planned_bytes
from references import has
from stowage.plans.plan_file import Plan, PlanReader

Batch = dict[str, torch.Tensor]


def images(batch: int, size: int = 32) -> Batch:
    return {"x": torch.randn(batch, 3, size, size)}


def tokens(batch: int, length: int = 12, **more: Any) -> Batch:
    ids = torch.randint(1, 50, (batch, length))
    return {"input_ids": ids, "labels": ids.clone(), **more}


def loss_of(output: Any, _target: Any = None) -> torch.Tensor:
    if isinstance(output, torch.Tensor):
        return output.square().mean()
    loss: torch.Tensor = output.loss
    return loss


class Trained:
    """A model, its optimizer and a step, on a device."""

    def __init__(self, build: Callable[[], torch.nn.Module], device: str) -> None:
        torch.manual_seed(0)
        self.model = build().train().to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.device = device

    def step(self, batch: Batch) -> torch.Tensor:
        self.optimizer.zero_grad()
        given = {name: value.to(self.device) for name, value in batch.items()}
        given = {"" if name == "x" else name: value for name, value in given.items()}
        loss = loss_of(self.model(given[""]) if "" in given else self.model(**given))
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def values(self) -> list[torch.Tensor]:
        return [*(p.grad.clone() for p in self.model.parameters() if p.grad is not None),
                *(value.clone() for value in self.model.state_dict().values())]


class Models(unittest.TestCase):
    def check(self, build: Callable[[], torch.nn.Module], batch_of: Callable[[int], Batch],
              checkpoint: tuple[str, ...] = ()) -> None:
        example = batch_of(4)
        given: Any = example["x"] if "x" in example else example
        with torch.device("meta"):
            model = build().train()
        document = stowage.record(model, given, loss=loss_of).document
        plans = []
        for modules in ((), checkpoint):
            content = Planner(copy.deepcopy(document)).plan(checkpoint=modules)
            plans.append(PlanReader("the test's plan", content).plan())
            self.assertGreater(len(plans[-1].offload), 5)
            self.check_pretended(build, batch_of, content, plans[-1])
        self.check_bits(build, batch_of, plans)

    def check_pretended(self, build: Callable[[], torch.nn.Module], batch_of: Callable[[int], Batch],
                        content: dict[str, Any], plan: Plan) -> None:
        def pretended() -> tuple[Any, Any, Callable[[], Any]]:
            trained = Trained(build, "cuda")
            batch = batch_of(4)
            return trained.model, trained.optimizer, lambda: trained.step(batch)

        found = stowage.rehearse(pretended, plan, steps=1)
        self.assertEqual((found.first_reason, found.fell_back), ("", 0))
        moved = planned_bytes(content, 4)
        self.assertEqual((found.bytes_out, found.bytes_back), (moved, moved))

    def check_bits(self, build: Callable[[], torch.nn.Module], batch_of: Callable[[int], Batch],
                   plans: list[Plan]) -> None:
        seen = []
        for one in (None, *plans):
            trained = Trained(build, "cpu")
            applied = None if one is None else stowage.apply(trained.model, trained.optimizer, one)
            torch.manual_seed(1)
            values = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", stowage.PlanWarning)
                for batch in (batch_of(4), batch_of(3)):
                    values += [trained.step(batch), *trained.values()]
                if applied is not None:
                    self.assertGreater(applied.bytes_out, 0)
                    applied.remove()
            seen.append(values)
        for values in seen[1:]:
            self.assertEqual(len(seen[0]), len(values))
            self.assertTrue(all(torch.equal(ours, theirs) for ours, theirs in zip(seen[0], values)))

    @unittest.skipUnless(has("torchvision"), "needs torchvision")
    def test_resnet18(self) -> None:
        import torchvision

        self.check(lambda: torchvision.models.resnet18(num_classes=10), lambda n: images(n, 64),
                   ("layer2.0", "layer3"))

    @unittest.skipUnless(has("torchvision"), "needs torchvision")
    def test_vision_transformer(self) -> None:
        from torchvision.models.vision_transformer import VisionTransformer

        self.check(lambda: VisionTransformer(image_size=32, patch_size=16, num_layers=2, num_heads=4,
                                             hidden_dim=64, mlp_dim=128, dropout=0.1), images,
                   ("encoder.layers.encoder_layer_1",))

    @unittest.skipUnless(has("timm"), "needs timm")
    def test_convnext_atto(self) -> None:
        import timm

        self.check(lambda: timm.create_model("convnext_atto", num_classes=10, drop_path_rate=0.1),
                   images, ("stages.1",))

    @unittest.skipUnless(has("transformers"), "needs transformers")
    def test_gpt2(self) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel

        self.check(lambda: GPT2LMHeadModel(GPT2Config(
            vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4, use_cache=False)), tokens,
            ("transformer.h.1",))

    @unittest.skipUnless(has("transformers"), "needs transformers")
    def test_bert(self) -> None:
        from transformers import BertConfig, BertForMaskedLM

        self.check(lambda: BertForMaskedLM(BertConfig(
            vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=64)), tokens, ("bert.encoder.layer.0",))

    @unittest.skipUnless(has("transformers"), "needs transformers")
    def test_t5(self) -> None:
        from transformers import T5Config, T5ForConditionalGeneration

        self.check(lambda: T5ForConditionalGeneration(T5Config(
            vocab_size=50, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False,
            decoder_start_token_id=0, pad_token_id=0)), tokens, ("encoder.block.1",))


if __name__ == "__main__":
    unittest.main()
