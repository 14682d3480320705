"""What `export` writes to be looked at, read back with Python alone: the trace, the memory history."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import pickle
import pickletools
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree
from collections.abc import Iterator
from typing import Any

PROGRAM = os.environ["STOWAGE_PROGRAM"]
STEP = ["resnet18", "--gpu", "t4", "--batch", "16"]
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


def run(*words: str) -> bytes:
    done = subprocess.run([PROGRAM, *words], capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr.decode()
    return done.stdout


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message in protobuf's wire format."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value: Any
        if tag & 7 == VARINT:
            value, at = varint(data, at)
        elif tag & 7 == LENGTH:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
            assert len(value) == length
        else:
            raise AssertionError(f"wire type {tag & 7} is not written")
        yield tag >> 3, value


@dataclasses.dataclass
class Track:
    name: str
    slices: list[tuple[str, int, int]] = dataclasses.field(default_factory=list)
    samples: list[int] = dataclasses.field(default_factory=list)


def tracks_of(trace: bytes) -> dict[str, Track]:
    """The tracks of a trace by name; the numbers of fields are perfetto's (trace_packet.proto)."""
    tracks: dict[int, Track] = {}
    opened: dict[int, tuple[str, int]] = {}
    for number, packet in fields(trace):
        assert number == 1
        of = dict(fields(packet))
        if 60 in of:
            descriptor = dict(fields(of[60]))
            tracks[descriptor[1]] = Track(descriptor.get(2, b"").decode())
            continue
        event = dict(fields(of[11]))
        track = tracks[event[11]]
        if event[9] == 1:
            opened[event[11]] = (event[23].decode(), of[8])
        elif event[9] == 2:
            name, begin = opened.pop(event[11])
            track.slices.append((name, begin, of[8]))
        else:
            track.samples.append(event[30])
    assert not opened
    return {track.name: track for track in tracks.values()}


