"""The committed measurements of tests/reference, and the models that they are of."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

REFERENCE = pathlib.Path(__file__).parent.parent / "reference"
sys.path.insert(0, str(REFERENCE))


def measured(stem: str) -> dict[str, Any]:
    return json.loads((REFERENCE / "models" / f"{stem}.json").read_text())


def compact(stem: str) -> dict[str, Any]:
    return json.loads((REFERENCE / "models" / "compact" / f"{stem}.json").read_text())


def reference_model(name: str, seq: int | None = None) -> tuple[Any, Any]:
    """(Reference, its model on the device "meta")."""
    import models
    import torch

    reference = models.MODELS[name]
    with torch.device("meta"):
        return reference, reference.build(seq or reference.seq).train()


def example(reference: Any, batch: int, seq: int | None = None) -> tuple[Any, Any]:
    import torch

    with torch.device("meta"):
        return reference.inputs(reference, batch, seq or reference.seq)


def has(package: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(package) is not None
