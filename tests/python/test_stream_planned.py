"""Streams that the program plans, carried out: an inference, and LoRA (peft) over a frozen base."""

from __future__ import annotations

import runpy
import unittest
from collections.abc import Callable
from typing import Any

import torch

import stowage
from command_case import CommandCase
from references import has

# GPT-2's width, so that the blocks are large beside what a process takes, and few of them.
NETWORK = """
    import torch, stowage
    from transformers import GPT2Config, GPT2LMHeadModel

    def network(width=768):
        return GPT2LMHeadModel(GPT2Config(n_layer=6, n_embd=width, n_head=12, vocab_size=97,
                                          n_positions=32, attn_pdrop=0.1, bos_token_id=0,
                                          eos_token_id=0, use_cache=False))

    """


@unittest.skipUnless(has("transformers"), "needs transformers")
class PlannedStreams(CommandCase):
    files = {
        "infer.py": NETWORK + """
    def build_model(batch):
        return network(), [torch.zeros(batch, 16, dtype=torch.int64)]
    """,
        "lora.py": NETWORK + """
    from peft import LoraConfig, get_peft_model

    def build(device, width=768):
        torch.manual_seed(0)
        model = get_peft_model(network(width), LoraConfig(r=4, target_modules=["c_attn"])).to(device)
        trained = [one for one in model.parameters() if one.requires_grad]
        return model, torch.optim.AdamW(trained, lr=1e-2)

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
            step(model, optimizer, torch.zeros(4, 16, dtype=torch.int64).cuda())
    """}

    @staticmethod
    def not_rehearsed(plan: Any) -> int:
        """Bytes that the plan counts and the pretended device does not: cuBLAS's workspace, one in the
        thread of each pass, and what the allocator hands out in excess, below 1 MiB a block, since it
        splits no block for so little; of few blocks at a time."""
        return 8_519_680 * (2 if plan.trains else 1) + 4 * 2**20

    def assert_rehearsed(self, build: Callable[[], Any], plan: Any) -> None:
        found = stowage.rehearse(build, plan)
        streamed = plan.streamed_bytes()
        self.assertGreater(streamed, 0)
        self.assertEqual(streamed + found.bytes_out, self.content["totals"]["from_host_bytes"])
        self.assertEqual((found.bytes_out, found.bytes_back, found.first_reason),
                         (self.content["totals"]["to_host_bytes"],
                          self.content["totals"]["from_host_bytes"], ""))
        self.assertLessEqual(found.peak_bytes, plan.peak_allocated)
        self.assertGreater(found.peak_bytes, plan.peak_allocated - self.not_rehearsed(plan))

    def test_an_inference(self) -> None:
        self.record("infer.py:build_model", "--mode", "inference", "--batch", "4")
        plan = self.planned("--gpu-memory", "470MiB")
        self.assertFalse(plan.trains)
        self.assertRegex(self.content["stream"][0]["module"], r"^transformer\.h\.[0-9]$")
        network = runpy.run_path("infer.py")["network"]

        def build() -> tuple[Any, Any, Callable[[], Any]]:
            model = network().eval().cuda()
            x = torch.zeros(4, 16, dtype=torch.int64, device="cuda")
            return model, None, torch.no_grad()(lambda: model(x))

        self.assert_rehearsed(build, plan)
        torch.manual_seed(0)
        model, x = network().eval(), torch.arange(64).view(4, 16)
        with torch.no_grad():
            expected = model(x).logits
            with stowage.apply(model, None, plan), stowage.verify(plan):
                self.assertTrue(torch.equal(model(x).logits, expected))

    @unittest.skipUnless(has("torchvision"), "needs torchvision")
    def test_an_inference_in_parts(self) -> None:
        import torchvision

        self.record("torchvision:resnet18", "--mode", "inference", "--batch", "8")
        plan = self.planned("--batch", "48", "--gpu-memory", "640MiB", "--choose", "chunk-4")
        self.assertEqual((plan.chunks.parts, plan.stream), (4, ()))

        def build() -> tuple[Any, Any, Callable[[], Any]]:
            model = torchvision.models.resnet18().eval().cuda()
            images = torch.zeros(48, 3, 224, 224, device="cuda")
            return model, None, torch.no_grad()(lambda: model(images))

        found = stowage.rehearse(build, plan)
        self.assertEqual((found.bytes_out, found.bytes_back, found.first_reason), (0, 0, ""))
        self.assertLessEqual(found.peak_bytes, plan.peak_allocated)
        # cuDNN's workspaces are counted by the plan alone.
        self.assertGreater(found.peak_bytes, 0.7 * plan.peak_allocated)
        self.assertLess(found.peak_bytes, 0.7 * stowage.rehearse(build, None).peak_bytes)

    @unittest.skipUnless(has("peft"), "needs peft")
    def test_lora(self) -> None:
        self.record("lora.py")
        for choice in ("stream-6-of-6", "checkpoint-all-stream-6-of-6"):
            with self.subTest(choice=choice):
                self.lora(choice)

    def lora(self, choice: str) -> None:
        script = runpy.run_path("lora.py")
        plan = self.planned("--gpu-memory", "480MiB", "--choose", choice)
        self.assertEqual(bool(plan.checkpoint), choice.startswith("checkpoint"))

        def build() -> tuple[Any, Any, Callable[[], Any]]:
            model, optimizer = script["build"]("cuda")
            x = torch.zeros(4, 16, dtype=torch.int64, device="cuda")
            return model, optimizer, lambda: script["step"](model, optimizer, x)

        self.assert_rehearsed(build, plan)

        def trained(applied: bool) -> list[torch.Tensor]:
            model, optimizer = script["build"]("cpu")
            if applied:
                found = self.enterContext(stowage.apply(model, optimizer, plan))
            torch.manual_seed(1)
            seen = [script["step"](model, optimizer, torch.arange(64).view(4, 16) % 97 + index).detach()
                    for index in range(2)]
            if applied:
                self.assertEqual(found.first_reason, "")
            return seen + [value.clone() for value in model.state_dict().values()]

        for ours, theirs in zip(trained(True), trained(False), strict=True):
            self.assertTrue(torch.equal(ours, theirs))


if __name__ == "__main__":
    unittest.main()
