"""The memory of a step file, recounted from docs/step-file.md alone: no code of the recorder's."""

from __future__ import annotations

from typing import Any

ALLOCATION_UNIT = 512
PHASES = {"forward": "forward", "loss": "forward", "backward": "backward", "update": "optimizer"}


def at_batch(size: int | list[int], batch: int) -> int:
    return size if isinstance(size, int) else size[0] + size[1] * batch


class StepMemory:
    """Live bytes of each node's moment at a batch; `first`: of the first step, else of a steady one."""

    def __init__(self, document: dict[str, Any], batch: int | None = None, first: bool = False,
                 unit: int = 1) -> None:
        graph = document["step"]
        self.nodes = graph["nodes"]
        self.live = [0] * len(self.nodes)
        touches = self.touches(graph)
        batch = batch or document["batch"]
        for index, row in enumerate(graph["storages"]):
            row = row + [-1, -1, {}][len(row) - 4:] if len(row) < 7 else row
            size = -(-at_batch(row[3], batch) // unit) * unit
            for begin, end in self.spans(row, touches.get(index, []), first):
                for node in range(begin, end):
                    self.live[node] += size

    def touches(self, graph: dict[str, Any]) -> dict[int, list[int]]:
        found = {}
        for index, node in enumerate(graph["nodes"]):
            node = node + [[], []][len(node) - 8:] if len(node) < 10 else node
            for storage in [*node[6][::2], *node[7][::2], *node[8], *node[9]]:
                found.setdefault(storage, []).append(index)
        return found

    def spans(self, row: list[Any], touches: list[int], first: bool) -> list[tuple[int, int]]:
        """Half-open intervals of nodes."""
        _, kind, persistence, _, _, _, flags = row
        end = len(self.nodes)
        made_later = first and not flags.get("before_first_step") and (
            kind == "optimizer_state" or "first_made_by" in flags)
        if persistence == "persistent" and not made_later:
            return [(0, end)]
        if not touches:
            return []
        begin, last = touches[0], touches[-1] + 1
        if persistence == "from_host":
            begin = 0
        if first and "first_made_by" in flags:
            begin = flags["first_made_by"] + 1
        if flags.get("held_to_end") or "replaced_after" in flags or made_later:
            last = end
        spans = [(begin, last)]
        if "replaced_after" in flags and not first:
            spans.append((0, flags["replaced_after"] + 1))
        return spans

    @property
    def peak(self) -> int:
        return max(self.live)

    def peak_of(self, phase: str) -> int:
        return max(live for live, node in zip(self.live, self.nodes) if PHASES[node[2]] == phase)
