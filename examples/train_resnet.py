#!/usr/bin/env python3
"""Trains a ResNet of torchvision on random images. Needs torch, torchvision and stowage.

    python examples/train_resnet.py                                       # as it is
    python -m stowage record examples/train_resnet.py -o s.json           # its step, without a GPU
    stowage plan s.json --for pytorch --gpu rtx3060 --batch 256 -o p.json
    python examples/train_resnet.py --plan p.json                         # with the plan
    python examples/train_resnet.py --plan p.json --pretend               # without a GPU
    python examples/train_resnet.py --plan p.json --compare               # on the CPU, bit for bit

A plan is for one model and one size of images: give --model and --image-size to `record` too, behind
"--".
`stowage.step` marks the function that `record` takes; `stowage.apply` carries a plan out.
"""

from __future__ import annotations

import argparse
import functools
import sys

import plan_trials
import torch
import torchvision
from torch.nn import functional

import stowage


@stowage.step
def train_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, images: torch.Tensor,
               labels: torch.Tensor, micro_batches: int = 1) -> torch.Tensor:
    optimizer.zero_grad()
    if micro_batches == 1:
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
    else:
        loss = torch.zeros((), device=images.device)
        for some, their in zip(images.chunk(micro_batches), labels.chunk(micro_batches)):
            part = functional.cross_entropy(model(some), their) / micro_batches
            part.backward()
            loss += part.detach()
    optimizer.step()
    return loss


def build(name: str, device: str) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None).to(device)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def step(size: int, micro_batches: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer,
         batch: int, device: str) -> torch.Tensor:
    images = torch.randn(batch, 3, size, size, device=device)
    labels = torch.randint(1000, (batch,), device=device)
    return train_step(model, optimizer, images, labels, micro_batches)


def main() -> int:
    parser = argparse.ArgumentParser(description="Trains a ResNet on random images.")
    parser.add_argument("--model", default="resnet50", help="of torchvision (resnet50)")
    parser.add_argument("--image-size", type=int, default=224, metavar="N", help="pixels of a side (224)")
    plan_trials.add_options(parser)
    options = parser.parse_args()
    plan = plan_trials.settled(parser, options)
    make = functools.partial(build, options.model)
    run = functools.partial(step, options.image_size, options.micro_batches)
    return plan_trials.carry_out(plan, make, run, options)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except stowage.StowageError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
