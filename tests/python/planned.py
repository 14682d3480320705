"""Plans for tests, made from a recording in a few lines: what the program's planner does well, done
simply.

Every storage that a recorded pass saves, that the step makes, that nothing writes between its saving and
its use, and that has `least` bytes, leaves right after its last pack call, is let go at the next pack
call after its last use in forward, and is fetched one unpack call before its first.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

from step_memory import StepMemory
from stowage.plans.region_names import Region, input_key, region_of


def covers(region: Region, path: str) -> bool:
    """Whether a module lies in the region, or is it."""
    if region.row is None:
        return path == region.path or path.startswith(f"{region.path}.")
    whole = path if path.startswith(f"{region.path}.") else f"{region.path}.{path}"
    return any(whole == child or whole.startswith(f"{child}.")
               for child in (f"{region.path}.{place}" for place in range(*region.row)))


def size_text(size: Any) -> Any:
    """A size of a step file as a plan has it."""
    if isinstance(size, int):
        return size
    constant, slope = size
    word = "batch" if slope == 1 else f"{slope}*batch"
    return f"{word}{constant:+d}" if constant else word


class Planner:
    """Plans one document of stowage.record."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document, self.step = document, document["step"]
        self.rows = [row for row in self.step["saved"] if len(row) > 3]
        self.unpacked = sorted((row for row in self.rows if row[6] >= 0), key=lambda row: row[6])

    def forward_uses(self, storage: int) -> list[int]:
        first_backward = self.unpacked[0][6] if self.unpacked else len(self.step["nodes"])
        return [index for index, node in enumerate(self.step["nodes"][:first_backward])
                if storage in (*node[6][::2], *node[7][::2])]

    def held(self, row: list[Any]) -> int:
        """The last node of forward during which the script holds the tensor itself."""
        return min(row[7], self.unpacked[0][6] - 1)

    def is_written_again(self, storage: int, after: int) -> bool:
        return any(storage in node[7][::2] for node in self.step["nodes"][after + 1:])

    def tensor(self, row: list[Any]) -> dict[str, Any]:
        layout = self.document["layouts"][row[3]]
        return {"key": row[4], "dtype": layout[0],
                "shape": [size_text(size) for size in self.document["shapes"][layout[1]]]}

    def is_in(self, node: int, region: Region) -> bool:
        """Whether a node is of the region's modules."""
        origin = self.step["nodes"][node][3]
        return origin >= 0 and covers(region, self.document["origins"][origin][0])

    def input_rows(self, region: Region) -> list[list[Any]]:
        """What the region is given, as rows of saved tensors: asked for where its backward begins."""
        first_backward = self.unpacked[0][6]
        nodes = [index for index in range(len(self.step["nodes"])) if self.is_in(index, region)]
        begins = next(index for index in nodes if index >= first_backward)
        path = region.path if region.row is None else f"{region.path}.{region.row[0]}"
        modules = {row[0]: row[2] for row in self.document["modules"]}
        given = modules.get(path, modules.get(path.rpartition(".")[2], []))
        return [[0, storage, "region input", layout, input_key(region.name, number), nodes[0] - 1, begins,
                 held] for number, storage, layout, held in given if held >= 0]

    def storages(self, least: int) -> list[int]:
        found = []
        for storage in dict.fromkeys(row[1] for row in self.rows):
            _, _, persistence, size = self.step["storages"][storage][:4]
            constant, slope = size if isinstance(size, list) else (size, 0)
            rows = [row for row in self.rows if row[1] == storage]
            first_use = min((row[6] for row in rows if row[6] >= 0), default=-1)
            written = self.is_written_again(storage, max(row[5] for row in rows))
            if (persistence == "transient" and constant + slope * self.document["batch"] >= least and
                    first_use >= 0 and not written and all(row[6] >= 0 for row in rows)):
                found.append(storage)
        return found

    def entry(self, storage: int) -> dict[str, Any]:
        rows = [row for row in self.rows if row[1] == storage]
        last_use = max([*self.forward_uses(storage), *(self.held(row) for row in rows)], default=-1)
        start = self.rows.index(rows[-1])
        release = next((row[4] for row in self.rows[start + 1:] if row[5] >= last_use), None)
        own = min(self.unpacked.index(row) for row in rows)
        first_use = self.unpacked[own][6]
        fetch = next((row[4] for row in reversed(self.unpacked[:own]) if row[6] < first_use), None)
        size = self.step["storages"][storage][3]
        return {"saved": [self.tensor(row) for row in rows],
                "bytes": size if isinstance(size, list) else [size, 0], "start": rows[-1][4],
                "release": release, "fetch": fetch}

    def plan(self, least: int = 1, checkpoint: tuple[str, ...] = (),
             inputs: bool = False) -> dict[str, Any]:
        """The plan. `checkpoint`: regions whose insides then have no keys; `inputs`: what those are given
        that lie in no other leaves, too."""
        regions = [region_of(name) for name in checkpoint]
        outer = [one for one in regions if not any(
            other != one and covers(other, f"{one.path}.{one.row[0]}" if one.row else one.path)
            for other in regions)]
        more = [row for region in outer for row in self.input_rows(region)] if inputs else []
        self.rows = sorted((*(row for row in self.rows if not any(
            covers(region, row[4].rpartition("#")[0]) for region in regions)), *more),
            key=lambda row: row[5])
        self.unpacked = sorted((row for row in self.rows if row[6] >= 0), key=lambda row: row[6])
        return {
            "format": "stowage-pytorch-plan", "version": 1, "written_by": "tests", "names": "recorded",
            "model": self.document["model"], "batch": self.document["batch"], "micro_batches": 1,
            "passes": {"saved": len(self.rows), "first": [row[4] for row in self.rows[:4]]},
            "offload": [self.entry(storage) for storage in self.storages(least)],
            "checkpoint": [{"module": path} for path in checkpoint], "optimizer_on_cpu": None,
            "totals": {}}


def planned_bytes(plan: dict[str, Any], batch: int) -> int:
    """What one pass moves each way."""
    return sum(entry["bytes"][0] + entry["bytes"][1] * batch for entry in plan["offload"])


def write_plan(plan: dict[str, Any], path: str) -> str:
    pathlib.Path(path).write_text(json.dumps(plan))
    return path


class PlannedMemory(StepMemory):
    """Live bytes of each of a recording's nodes under a plan, by the file alone: a storage that leaves
    lives until the script lets it go and its release is reached, and from its fetch on."""

    def __init__(self, document: dict[str, Any], plan: dict[str, Any], unit: int) -> None:
        self.planner = Planner(document)
        self.rows = {row[4]: row for row in self.planner.rows}
        self.entries = {self.rows[entry["start"]][1]: entry for entry in plan["offload"]}
        self.numbers = {row[0]: number for number, row in enumerate(document["step"]["storages"])}
        super().__init__(document, plan["batch"], unit=unit)

    def spans(self, row: list[Any], touches: list[int], first: bool) -> list[tuple[int, int]]:
        whole = super().spans(row, touches, first)
        entry = self.entries.get(self.numbers[row[0]])
        if entry is None:
            return whole
        (begin, end), backward = whole[0], self.planner.unpacked[0][6]
        rows = [self.rows[one["key"]] for one in entry["saved"]]
        released = self.rows[entry["release"]][5] if entry["release"] else backward - 1
        held = max(self.planner.held(row) for row in rows)
        used = max((node for node in touches if node < backward), default=begin)
        fetched = self.rows[entry["fetch"]] if entry["fetch"] else min(rows, key=lambda row: row[6])
        return [(begin, max(released, held, used) + 1), (fetched[6], end)]
