#!/usr/bin/env python3
"""Records the models of tests/reference/catalogue.py and compares the peaks with the committed
measurements, at both batches of each: recorded at the smaller, sized at the other too.

    python3 tests/python/compare_references.py [--kinds precision variant layout fp32] [--models ...]

Prints a line a case, and the differences. Minutes to an hour; run by hand (docs/record.md).
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python"), str(HERE.parent / "reference")]

import catalogue
import channels_last
import compact
import torch

import stowage
from references import compact as measured
from step_memory import ALLOCATION_UNIT, StepMemory


class Loop:
    """The loop of tests/reference/step_trace.py."""

    def __init__(self, case: Any, reference: Any, model: Any, optimizer: str,
                 options: dict[str, Any]) -> None:
        self.case, self.reference, self.model = case, reference, model
        kinds = {"sgd": (torch.optim.SGD, {}), "sgd-momentum": (torch.optim.SGD, {"momentum": 0.9}),
                 "adam": (torch.optim.Adam, {}), "adamw": (torch.optim.AdamW, {})}
        kind, settings = kinds[optimizer]
        self.optimizer = kind(model.parameters(), lr=1e-3, **settings, **options)
        self.output = self.loss = None

    def precision(self) -> torch.autocast:
        word = self.case.precision
        return torch.autocast("cuda", compact.dtype_of(word) if word.startswith("amp") else None,
                              enabled=word.startswith("amp"))

    def __call__(self, inputs: Any, target: Any) -> None:
        times = 2 if self.case.variant == "accumulate-2" else 1
        for _ in range(times):
            with self.precision():
                self.output, self.loss = self.reference.loss(self.model, inputs, target)
            if times > 1:
                self.loss = self.loss / times
            self.loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=self.case.variant != "zero-grad-to-zero")


def made(case: Any, reference: Any) -> tuple[Any, Any, Any]:
    """(model, inputs, target) on the device "meta"."""
    dtype = torch.bfloat16 if case.precision == "bf16" else None
    with torch.device("meta"):
        model = reference.build(reference.seq).train()
        inputs, target = reference.inputs(reference, case.batch, reference.seq)
    if dtype:
        model = model.to(dtype)
        inputs, target = (t.to(dtype) if t.is_floating_point() else t for t in (inputs, target))
    if case.layout == "nhwc":
        channels_last.lay_out(model)
        inputs = channels_last.laid_out(inputs)
    if case.variant == "checkpoint-blocks":
        compact.checkpointed(model, compact.BLOCKS[case.name])
    return model, inputs, target


def recorded(case: Any, optimizer: str) -> dict[str, Any]:
    reference = catalogue.cases()[case.name].reference
    model, inputs, target = made(case, reference)
    options = {"foreach": False} if case.variant == "for-loop" else {}
    loop = Loop(case, reference, model, optimizer, options)
    if case.variant == "fused":
        loop.optimizer.param_groups[0]["fused"] = True
        loop.optimizer.defaults["fused"] = True
    axes = [1, 0] if case.name == "lstm-lm" else 0
    return stowage.record(loop, (inputs, target), compute_capability=(8, 0),
                          batch_axes=axes).document


def compare(case: Any, batches: Sequence[int], optimizer: str) -> None:
    started = time.monotonic()
    document = recorded(case, optimizer)
    words = [f"{time.monotonic() - started:.1f} s", *(w["message"] for w in document["warnings"])]
    alike = True
    for batch in batches:
        stem = compact.Case(case.name, batch, case.precision, case.variant, layout=case.layout).stem
        path = HERE.parent / "reference" / "models" / "compact" / f"{stem}.json"
        if not path.exists() or (document["fixed_batch"] and batch != case.batch):
            continue
        figures = measured(stem)["step_trace_cuda"].get(optimizer)
        if figures is None:
            continue
        steady = StepMemory(document, batch)
        found = (steady.peak, StepMemory(document, batch, first=True).peak,
                 StepMemory(document, batch, unit=ALLOCATION_UNIT).peak)
        expected = (figures["step2_peak"], figures["step1_peak"], figures["step2_peak_rounded_512"])
        alike = alike and found == expected
        words.append(f"b{batch} {'equal' if found == expected else f'{found} for {expected}'}")
    print("equal " if alike else "OTHER ", case.stem, optimizer, *words, sep="  ", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=["variant", "precision", "layout", "fp32"])
    parser.add_argument("--models", nargs="+")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for kind in arguments.kinds:
        groups = {}
        for case in compact.cases([kind]):
            key = (case.name, case.precision, case.variant, case.layout)
            groups.setdefault(key, []).append(case)
        for cases in groups.values():
            if arguments.models and cases[0].name not in arguments.models:
                continue
            try:
                compare(cases[0], [case.batch for case in cases], cases[0].optimizers[0])
            except Exception as error:  # say which, go on with the others
                print("FAILED", cases[0].stem, type(error).__name__, str(error)[:300], flush=True)


if __name__ == "__main__":
    main()
