"""What tests/recorded/stages.json is a recording of: a network with rows of an nn.Sequential, and with
modules in modules, that plans run again in backward.

    python -m stowage record tests/recorded/stages.py -o tests/recorded/stages.json
"""

from __future__ import annotations

import torch
from torch import nn

import stowage


def row(layers: int) -> nn.Sequential:
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(*parts)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = row(3), row(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.second(self.first(x))
        return found


class Stages(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = row(3)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(64 * 16 * 16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        found: torch.Tensor = self.head(x.flatten(1))
        return found


@stowage.step
def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


if __name__ == "__main__":
    stages = Stages().cuda()
    step(stages, torch.optim.AdamW(stages.parameters(), lr=1e-3), torch.zeros(32, 64, 16, 16).cuda())