class Trace(unittest.TestCase):
    def test_of_a_step(self) -> None:
        tracks = tracks_of(run("export", *STEP, "--to", "trace"))
        sizes = json.loads(run("check", *STEP, "--format", "json"))
        slices = tracks["GPU"].slices
        self.assertEqual(max(tracks["GPU memory: all tensors"].samples), sizes["peak"]["tensor_bytes"])
        self.assertEqual(max(tracks["GPU memory: set aside"].samples), sizes["peak"]["reserved_bytes"])
        self.assertEqual(slices[0][:2], ("conv1.forward", 0))
        for before, after in zip(slices, slices[1:]):
            self.assertLessEqual(before[2], after[1])

    def test_of_a_plan(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            plan = str(pathlib.Path(folder) / "plan.yaml")
            run("plan", "mnist-cnn", "--batch", "64", "--budget", "8MiB", "-o", plan)
            tracks = tracks_of(run("export", plan, "--to", "trace"))
            decisions = json.loads(run("export", plan, "--to", "json"))
        on = {
            side: sum(node["processor"] == side for node in decisions["nodes"]) for side in ("gpu", "cpu")
        }
        self.assertEqual(len(tracks["GPU"].slices), on["gpu"])
        self.assertEqual(len(tracks["CPU"].slices), on["cpu"])
        copies = tracks["copies to the GPU"].slices + tracks["copies to the host"].slices
        self.assertEqual(len(copies), len(decisions["transfers"]))
        lanes = [
            tracks[name].slices for name in ("GPU", "CPU", "copies to the GPU", "copies to the host")
        ]
        last = max(end for lane in lanes for _, _, end in lane)
        self.assertAlmostEqual(last / 1e9, decisions["totals"]["step_seconds"], delta=2e-9)
        for lane in lanes:
            for before, after in zip(lane, lane[1:]):
                self.assertLessEqual(before[2], after[1])
        # The planner counts copies in flight as well.
        self.assertLessEqual(
            max(tracks["GPU memory: all tensors"].samples), decisions["totals"]["gpu_peak_bytes"]
        )


def replayed(events: list[dict[str, Any]]) -> tuple[int, int, dict[int, int]]:
    """The most bytes reserved and requested at once, and what is live in the end, by address."""
    live: dict[int, int] = {}
    reserved = most_reserved = requested = most_requested = 0
    for event in events:
        action, size = event["action"], event["size"]
        if action == "alloc":
            assert event["addr"] not in live
            live[event["addr"]] = size
            requested += size
        elif action == "free_completed":
            assert live.pop(event["addr"]) == size
            requested -= size
        elif action in ("segment_alloc", "segment_map"):
            reserved += size
        elif action in ("segment_free", "segment_unmap"):
            reserved -= size
        most_reserved, most_requested = max(most_reserved, reserved), max(most_requested, requested)
    return most_reserved, most_requested, live


class MemorySnapshot(unittest.TestCase):
    def test_its_events_lead_to_its_segments_and_to_the_check(self) -> None:
        for more in ([], ["--alloc-conf", "expandable_segments:True"]):
            with self.subTest(more):
                snapshot = pickle.loads(run("export", *STEP, *more, "--to", "memory-snapshot"))
                sizes = json.loads(run("check", *STEP, *more, "--format", "json"))
                most_reserved, most_requested, live = replayed(snapshot["device_traces"][0])
                self.assertEqual(most_reserved, sizes["peak"]["reserved_bytes"])
                self.assertLessEqual(most_requested, sizes["peak"]["tensor_bytes"])
                self.assertGreater(most_requested, sizes["peak"]["tensor_bytes"] * 0.99)
                blocks = {
                    block["address"]: block["requested_size"]
                    for segment in snapshot["segments"]
                    for block in segment["blocks"]
                    if block["state"] == "active_allocated"
                }
                self.assertEqual(blocks, live)
                for segment in snapshot["segments"]:
                    self.assertEqual(
                        sum(block["size"] for block in segment["blocks"]), segment["total_size"]
                    )

    def test_its_lists_come_in_batches(self) -> None:
        """MemoryViz.js holds a whole batch as the arguments of one call."""
        largest, items = 0, [0]  # by open mark: dictionaries, lists and tuples within it
        for opcode, _, _ in pickletools.genops(run("export", *STEP, "--to", "memory-snapshot")):
            if opcode.name == "MARK":
                items.append(0)
            elif opcode.name in ("APPENDS", "SETITEMS", "TUPLE"):
                largest = max(largest, items.pop())
                items[-1] += 1
        self.assertEqual(len(items), 1)
        self.assertLessEqual(largest, 1000)

    def test_frames_name_the_tensor_the_kernel_and_the_layer_with_its_line(self) -> None:
        snapshot = pickle.loads(run("export", *STEP, "--to", "memory-snapshot"))
        frames = [event["frames"] for event in snapshot["device_traces"][0] if event["action"] == "alloc"]
        first = frames[0]
        self.assertEqual(
            [frame["name"] for frame in first], ["conv1.weight", "conv1", "the model is loaded"]
        )
        self.assertEqual(pathlib.Path(first[1]["filename"]).name, "resnet18.yaml")
        self.assertGreater(first[1]["line"], 0)
        forward = next(each for each in frames if each[1]["name"] == "conv1.forward")
        self.assertEqual([frame["name"] for frame in forward][1:], ["conv1.forward", "conv1"])


class Drawing(unittest.TestCase):
    def test_an_svg_is_well_formed_and_asks_for_nothing_outside(self) -> None:
        text = run("export", *STEP, "--to", "svg").decode()
        root = xml.etree.ElementTree.fromstring(text)
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertEqual(text.count("http"), 1)  # the name of the language alone


class Markdown(unittest.TestCase):
    def test_its_sizes_are_those_of_the_check(self) -> None:
        text = run("export", *STEP, "--to", "markdown").decode()
        rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("|")]
        self.assertTrue(all(len(row) in (2, 3, 4) for row in rows))
        self.assertIn("| **tensors** |", text)


if __name__ == "__main__":
    unittest.main()
