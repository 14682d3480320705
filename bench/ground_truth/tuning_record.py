"""A case's own step, recorded by `stowage.record`: no GPU, no weights. One case in this process."""

from __future__ import annotations

import json
import os
import sys

import tuning_cases
import tuning_models
from journal import atomic_write

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")


def _package():
    """The recorder. It has the name of stowage.py beside this file, which is none of it."""
    sys.modules.pop("stowage", None)
    sys.path.insert(0, _PACKAGE)
    import stowage
    return stowage


def run(spec: dict, path: str) -> None:
    """Writes the step file `spec["output"]` of the training step that tuning_steps.py measures."""
    recorder = _package()
    sys.modules.pop("stowage.record", None)
    import tuning_steps
    case = tuning_cases.find(spec["key"])
    network = tuning_models.build(case, "meta")
    inputs = tuning_models.batch(case, network, "meta")
    trainer = tuning_steps.Trainer(case, network, "cuda")
    recorder.record(trainer.step, inputs, name=case.model,
                    compute_capability=tuple(spec["compute_capability"]), batch=case.batch,
                    output=spec["output"])
    atomic_write(path, json.dumps({"key": case.key(), "status": "ok", "phases": {}}))
