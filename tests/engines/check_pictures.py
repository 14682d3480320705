#!/usr/bin/env python3
"""Has what `stowage export` writes to be looked at read by the programs that show it.

    python tests/engines/check_pictures.py build/stowage

Traces are read by Perfetto's own protobuf classes (PyPI's perfetto), memory snapshots by torch's
torch/cuda/_memory_viz.py, its functions and its command line. What is not installed is said and not
counted as read. Exit code 1: a file was refused, or says something else than the program's own answer.
`.ci/full engines` makes the environment.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import pickle
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

STEPS = {
    "a convolutional network": ["resnet18", "--gpu", "t4", "--batch", "16"],
    "a language model": ["gpt2", "--gpu", "rtx3090", "--batch", "4"],
    "an inference": ["resnet50", "--gpu", "t4", "--batch", "8", "--mode", "inference"],
    "expandable segments": ["gpt2", "--gpu", "rtx3090", "--alloc-conf", "expandable_segments:True"],
    "a step that does not fit": ["gpt2-xl", "--gpu", "t4", "--batch", "4"],
}
PLANS = {
    "a plan of a training": ["mnist-cnn", "--batch", "64", "--budget", "8MiB"],
    "a plan of an inference": ["mnist-cnn", "--mode", "inference", "--batch", "64", "--budget", "2MiB"],
}


def run(*words: str) -> bytes:
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise AssertionError(done.stderr.decode())
    return done.stdout


def expect(what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: {found!r}, not {wanted!r}")


class TraceFile:
    """A trace by Perfetto's classes: slices and samples by track."""

    def __init__(self, data: bytes) -> None:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import CounterDescriptor, Trace, TrackEvent

        trace = Trace()
        expect("the bytes read", trace.ParseFromString(data), len(data))
        trace.DiscardUnknownFields()
        expect("the bytes of known fields", trace.ByteSize(), len(data))
        names: dict[int, str] = {}
        self.slices: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
        self.samples: dict[str, list[int]] = defaultdict(list)
        self.details: dict[str, dict[str, Any]] = {}
        self.process = ""
        begun: dict[int, tuple[str, int]] = {}
        for packet in trace.packet:
            expect("the sequence", packet.trusted_packet_sequence_id, 1)
            if packet.HasField("track_descriptor"):
                descriptor = packet.track_descriptor
                names[descriptor.uuid] = descriptor.name
                if descriptor.HasField("process"):
                    self.process = descriptor.process.process_name
                else:
                    expect("the parent", names[descriptor.parent_uuid], "")
                if descriptor.HasField("counter"):
                    expect("the unit", descriptor.counter.unit, CounterDescriptor.UNIT_SIZE_BYTES)
                continue
            event, track = packet.track_event, names[packet.track_event.track_uuid]
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                begun[event.track_uuid] = (event.name, packet.timestamp)
                self.details[event.name] = {
                    each.name: getattr(each, str(each.WhichOneof("value")))
                    for each in event.debug_annotations
                }
            elif event.type == TrackEvent.TYPE_SLICE_END:
                name, begin = begun.pop(event.track_uuid)
                self.slices[track].append((name, begin, packet.timestamp))
            else:
                expect("the event's type", event.type, TrackEvent.TYPE_COUNTER)
                self.samples[track].append(event.counter_value)
        expect("slices without an end", begun, {})
        for track, slices in self.slices.items():
            for before, after in zip(slices, slices[1:]):
                if before[2] > after[1]:
                    raise AssertionError(f"{track}: {after} begins before {before} has ended")


def read_trace_of_step(program: str, words: list[str]) -> None:
    trace = TraceFile(run(program, "export", *words, "--to", "trace"))
    sizes = json.loads(run(program, "check", *words, "--format", "json"))
    expect("the peak", max(trace.samples["GPU memory: all tensors"]), sizes["peak"]["tensor_bytes"])
    if sizes["verdict"] == "fits":
        expect(
            "the reserve", max(trace.samples["GPU memory: set aside"]), sizes["peak"]["reserved_bytes"]
        )
    first = trace.slices["GPU"][0]
    expect("the first kernel's begin", first[1], 0)
    expect("its details", set(trace.details[first[0]]) >= {"kernel", "layer", "step"}, True)


