#!/usr/bin/env python3
"""Fine-tunes GPT-2 of transformers on random tokens. Needs torch, transformers and stowage; weights are
random, so that nothing is downloaded.

    python examples/finetune_gpt2.py                                      # as it is
    python -m stowage record examples/finetune_gpt2.py -o g.json          # its step, without a GPU
    stowage plan g.json --for pytorch --gpu rtx3060 --batch 16 -o p.json
    python examples/finetune_gpt2.py --plan p.json                        # with the plan
    python examples/finetune_gpt2.py --plan p.json --pretend              # without a GPU
    python examples/finetune_gpt2.py --plan p.json --compare               # on the CPU, bit for bit

A plan is for one model: give --layers, --width and --tokens to `record` too, behind "--".
"""

from __future__ import annotations

import argparse
import functools
import sys

import plan_trials
import torch
import transformers

import stowage


@stowage.step
def train_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, tokens: torch.Tensor,
               micro_batches: int = 1) -> torch.Tensor:
    optimizer.zero_grad()
    if micro_batches == 1:
        loss: torch.Tensor = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
    else:
        loss = torch.zeros((), device=tokens.device)
        for some in tokens.chunk(micro_batches):
            part = model(input_ids=some, labels=some).loss / micro_batches
            part.backward()
            loss += part.detach()
    optimizer.step()
    return loss


def build(configuration: transformers.GPT2Config,
          device: str) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(configuration).train().to(device)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4)


def step(length: int, micro_batches: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer,
         batch: int, device: str) -> torch.Tensor:
    tokens = torch.randint(1000, (batch, length), device=device)
    return train_step(model, optimizer, tokens, micro_batches)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fine-tunes GPT-2 on random tokens.")
    parser.add_argument("--layers", type=int, default=12, metavar="N")
    parser.add_argument("--width", type=int, default=768, metavar="N", help="a multiple of 64 (768)")
    parser.add_argument("--tokens", type=int, default=128, metavar="N", help="of a sample (128)")
    plan_trials.add_options(parser)
    options = parser.parse_args()
    plan = plan_trials.settled(parser, options)
    make = functools.partial(build, transformers.GPT2Config(
        n_layer=options.layers, n_embd=options.width, n_head=options.width // 64, use_cache=False))
    run = functools.partial(step, options.tokens, options.micro_batches)
    return plan_trials.carry_out(plan, make, run, options)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except stowage.StowageError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
