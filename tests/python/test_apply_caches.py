"""Transformers' cache of keys and values, in training, where blocks run again in backward."""

from __future__ import annotations

import unittest
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import stowage
from applied_case import AppliedCase
from planned import Planner, write_plan
from references import has

Inputs = dict[str, torch.Tensor]


def tokens() -> Inputs:
    """Of two sentences, the first shorter."""
    torch.manual_seed(1)
    ids = torch.randint(3, 50, (2, 12))
    mask = torch.ones_like(ids)
    mask[0, :5] = 0
    return {"input_ids": ids, "labels": ids.clone(), "attention_mask": mask}


def gpt2(**more: Any) -> nn.Module:
    import transformers

    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0,
        **more)).train()


def llama() -> nn.Module:
    import transformers

    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, bos_token_id=0, eos_token_id=0, pad_token_id=0)).train()


@unittest.skipUnless(has("transformers"), "needs transformers")
class Caches(AppliedCase):
    def plan(self, model: nn.Module, regions: tuple[str, ...]) -> dict[str, Any]:
        recorded = stowage.record(model, tokens(), loss=lambda output: output.loss)
        return Planner(recorded.document).plan(1 << 30, regions)

    def gradients(self, model: nn.Module, plan: dict[str, Any] | None,
                  step: Callable[[nn.Module], Any]) -> list[torch.Tensor]:
        torch.manual_seed(3)
        if plan is None:
            step(model)
        else:
            with stowage.apply(model, None, write_plan(plan, self.path)):
                step(model)
        return [one.grad for one in model.parameters() if one.grad is not None]

    def check(self, build: Callable[[], nn.Module], regions: tuple[str, ...],
              step: Callable[[nn.Module], Any]) -> None:
        plan = self.plan(build(), regions)
        self.assertEqual(len(plan["checkpoint"]), len(regions))
        without = self.gradients(build(), None, step)
        with_plan = self.gradients(build(), plan, step)
        self.assertEqual(len(without), len(with_plan))
        for ours, theirs in zip(without, with_plan):
            self.assertTrue(torch.equal(ours, theirs))

    def test_a_second_run_adds_no_keys_a_second_time(self) -> None:
        """A mask says how many keys there are: twice as many end in an error."""
        for build, regions in ((gpt2, ("transformer.h.0", "transformer.h.1")),
                               (llama, ("model.layers.0", "model.layers.1")), (gpt2, ("transformer",))):
            sizes: list[list[int]] = []

            def step(model: nn.Module, sizes: list[list[int]] = sizes) -> None:
                output = model(**tokens())
                output.loss.backward()
                sizes.append([layer.keys.shape[-2] for layer in output.past_key_values.layers])

            with self.subTest(regions):
                self.check(build, regions, step)
                self.assertEqual(sizes, [[12, 12], [12, 12]])

    def test_a_cache_that_holds_something_already(self) -> None:
        """As a prefix that is trained: the second run begins with what the first found."""
        def step(model: nn.Module) -> None:
            prefix = model(input_ids=tokens()["input_ids"][:, :5]).past_key_values
            model(input_ids=tokens()["input_ids"][:, 5:], past_key_values=prefix).logits.sum().backward()

        self.check(gpt2, ("transformer.h.0", "transformer.h.1"), step)

    def test_a_cache_that_the_script_lets_go_lives_no_longer(self) -> None:
        model = gpt2()
        plan = self.plan(model, ("transformer.h.0", "transformer.h.1"))
        with stowage.apply(model, None, write_plan(plan, self.path)):
            output = model(**tokens())
            keys = [weakref.ref(layer.keys) for layer in output.past_key_values.layers]
            loss = output.loss
            del output
            self.assertEqual([one() for one in keys], [None, None])
            loss.backward()


if __name__ == "__main__":
    unittest.main()
