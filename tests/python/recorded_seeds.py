#!/usr/bin/env python3
"""Small recorded steps, one for each thing that a recorded file may have: seeds for the fuzz target
`step`, and what test_readers.py holds against the readers.

    python3 tests/python/recorded_seeds.py FOLDER      (tests/fuzz/step has what torch 2.15.0 gave)
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent.parent / "python")]

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import stowage  # noqa: E402

Steps = Iterator[tuple[str, Callable[[], stowage.RecordedStep]]]


def mean(output: Any) -> torch.Tensor:
    return (output[0] if isinstance(output, tuple) else output).float().mean()


def linear(**options: Any) -> stowage.RecordedStep:
    return stowage.record(nn.Linear(8, 4), torch.zeros(2, 8), loss=mean, **options)


def of_function(model: nn.Module, optimizer: torch.optim.Optimizer | None,
                shape: tuple[int, ...] = (2, 8), steps: bool = True) -> stowage.RecordedStep:
    def step(x: torch.Tensor) -> torch.Tensor:
        model.zero_grad()
        loss = mean(model(x))
        loss.backward()
        if optimizer is not None and steps:
            optimizer.step()
        return loss

    return stowage.record(step, torch.zeros(shape))


def hooked() -> stowage.RecordedStep:
    model = nn.Linear(8, 4)
    model.weight.register_hook(lambda gradient: gradient * 2)
    return of_function(model, torch.optim.SGD(model.parameters(), lr=0.1))


def in_turn() -> stowage.RecordedStep:
    model, calls = nn.Linear(8, 4), [0]
    optimizer = torch.optim.AdamW(model.parameters())

    def step(x: torch.Tensor) -> None:
        mean(model(x)).backward()
        calls[0] += 1
        if calls[0] % 2:
            optimizer.step()
            optimizer.zero_grad()

    return stowage.record(step, torch.zeros(2, 8))


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.block = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.GELU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.block, self.first(x), use_reentrant=False)


class Square(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        return y @ y.T


def names() -> stowage.RecordedStep:
    model = nn.Sequential()
    model.add_module("a\x1b[31m\u202e\ud800\n重", nn.Linear(8, 4))
    return stowage.record(model, torch.zeros(2, 8), loss=mean, name="\x9b")


def images(model: nn.Module, **options: Any) -> stowage.RecordedStep:
    return stowage.record(model, torch.zeros(2, 3, 8, 8), loss=mean, **options)


def steps() -> Steps:
    """(name, function that records it)"""
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4))
    yield "linear", linear
    yield "inference", lambda: linear(mode="inference")
    yield "adamw-fused", lambda: linear(optimizer="adamw", implementation="fused")
    yield "adam-for-loop", lambda: linear(optimizer="adam", implementation="for-loop")
    yield "accumulation", lambda: linear(micro_batches=2)
    yield "kept-gradients", lambda: linear(zero_grad_to_none=False)
    yield "amp", lambda: linear(precision="amp-bf16", optimizer="adafactor")
    yield "no-update", lambda: of_function(model, torch.optim.AdamW(model.parameters()), steps=False)
    yield "no-optimizer", lambda: of_function(model, None)
    yield "part-update", lambda: of_function(model, torch.optim.AdamW(model[0].parameters()))
    yield "hooks", hooked
    yield "in-turn", in_turn
    yield "names", names
    yield "checkpoint", lambda: stowage.record(Checkpointed(), torch.zeros(2, 8), loss=mean)
    yield "fixed-batch", lambda: stowage.record(Square(), torch.zeros(2, 8), loss=mean)
    yield "lstm", lambda: stowage.record(nn.LSTM(4, 4), torch.zeros(3, 2, 4), loss=mean,
                                         batch_axes=1)
    yield "convolution", lambda: images(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4),
                                                      nn.ReLU(), nn.MaxPool2d(2)))
    yield "channels-last", lambda: images(nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last))
    yield "embedding", lambda: stowage.record(
        nn.Embedding(16, 4, max_norm=1.0), torch.zeros(2, 3, dtype=torch.int64), loss=mean)
    yield "attention", lambda: stowage.record(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), torch.zeros(2, 4, 8), loss=mean)
    yield "complex", lambda: stowage.record(
        lambda x, w: (torch.fft.rfft(x) * w).real.sum(), (torch.zeros(2, 8), torch.zeros(5)),
        batch_axes=[0, None])


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, record in steps():
        record().save(folder / f"{name}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
