"""The committed measurements of tests/reference, and the models that they are of."""

import json
import pathlib
import sys

REFERENCE = pathlib.Path(__file__).parent.parent / "reference"
sys.path.insert(0, str(REFERENCE))


def measured(stem):
    return json.loads((REFERENCE / "models" / f"{stem}.json").read_text())


def compact(stem):
    return json.loads((REFERENCE / "models" / "compact" / f"{stem}.json").read_text())


def reference_model(name, seq=None):
    """(Reference, its model on the device "meta")."""
    import models
    import torch

    reference = models.MODELS[name]
    with torch.device("meta"):
        return reference, reference.build(seq or reference.seq).train()


def example(reference, batch, seq=None):
    import torch

    with torch.device("meta"):
        return reference.inputs(reference, batch, seq or reference.seq)


def has(package):
    import importlib.util

    return importlib.util.find_spec(package) is not None
