#!/usr/bin/env python3
"""Where our training step and PyTorch's part: both sides' storages, beside each other.

    python diff_step.py vit_b_16-b2                        saved storages, each phase's peak
    python diff_step.py vit_b_16-b2 --optimizer adam
    python diff_step.py vit_b_16-b2 --timeline backward    every event of a phase, both sides

Takes files of models/compact, of tests/hf/traces and those of models/ at their default sequence. Ours comes from the
program build/tests/show_step (`cmake --build build --target show_step`). Storages of one size are
told apart by their names only by whoever reads; a size with the same count on both sides is not
shown. What the known differences account for is in "accounted".
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess

import fake_cuda

HERE = pathlib.Path(__file__).parent
SHOW_STEP = pathlib.Path(os.environ.get("SHOW_STEP", HERE.parents[1] / "build/tests/show_step"))


def case_of(stem):
    import compact
    import fine_tuning

    for case in fine_tuning.every_case():
        if case.stem == stem:
            return case
    for case in compact.cases(["fp32", "precision", "variant", "layout"]):
        if case.stem == stem:
            return case
    name, batch = re.fullmatch(r"(.*)-b(\d.*)", stem).groups()
    batch, _, precision = batch.partition("-")
    return compact.Case(name, int(batch), precision or "fp32")


def make_named_trace():
    """The class, made late: step_trace imports torch."""
    import step_trace

    class NamedTrace(step_trace.StorageTrace):
        """Knows of each live storage which operator made it, in which module; keeps those at the
        peak of each phase of the second step."""

        modules = [""]
        parameters = {}

        def __init__(self, device_type):
            super().__init__(device_type)
            self.origins = {}
            self.at_peak = {}
            self.operator = ""

        def count(self, tensor):
            size = super().count(tensor)
            if size is not None:
                key = tensor.untyped_storage()._cdata
                made = f"{self.operator} {list(tensor.shape)} {tensor.dtype}".replace("torch.", "")
                known = self.parameters.get(key, f"{self.modules[-1]}: {self.phase} {made}")
                self.origins[key] = (size, known)
            return size

        def observe(self, operator, tensors):
            self.operator = operator
            before = self.peaks.get((self.step, self.phase), {"bytes": -1})["bytes"]
            super().observe(f"{self.modules[-1]}: {operator}", tensors)
            if self.step == 2 and self.live > before:
                self.at_peak[self.phase] = [self.origins[key] for key in self.sizes]

    return NamedTrace


def fine_tuned(case, optimizer):
    """As theirs(), of a case of fine_tuning.py; checkpointed and offloaded ones list no saved rows."""
    import fine_tuning
    import saved_tensors

    trace_class = make_named_trace()
    with fine_tuning.prepared(case, fine_tuning.entry_of(case).reference) as (reference, made):
        entries = []
        if case.checkpoint:
            fine_tuning.checkpointed(made[0], case)
        elif case.offload is None:
            entries, _ = saved_tensors.collect(reference, *made)
        return followed(trace_class, entries, made, lambda: fine_tuning.run_of(
            case, reference, made, optimizer, trace_class))


def followed(trace_class, entries, made, run):
    """What theirs() returns of a run."""
    import saved_tensors

    for name, tensor in [*made[0].named_parameters(), *made[0].named_buffers()]:
        trace_class.parameters[tensor.untyped_storage()._cdata] = name
    collector = saved_tensors.Collector()
    collector.modules = trace_class.modules
    collector.watch_modules(made[0])
    trace = run()
    events = collections.defaultdict(list)
    for step, phase, operator, allocated, freed, live in trace.events:
        if step == 2:
            events[phase].append((operator, allocated, freed, live))
    return entries, events, trace.at_peak, trace.peaks


def theirs(case, optimizer):
    """(saved rows, {phase: events}, {phase: storages at the peak})."""
    import catalogue
    import compact
    import hf_models
    import models
    import saved_tensors
    import step_trace

    if hasattr(case, "lora"):
        return fine_tuned(case, optimizer)
    entry = catalogue.cases().get(case.name)
    if entry is None and (hf_models.HF / case.name).exists():
        entry = catalogue.Entry(case.name, hf_models.reference(case.name))
    entry = entry or catalogue.Entry(case.name, models.MODELS[case.name])
    reference = entry.reference
    trace_class = make_named_trace()
    with fake_cuda.fake_cuda():
        made = compact.made_for_cuda(case, reference)
        if case.precision.startswith("amp-"):
            reference = compact.under_autocast(reference, compact.dtype_of(case.precision),
                                               fake_cuda.autocast)
        if case.variant == "checkpoint-blocks":
            compact.checkpointed(made[0], compact.BLOCKS[case.name])
        entries, _ = saved_tensors.collect(reference, *made)
        return followed(trace_class, entries, made, lambda: step_trace.run(
            reference, *made, optimizer, fake_cuda.backward_possible, compact.loop_of(case.variant),
            trace_class))


def ours(stem, optimizer):
    shown = subprocess.run([SHOW_STEP, stem, optimizer], check=True, stdout=subprocess.PIPE)
    return json.loads(shown.stdout)


def phase_of(node):
    return {"loss": "forward", "update": "optimizer"}.get(node["phase"], node["phase"])


def peaks_of(shown):
    """{phase: (node, what is live there)}, as accounted."""
    best, live = {}, collections.Counter()
    for node in shown["nodes"]:
        live.subtract(tuple(row) for row in node["end"])
        live.update(tuple(row) for row in node["begin"])
        phase = phase_of(node)
        if phase not in best or node["accounted"] > best[phase][0]["accounted"]:
            best[phase] = node, [(size, name) for (name, size), n in live.items() for _ in range(n)]
    return best


def print_difference(mine, them, limit=12):
    """Sizes whose counts differ, with the names on both sides."""
    by_size = collections.defaultdict(lambda: ([], []))
    for side, rows in enumerate((mine, them)):
        for size, name in rows:
            by_size[size][side].append(name)
    for size, (a, b) in sorted(by_size.items(), reverse=True):
        if len(a) == len(b):
            continue
        print(f"  {size} bytes: ours {len(a)}, PyTorch's {len(b)}")
        for label, names in (("ours", a), ("theirs", b)):
            counted = collections.Counter(names)
            for name, count in list(counted.items())[-limit:]:
                print(f"      {label:7}{f'{count} x ' if count > 1 else ''}{name}")


def print_saved(shown, entries):
    print("saved storages")
    mine = [(size, f"{name} ({roles})") for _, size, name, roles in shown["saved"]]
    them = []
    for entry in entries:
        uses = dict.fromkeys(f"{u['module']} {u['node']}.{u['attribute']}"
                             for u in entry["saved_by"])
        them.append((entry["storage_bytes"], f"{entry['kind']} {', '.join(uses)}"))
    print_difference(mine, them)


def print_timeline(shown, events, phase):
    print(f"{phase}, ours")
    for node in shown["nodes"]:
        if phase_of(node) == phase:
            freed = "".join(f"  -{size} {name}" for name, size in node["end"])
            made = "".join(f"  +{size} {name}" for name, size in node["begin"])
            print(f"{node['accounted']:14} {node['name']}{freed}{made}")
    print(f"{phase}, PyTorch's: what is freed before the next event stands behind the event")
    for operator, allocated, freed, live in events[phase]:
        if allocated or freed:
            changes = "".join(f"  +{size}" for size in allocated) + "".join(
                f"  -{size}" for size in freed)
            print(f"{live:14} {operator}{changes}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="a reference file, without folder and extension")
    parser.add_argument("--optimizer", default="sgd-momentum")
    parser.add_argument("--timeline", choices=("forward", "backward", "optimizer"))
    arguments = parser.parse_args()
    fake_cuda.relaunch_with_shim()

    import torch

    torch.set_num_threads(1)
    shown = ours(arguments.file, arguments.optimizer)
    entries, events, at_peak, peaks = theirs(case_of(arguments.file), arguments.optimizer)
    if arguments.timeline:
        print_timeline(shown, events, arguments.timeline)
        return
    print_saved(shown, entries)
    for phase, (node, live) in peaks_of(shown).items():
        peak = peaks[2, phase]
        print(f"{phase}: ours {node['live']} + {node['accounted'] - node['live']} accounted "
              f"at {node['name']}, PyTorch's {peak['bytes']} at {peak['op']}: "
              f"{node['accounted'] - peak['bytes']:+}")
        print_difference(live, at_peak[phase])


if __name__ == "__main__":
    main()
