"""Small models to be exported, and the program that reads what is exported."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from stowage.export import export
from stowage.sources.source import Example, Source, class_loss

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = pathlib.Path(__file__).parent.parent.parent


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def program() -> pathlib.Path | None:
    """The stowage to ask: the one that CTest names, else the one built here; None where neither is."""
    path = pathlib.Path(os.environ.get("STOWAGE_PROGRAM", ROOT / "build" / "stowage"))
    return path if path.exists() else None


def source(model: nn.Module, *shape: int, loss: Callable[..., Any] = class_loss,
           target: tuple[int, ...] | None = None) -> Source:
    """A Source of a module that takes one tensor of that shape behind the batch."""
    def example(batch: int) -> Example:
        wanted = None if target is None else torch.empty((batch, *target), device="meta")
        return Example((torch.empty((batch, *shape), device="meta"),), target=wanted)

    return Source("net", "a test", model.to("meta"), example, loss)


def text_of(model: nn.Module, *shape: int, **options: Any) -> str:
    return export(source(model, *shape, **options))


def summary(text: str, batch: int = 2, seq: int | None = None) -> dict[str, Any]:
    """What `stowage summary --format json` says of a description; its errors are raised."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "net.yaml"
        path.write_text(text)
        words = [program(), "summary", path, "--batch", str(batch), "--format", "json"]
        done = subprocess.run(words + (["--seq", str(seq)] if seq else []), capture_output=True,
                              text=True, env={**os.environ, "STOWAGE_NO_CACHE": "1"})
    if done.returncode or done.stderr:
        raise AssertionError(f"{done.stdout}\n{done.stderr}\n{text}")
    return json.loads(done.stdout)


def saved_bytes(text: str, batch: int = 2, seq: int | None = None) -> int:
    """Bytes that a forward pass adds and keeps for the backward pass."""
    return sum(layer["saved_bytes"] for layer in summary(text, batch, seq)["layers"])


class Unit(nn.Module):
    """A residual unit whose shortcut is a convolution where the shape changes."""

    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.act = nn.ReLU(inplace=True)
        self.shortcut = nn.Conv2d(inputs, channels, 1, stride) if stride != 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.norm(self.conv(x)) + self.shortcut(x))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.stage1 = nn.Sequential(Unit(8, 8, 1), Unit(8, 8, 1))
        self.stage2 = nn.Sequential(Unit(8, 16, 2), Unit(16, 16, 1), Unit(16, 16, 1))
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stage2(self.stage1(self.stem(x)))
        return self.head(self.drop(x.mean((2, 3))))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.table = nn.Parameter(torch.zeros(1, 6, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        qkv = self.qkv(x + self.table).view(batch, tokens, 3, 2, width // 2)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        x = nn.functional.scaled_dot_product_attention(q, k, v)
        return x.transpose(1, 2).reshape(batch, tokens, width).mean(1)