def read_trace_of_plan(program: str, plan: str) -> None:
    trace = TraceFile(run(program, "export", plan, "--to", "trace"))
    decisions = json.loads(run(program, "export", plan, "--to", "json"))
    copies = [*trace.slices["copies to the GPU"], *trace.slices["copies to the host"]]
    expect("the copies", len(copies), len(decisions["transfers"]))
    expect(
        "the bytes copied",
        sum(trace.details[name]["bytes"] for name, _, _ in copies),
        decisions["totals"]["h2d_bytes"] + decisions["totals"]["d2h_bytes"],
    )
    kernels = [*trace.slices["GPU"], *trace.slices["CPU"]]
    expect(
        "the kernels",
        sorted(name for name, _, _ in kernels),
        sorted(node["node"] for node in decisions["nodes"]),
    )
    last = max(end for _, _, end in [*kernels, *copies])
    if abs(last / 1e9 - decisions["totals"]["step_seconds"]) > 2e-9:
        raise AssertionError(
            f"the step takes {last} ns, and the plan {decisions['totals']['step_seconds']} s"
        )


def read_snapshot(program: str, words: list[str], folder: Path) -> None:
    from torch.cuda import _memory_viz as viz

    path = folder / "step.pickle"
    run(program, "export", *words, "--to", "memory-snapshot", "-o", str(path))
    snapshot = pickle.loads(path.read_bytes())
    sizes = json.loads(run(program, "check", *words, "--format", "json"))
    reserved = sum(segment["total_size"] for segment in snapshot["segments"])
    if "expandable" not in " ".join(words):  # which give pages back between steps
        expect("the segments", reserved <= sizes["peak"]["reserved_bytes"], True)
    expect("segsum's segments", f"segments: {len(snapshot['segments'])}" in viz.segsum(snapshot), True)
    lines = viz.trace(snapshot)
    expect("trace's entries", lines.count(" = ") > 10, True)
    flames = viz.memory(snapshot, format_flamegraph=lambda text: text)
    layer = "fc" if "resnet" in words[0] else "wte"
    expect("a layer in the flame graph", layer in flames, True)
    segments = snapshot["segments"]
    expect("a comparison with itself", viz.compare(segments, segments, lambda text: text), "")
    smaller = viz.compare(segments[1:], segments, lambda text: text)
    expect("a comparison with one segment less", smaller.startswith("only_after;stream_0;seg_"), True)
    page = viz.trace_plot(pickle.loads(path.read_bytes()))
    expect("the plot's page", "MemoryViz" in page, True)
    for action in ("trace_plot", "segment_plot", "stats"):
        words_of_viz = [sys.executable, "-m", "torch.cuda._memory_viz", action, str(path)]
        if action != "stats":
            words_of_viz += ["-o", str(folder / f"{action}.html")]
        done = subprocess.run(words_of_viz, capture_output=True, text=True, check=False)
        expect(f"{action}'s exit code ({done.stderr[-300:]})", done.returncode, 0)


def main() -> int:
    program, failed, read = sys.argv[1], 0, 0
    folder = Path(tempfile.mkdtemp())

    def attempt(package: str, title: str, *arguments: Any) -> None:
        nonlocal failed, read
        if importlib.util.find_spec(package) is None:
            print(f"{title}: unread: {package} is not there", flush=True)
            return
        function, *rest = arguments
        try:
            function(program, *rest)
            read += 1
            print(f"{title}: read by {package} {importlib.metadata.version(package)}", flush=True)
        except Exception as error:  # a reader's own refusal is of any class
            failed += 1
            print(f"{title}: REFUSED: {type(error).__name__}: {str(error)[:400]}", flush=True)

    for title, words in STEPS.items():
        attempt("perfetto", f"trace of {title}", read_trace_of_step, words)
        attempt("torch", f"memory-snapshot of {title}", read_snapshot, words, folder)
    for title, words in PLANS.items():
        plan = str(folder / "plan.yaml")
        run(program, "plan", *words, "-o", plan)
        attempt("perfetto", f"trace of {title}", read_trace_of_plan, plan)
    print(f"{read} read, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
