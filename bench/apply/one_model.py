#!/usr/bin/env python3
"""One model's training step, as `python -m stowage record` takes it, and under a plan.

    python -m stowage record bench/apply/one_model.py -o s.json -- torchvision:resnet18
    python bench/apply/one_model.py torchvision:resnet18 --plan p.yaml                # pretended
    python bench/apply/one_model.py torchvision:resnet18 --plan p.yaml --compare      # on the CPU

Prints one line of JSON. Values are random; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from typing import Any

import torch
from torch.nn import functional

import stowage


@stowage.step
def train_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer,
               inputs: dict[str, torch.Tensor], target: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    output = model(**inputs) if "x" not in inputs else model(inputs["x"])
    loss = output.loss if hasattr(output, "loss") else functional.cross_entropy(output, target)
    loss.backward()
    optimizer.step()
    return loss.detach()


def network(name: str) -> torch.nn.Module:
    library, _, model = name.partition(":")
    if library == "torchvision":
        import torchvision

        return torchvision.models.get_model(model, weights=None)
    if library == "timm":
        import timm

        return timm.create_model(model, pretrained=False)
    import transformers

    kinds = {"gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel),
             "bert": (transformers.BertConfig, transformers.BertForMaskedLM),
             "roberta": (transformers.RobertaConfig, transformers.RobertaForMaskedLM),
             "distilbert": (transformers.DistilBertConfig, transformers.DistilBertForMaskedLM),
             "t5": (transformers.T5Config, transformers.T5ForConditionalGeneration),
             "opt": (transformers.OPTConfig, transformers.OPTForCausalLM),
             "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
             "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM)}
    config, kind = kinds[model]
    own = {"llama": {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 8,
                     "num_attention_heads": 8, "vocab_size": 32000},
           "qwen2": {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 8,
                     "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 32000}}
    return kind(config(**own.get(model, {})))


def batch_of(name: str, batch: int, size: int, device: str) -> tuple[dict[str, torch.Tensor],
                                                                      torch.Tensor]:
    target = torch.randint(10, (batch,), device=device)
    if name.startswith("transformers:"):
        tokens = torch.randint(1000, (batch, size), device=device)
        return {"input_ids": tokens, "labels": tokens}, target
    return {"x": torch.randn(batch, 3, size, size, device=device)}, target


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=0, help="pixels of a side, or tokens")
    parser.add_argument("--plan")
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    size = options.size or (256 if options.name.startswith("transformers:") else 224)

    def build(device: str) -> tuple[Any, Any, Any]:
        torch.manual_seed(0)
        model = network(options.name).train().to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        inputs, target = batch_of(options.name, options.batch, size, device)
        return model, optimizer, lambda: train_step(model, optimizer, inputs, target)

    if options.plan is None:
        build("cuda")[2]()
        return 0
    plan = stowage.read_plan(options.plan)
    if not options.compare:
        found = stowage.rehearse(lambda: build("cuda"), plan)
        planned = plan.micro_batches * plan.offloaded_bytes(options.batch) + plan.update_bytes
        print(json.dumps({"out": found.bytes_out, "back": found.bytes_back, "planned": planned,
                          "peak": found.peak_bytes, "planned_peak": plan.peak_allocated,
                          "fell_back": found.fell_back, "reason": found.first_reason}))
        return 0
    seen = []
    for planned_one in (None, plan):
        model, optimizer, step = build("cpu")
        applied = None if planned_one is None else stowage.apply(model, optimizer, planned_one)
        torch.manual_seed(1)
        losses = [step() for _ in range(2)]
        fell_back = 0 if applied is None else applied.fell_back
        reason = "" if applied is None else applied.first_reason
        out = 0 if applied is None else applied.bytes_out
        if applied is not None:
            applied.remove()
        seen.append([*losses, *(one.detach() for one in model.parameters()), *model.buffers()])
    equal = all(torch.equal(ours, theirs) for ours, theirs in zip(*seen))
    print(json.dumps({"equal": equal, "out": out, "fell_back": fell_back, "reason": reason}))
    return 0


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.exit(main())
