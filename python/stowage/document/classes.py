"""What each storage is, and how long it is kept, as a step file says it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stowage.document.names import Names
    from stowage.document.storages import StepStorages
    from stowage.trace.record import ModelTensor, NodeRecord, StepRecord
    from stowage.training.steps import Recording

KIND_BY_PHASE = {"forward": "activation", "loss": "activation", "backward": "activation_gradient",
           "update": "activation_gradient"}


@dataclasses.dataclass
class StorageRow:
    """A row of the step file's table of storages; -1: there is no origin, or no parameter."""

    name: str
    kind: str
    persistence: str
    origin: int = -1
    parameter: int = -1
    flags: dict[str, Any] = dataclasses.field(default_factory=dict)


class Uses:
    """Where a step touches each storage: its first and last node, its maker, its readers' phases."""

    def __init__(self, step: StepRecord, local: dict[int, int]) -> None:
        self.last: dict[int, int] = {}
        self.maker: dict[int, tuple[int, str]] = {}  # (node, position among its results)
        self.writers: dict[int, list[int]] = {}
        self.read_in: dict[int, set[str]] = {}
        for index, node in enumerate(step.nodes):
            for view in node.reads:
                if view.storage in local:
                    self.last[view.storage] = index
                    self.read_in.setdefault(view.storage, set()).add(node.phase)
            for position, view in zip(result_positions(node), node.writes):
                if view.storage in local:
                    self.last[view.storage] = index
                    self.maker.setdefault(view.storage, (index, position))
                    self.writers.setdefault(view.storage, []).append(index)


def result_positions(node: NodeRecord) -> list[str]:
    """A position or name for each of the node's writes."""
    words: list[str] = []
    for word in node.results.split(","):
        name, _, count = word.partition(":")
        if ".." in name:
            first, _, last = name.partition("..")
            words.extend(str(i) for i in range(int(first), int(last) + 1))
        else:
            words.extend([name] * int(count or 1))
    return words


class Classifier:
    """Gives every storage of a step its row. `names` makes them unique."""

    def __init__(self, recording: Recording, step: StepRecord, storages: StepStorages, names: Names,
                 node_names: list[str]) -> None:
        self.recording, self.step, self.storages = recording, step, storages
        self.names, self.node_names = names, node_names
        self.uses = Uses(step, storages.local)
        self.saved = {row.storage for row in step.saved}
        self.parameters: dict[int, tuple[int, ModelTensor]] = {}
        for index, row in enumerate((*recording.parameters, *recording.buffers)):
            self.parameters.setdefault(row.view.storage, (index, row))
        self.by_name = {row.name: index for index, row in enumerate(recording.parameters)}
        self.gradients = {view.storage: name for name, view in step.gradients.items()}
        self.kept = {view.storage for view in (*step.losses, *([step.output] if step.output else []))}

    def rows(self, input_names: list[str]) -> list[StorageRow]:
        """StorageRow of each of the step's storages, in order."""
        input_name = dict(zip((view.storage for view in self.step.inputs), input_names))
        return [self.row(number, input_name) for number in self.storages.numbers]

    def row(self, number: int, input_name: dict[int, str]) -> StorageRow:
        if number in self.parameters:
            return self.parameter_row(number)
        if number in self.storages.inputs:
            return StorageRow(self.names.unique(input_name[number]), "input", "from_host",
                              flags={"held_to_end": True})
        if number in self.storages.made:
            return self.made_row(number)
        return self.lasting_row(number)

    def parameter_row(self, number: int) -> StorageRow:
        index, row = self.parameters[number]
        flags = {"carries_over": True} if number in self.uses.writers else {}
        return StorageRow(self.names.unique(row.name), "buffer" if row.kind == "buffer" else "parameter",
                          "persistent", parameter=index, flags=flags)

    def lasting_row(self, number: int) -> StorageRow:
        """The row of a storage that exists before the step and after it: optimizer state, a gradient
        that is zeroed in place, or a tensor that the user's code keeps."""
        flags: dict[str, Any] = {"carries_over": True} if number in self.uses.writers else {}
        if number in self.step.optimizer_state:
            name, owner = self.step.optimizer_state[number]
            if number in self.recording.model_state:
                flags["before_first_step"] = True
            return StorageRow(self.names.unique(name), "optimizer_state", "persistent",
                              parameter=self.by_name.get(owner, -1), flags=flags)
        if number in self.gradients:
            owner = self.gradients[number]
            maker = next((index for index in self.uses.writers.get(number, [])
                          if self.step.nodes[index].phase == "backward"), None)
            if maker is not None and maker < len(self.step.nodes) - 1:
                flags["first_made_by"] = maker
            return StorageRow(self.names.unique(f"{owner}.grad"), "gradient", "persistent",
                              parameter=self.by_name.get(owner, -1), flags=flags)
        return StorageRow(self.names.unique("kept"), "buffer", "persistent", flags=flags)

    def made_row(self, number: int) -> StorageRow:
        index, position = self.uses.maker[number]
        node = self.step.nodes[index]
        flags = self.end_of_life(number)
        if number in self.gradients:
            owner = self.gradients[number]
            return StorageRow(self.names.unique(f"{owner}.grad"), "gradient", "transient",
                              parameter=self.by_name.get(owner, -1), flags=flags)
        if number in self.step.optimizer_state:
            name, owner = self.step.optimizer_state[number]
            return StorageRow(self.names.unique(name), "optimizer_state", "transient",
                              parameter=self.by_name.get(owner, -1), flags=flags)
        name = self.node_names[index] + ("" if position == "0" else f":{position}")
        return StorageRow(self.names.unique(name), self.kind_of_made(number, node), "transient",
                          flags=flags)

    def kind_of_made(self, number: int, node: NodeRecord) -> str:
        if node.phase in ("backward", "update"):
            return "activation" if node.recomputed else KIND_BY_PHASE[node.phase]
        if node.kernel == "aten::_to_copy" and any(
                view.storage in self.parameters for view in node.reads):
            return "parameter_copy"  # in autocast's lower format
        if not node.reads and node.kernel == "aten::_to_copy":
            return "input"  # uploaded by the step itself
        forward = self.uses.read_in.get(number, set()) & {"forward", "loss"}
        if number in self.saved and number not in self.kept and not forward:
            return "saved_auxiliary"
        return "activation"

    def end_of_life(self, number: int) -> dict[str, Any]:
        """Flags of a storage that a variable keeps after its last use: to the step's end, or until the
        next step assigns the variable again."""
        died = self.recording.storages[number].died
        if died is not None and died.step == self.step.index:
            return {}
        if died is not None and died.step == self.step.index + 1 and died.node >= 0:
            return {"replaced_after": min(died.node, len(self.step.nodes) - 1)}
        return {"held_to_end": True}

    def held(self, number: int) -> int | None:
        """The node after which the storage is freed, if that is later than its last use; else None."""
        died = self.recording.storages[number].died
        if number not in self.storages.made or died is None or died.step != self.step.index:
            return None
        return died.node if died.node > self.uses.last[number] else None
