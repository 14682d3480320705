"""Regions that the program plans, carried out: a language model's blocks with their inputs on the host,
and regions in regions."""

from __future__ import annotations

import runpy
import unittest
from collections.abc import Callable
from typing import Any

import torch

import stowage
from command_case import CommandCase
from references import has

# A block's input has 12 MiB: a segment of PyTorch's allocator of its own.
SCRIPT = """
    import torch, stowage
    from transformers import LlamaConfig, LlamaForCausalLM

    def build(device):
        torch.manual_seed(0)
        config = LlamaConfig(vocab_size=512, hidden_size=384, intermediate_size=768, num_hidden_layers=8,
                             num_attention_heads=4, num_key_value_heads=2, use_cache=False)
        model = LlamaForCausalLM(config).to(device)
        return model, torch.optim.SGD(model.parameters(), lr=0.1)

    @stowage.step
    def step(model, optimizer, x):
        loss = model(input_ids=x, labels=x).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    if __name__ == "__main__":
        model, optimizer = build("cuda")
        for _ in range(3):
            step(model, optimizer, torch.zeros(8, 1024, dtype=torch.int64).cuda())
    """


@unittest.skipUnless(has("transformers"), "needs transformers")
class PlannedRegions(CommandCase):
    files = {"llama.py": SCRIPT}

    def assert_carried_out(self, plan: Any) -> None:
        """Bytes and memory on the pretended device are the plan's; on the CPU, in a batch of 1, bits are
        the script's."""
        script = runpy.run_path("llama.py")

        def build() -> tuple[Any, Any, Callable[[], Any]]:
            model, optimizer = script["build"]("cuda")
            x = torch.zeros(8, 1024, dtype=torch.int64, device="cuda")
            return model, optimizer, lambda: script["step"](model, optimizer, x)

        found, totals = stowage.rehearse(build, plan), self.content["totals"]
        self.assertEqual((found.bytes_out, found.bytes_back, found.first_reason),
                         (totals["to_host_bytes"], totals["from_host_bytes"], ""))
        self.assertLessEqual(found.peak_bytes, plan.peak_allocated)
        # The plan counts two of cuBLAS's workspaces, and what the allocator hands out in excess.
        self.assertGreater(found.peak_bytes, plan.peak_allocated - 2 * 8_519_680 - 2**20)

        def trained(applied: bool) -> list[torch.Tensor]:
            model, optimizer = script["build"]("cpu")
            if applied:
                at_work = self.enterContext(stowage.apply(model, optimizer, plan))
            seen = [script["step"](model, optimizer, torch.arange(1024).view(1, 1024) * (3 + index) % 512)
                    .detach() for index in range(2)]
            if applied:
                self.assertEqual((at_work.first_reason, at_work.bytes_out),
                                 ("", 2 * plan.offloaded_bytes(1)))
            return seen + [value.clone() for value in model.state_dict().values()]

        for ours, theirs in zip(trained(True), trained(False), strict=True):
            self.assertTrue(torch.equal(ours, theirs))

    def test_the_inputs_of_all_blocks_leave(self) -> None:
        self.record("llama.py")
        plan = self.planned("--gpu-memory", "800MiB", "--choose", "checkpoint-all")
        self.assertEqual({name for name in plan.checkpoint if name != "model.norm"},
                         {f"model.layers.{place}" for place in range(8)})
        starts = {entry.start for entry in plan.offload}
        self.assertTrue(starts)
        self.assertTrue(all(start.endswith("#input0") for start in starts), starts)
        self.assert_carried_out(plan)

    def test_regions_in_the_second_run_of_blocks(self) -> None:
        self.record("llama.py")
        plan = self.planned("--gpu-memory", "800MiB", "--choose", "checkpoint-nested")
        self.assertIn("model.layers.3", plan.checkpoint)
        self.assertIn("model.layers.3.mlp", plan.checkpoint)
        self.assert_carried_out(plan)


if __name__ == "__main__":
    unittest.main()
