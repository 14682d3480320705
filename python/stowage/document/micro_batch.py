"""The part of a step that each micro-batch runs again (docs/step-file.md, "Micro-batches"). It is
written only for steps of stowage's own loop: what a user's function does between forward and update
cannot be known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stowage.document.assemble import Assembly
    from stowage.document.classes import StorageRow


class MicroBatch:
    """Reads an assembly's described step, in the numbers of its graph."""

    def __init__(self, assembly: Assembly, rows: list[StorageRow]) -> None:
        self.assembly, self.rows = assembly, rows
        self.step, self.local = assembly.step, assembly.local
        self.end = next((index for index, node in enumerate(self.step.nodes)
                         if node.phase == "update"), len(self.step.nodes))

    def graph_entry(self) -> dict[str, Any] | None:
        """The graph's entry `micro_batch`, or None where update kernels run between the others."""
        if any(node.phase != "update" for node in self.step.nodes[self.end:]):
            return None
        arrivals, first_only = self.arrivals()
        return {"nodes": [0, self.end], "storages": self.storages(), "first_only": first_only,
                "arrivals": arrivals, "variables": self.variables()}

    def storages(self) -> list[int]:
        """[first, end): the inputs, and what forward and backward make."""
        inputs = [self.local[view.storage] for view in self.step.inputs]
        first = min(inputs, default=None)
        end = first if first is not None else len(self.rows)
        makers = self.assembly.makers
        for number in self.assembly.storages[0].numbers:
            in_part = number in self.assembly.storages[0].inputs or (
                number in self.assembly.storages[0].made and makers[number][0] < self.end)
            if in_part:
                end = max(end, self.local[number] + 1)
                first = self.local[number] if first is None else first
        return [end if first is None else first, end]

    def arrivals(self) -> tuple[list[list[Any]], list[int]]:
        """(rows of `arrivals` in the order of their nodes, `first_only`)."""
        names = [row.name for row in self.assembly.recording.parameters]
        rows, first_only = [], []
        for parameter, name in enumerate(names):
            view = self.step.gradients.get(name)
            if view is None or view.storage not in self.assembly.storages[0].made:
                continue  # it has none, or one to which every micro-batch adds
            writers = [index for index in range(self.end)
                       if any(w.storage == view.storage for w in self.step.nodes[index].writes)]
            if not writers:
                continue
            after, arrived = writers[-1], view
            node = self.step.nodes[writers[0]]
            if node.accumulates and node.reads and writers[0] > 0:  # a copy of what arrived
                first_only.append(writers[0])
                after, arrived = writers[0] - 1, node.reads[0]
            layout = self.assembly.tables.layout((arrived,) * len(self.assembly.steps), name)
            rows.append([parameter, after, [self.local[arrived.storage], layout],
                         self.rows[self.local[view.storage]].origin])
        return sorted(rows, key=lambda row: row[1]), sorted(set(first_only))

    def variables(self) -> list[list[Any]]:
        """The storages that the script's variables keep, in the order in which they are released."""
        results = []
        for number in self.assembly.storages[0].numbers:
            flags = self.rows[self.local[number]].flags
            if "replaced_after" in flags:
                results.append(["result", self.local[number], flags["replaced_after"]])
        results.sort(key=lambda row: row[2])
        roots = [["first_gradient", self.local[view.storage]] for node in self.step.nodes
                 if node.kernel == "aten::ones_like" and node.phase == "backward"
                 for view in node.writes][:1]
        inputs = [["input", self.local[view.storage]] for view in self.step.inputs]
        return results + roots + list(map(list, dict.fromkeys(map(tuple, inputs))))
