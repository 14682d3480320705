#!/usr/bin/env python3
"""One model's training step, as a script has it.

    python -m stowage record bench/apply/one_model.py -o s.json -- torchvision:resnet18 --batch 8

Models are of torchvision, timm, transformers (sizes of their configurations' defaults, but for llama and
qwen2) and diffusers. Values are random; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import torch
from torch.nn import functional

import stowage

Inputs = dict[str, torch.Tensor]


@stowage.step
def train_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, inputs: Inputs,
               target: torch.Tensor, parts: int = 1) -> torch.Tensor:
    """`parts`: micro-batches, whose gradients add up."""
    optimizer.zero_grad()
    losses = []
    for part in range(parts):
        given = {name: one.chunk(parts)[part] for name, one in inputs.items()} if parts > 1 else inputs
        wanted = target.chunk(parts)[part] if parts > 1 else target
        loss = loss_of(model(given["x"]) if "x" in given else model(**given), wanted)
        (loss / parts if parts > 1 else loss).backward()
        losses.append(loss.detach())
    optimizer.step()
    return torch.stack(losses).mean() if parts > 1 else losses[0]


def loss_of(output: Any, target: torch.Tensor) -> torch.Tensor:
    if hasattr(output, "loss"):
        loss: torch.Tensor = output.loss
        return loss
    if hasattr(output, "sample"):
        return functional.mse_loss(output.sample, target)
    return functional.cross_entropy(output, target)


def transformer(name: str) -> torch.nn.Module:
    import transformers

    kinds = {"gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel),
             "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
             "t5": (transformers.T5Config, transformers.T5ForConditionalGeneration)}
    config, kind = kinds[name]
    own = {"llama": {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 8,
                     "num_attention_heads": 8, "vocab_size": 32000}}
    return kind(config(**own.get(name, {})))


def diffusion(name: str) -> torch.nn.Module:
    import diffusers

    if name == "UNet2DModel":
        return diffusers.UNet2DModel(
            sample_size=32, block_out_channels=(64, 128, 128), layers_per_block=2,
            down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"))
    if name == "UNet2DConditionModel":
        return diffusers.UNet2DConditionModel(
            sample_size=32, block_out_channels=(64, 128), layers_per_block=1, cross_attention_dim=64,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), attention_head_dim=8)
    return diffusers.DiTTransformer2DModel(num_layers=6, num_attention_heads=6, attention_head_dim=32,
                                           num_embeds_ada_norm=10, sample_size=16)


def network(name: str) -> torch.nn.Module:
    library, _, model = name.partition(":")
    if library == "torchvision":
        import torchvision

        return torchvision.models.get_model(model, weights=None)
    if library == "timm":
        import timm

        return timm.create_model(model, pretrained=False)
    return transformer(model) if library == "transformers" else diffusion(model)


def batch_of(name: str, batch: int, size: int, device: str) -> tuple[Inputs, torch.Tensor]:
    """(inputs, target); `size`: pixels of a side, or tokens; 0: the usual."""
    library, _, model = name.partition(":")
    target = torch.randint(10, (batch,), device=device)
    if library == "transformers":
        tokens = torch.randint(1000, (batch, size or 256), device=device)
        return {"input_ids": tokens, "labels": tokens}, target
    if library == "diffusers":
        return noisy(model, batch, device)
    size = size or 224
    return {"x": torch.randn(batch, 3, size, size, device=device)}, target


def noisy(model: str, batch: int, device: str) -> tuple[Inputs, torch.Tensor]:
    """Of a diffusion network: it is asked for the noise."""
    shape = {"UNet2DModel": (3, 32, 32), "UNet2DConditionModel": (4, 32, 32)}.get(model, (4, 16, 16))
    name = "hidden_states" if model.startswith("DiT") else "sample"
    more: Inputs = {}
    if model == "UNet2DConditionModel":
        more["encoder_hidden_states"] = torch.randn(batch, 16, 64, device=device)
    elif model.startswith("DiT"):
        more["class_labels"] = torch.randint(10, (batch,), device=device)
    return ({name: torch.randn(batch, *shape, device=device),
             "timestep": torch.randint(1000, (batch,), device=device), **more},
            torch.randn(batch, *shape, device=device))


def built(name: str, device: str) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = network(name).train().to(device)
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=0, help="pixels of a side, or tokens")
    options = parser.parse_args()
    model, optimizer = built(options.name, "cuda")
    train_step(model, optimizer, *batch_of(options.name, options.batch, options.size, "cuda"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
