"""From a recording to a step file's document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stowage.document.affine import Affine, NotAffine
from stowage.document.classes import Classifier, StorageRow
from stowage.document.layers import layer_rows
from stowage.document.micro_batch import MicroBatch
from stowage.document.modules import module_rows
from stowage.document.names import Names, node_name
from stowage.document.not_updated import not_updated_ids
from stowage.document.saved import saved_rows
from stowage.document.storages import StepStorages
from stowage.document.tables import Tables, type_of
from stowage.errors import StowageError
from stowage.shown import printable_tree
from stowage.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stowage.document.description import Description
    from stowage.trace.record import NodeRecord, StepRecord, View
    from stowage.training.steps import Recording


class Assembly:
    """One document. `described` is the steady step; `others` the steps at other batches, in the
    order of `batches[1:]`."""

    def __init__(self, recording: Recording, described: StepRecord, others: list[StepRecord],
                 batches: Sequence[int]) -> None:
        self.recording = recording
        self.steps = [described, *others]
        self.affine = Affine(batches)
        self.tables = Tables(self.affine)
        self.storages = [StepStorages(recording, step) for step in self.steps]
        self.names = Names()
        self.within: set[tuple[int, int]] = set()  # (storage, layout): checked

    @property
    def step(self) -> StepRecord:
        return self.steps[0]

    @property
    def local(self) -> dict[int, int]:
        return self.storages[0].local

    def check_structure(self) -> None:
        """Raises NotAffine unless the step has the same nodes on the same storages at every batch."""
        for step, storages in zip(self.steps[1:], self.storages[1:]):
            if len(step.nodes) != len(self.step.nodes):
                raise NotAffine(f"the step has {len(self.step.nodes)} kernels at batch "
                                f"{self.step.batch} and {len(step.nodes)} at batch {step.batch}"
                                f"{self.first_difference(step)}")
            for ours, theirs in zip(self.step.nodes, step.nodes):
                if not self.is_same_call(ours, theirs, storages):
                    raise NotAffine(f"{ours.layer or ours.phase} ({ours.place}) runs {ours.kernel} at "
                                    f"batch {self.step.batch} and another kernel, or the same on "
                                    f"other tensors, at batch {step.batch}")
            if len(storages.numbers) != len(self.storages[0].numbers):
                raise NotAffine(f"the step has other storages at batch {step.batch}")

    def first_difference(self, step: StepRecord) -> str:
        for ours, theirs in zip(self.step.nodes, step.nodes):
            if ours.kernel != theirs.kernel:
                return f": first other at {ours.layer or ours.phase} ({ours.place}), {ours.kernel}"
        return ""

    def is_same_call(self, ours: NodeRecord, theirs: NodeRecord, storages: StepStorages) -> bool:
        def places(views: Sequence[View], local: dict[int, int]) -> list[int | None]:
            return [local.get(view.storage) for view in views]

        return (ours.kernel == theirs.kernel and ours.phase == theirs.phase and
                ours.layer == theirs.layer and ours.arguments == theirs.arguments and
                ours.results == theirs.results and
                ours.attributes.keys() == theirs.attributes.keys() and
                places(ours.reads, self.local) == places(theirs.reads, storages.local) and
                places(ours.writes, self.local) == places(theirs.writes, storages.local))

    # Graph

    def tensors(self, lists: Sequence[Sequence[View]], where: str) -> list[int]:
        """The flat list "storage, layout, ..." of the views that `lists` has of each step, without
        views of storages that are not the step's."""
        flat = []
        for views in zip(*lists):
            if views[0].storage in self.local:
                place, layout = self.local[views[0].storage], self.tables.layout(views, where)
                self.check_extent(place, layout, where)
                flat += [place, layout]
        return flat

    def check_extent(self, place: int, layout: int, where: str) -> None:
        """Raises NotAffine where a tensor of that layout is not within the storage at every batch."""
        if len(self.steps) > 1 and (place, layout) not in self.within:
            self.within.add((place, layout))
            self.tables.extents[layout].check(self.storage_bytes(place, where), where)

    def storage_bytes(self, place: int, where: str) -> int | list[int]:
        sizes = [self.recording.storages[s.numbers[place]].bytes for s in self.storages]
        return self.affine.size(sizes, where)

    def attributes_of(self, nodes: Sequence[NodeRecord], reads: list[int]) -> int:
        several = []
        for node in nodes:
            values = dict(node.attributes)
            if node.arguments:
                values["arguments"] = node.arguments
            values["results"] = node.results
            several.append(values)
        if len(reads) != 2 * len(nodes[0].reads):  # an argument of the step before is left out
            several[0]["arguments"] = remaining_arguments(nodes[0], self.local)
        return self.tables.attribute_row(several)

    def node_rows(self, node_names: list[str], classifier: Classifier) -> list[list[Any]]:
        holds: dict[int, list[int]] = {}
        for number in self.storages[0].numbers:
            held = classifier.held(number)
            if held is not None:
                holds.setdefault(held, []).append(self.local[number])
        rows = []
        for index, nodes in enumerate(zip(*(step.nodes for step in self.steps))):
            node, where = nodes[0], node_names[index]
            reads = self.tensors([n.reads for n in nodes], where)
            writes = self.tensors([n.writes for n in nodes], where)
            row = [where, node.kernel, node.phase, self.tables.origin(node.layer, node.place)
                   if node.layer or node.place else -1, node.micro_batch,
                   self.attributes_of(nodes, reads), reads, writes, [], holds.get(index, []),
                   self.affine.size([n.flops for n in nodes], where)]
            while len(row) > 8 and row[-1] in ([], 0):
                row.pop()
            rows.append(row)
        return rows

    def storage_rows(self, rows: list[StorageRow]) -> list[list[Any]]:
        table = []
        for place, row in enumerate(rows):
            size = self.storage_bytes(place, row.name)
            written = [row.name, row.kind, row.persistence, size, row.origin, row.parameter, row.flags]
            while len(written) > 4 and written[-1] in (-1, {}):
                written.pop()
            table.append(written)
        return table

    def set_origins(self, rows: list[StorageRow], classifier: Classifier) -> None:
        """Storages come from the layer whose node made them; a parameter from the module that has
        it, gradients and state from their parameter's."""
        of_layer = {}
        for node in self.step.nodes:
            if node.layer and node.layer not in of_layer:
                of_layer[node.layer] = self.tables.origin(node.layer, node.place)
        named = [row.name for row in (*self.recording.parameters, *self.recording.buffers)]
        for number, row in zip(self.storages[0].numbers, rows):
            if row.parameter >= 0:
                layer = named[row.parameter].rpartition(".")[0]
                if layer:
                    row.origin = of_layer[layer] if layer in of_layer else (
                        self.tables.origin(layer, ""))
            elif number in classifier.uses.maker and number in self.storages[0].made:
                node = self.step.nodes[classifier.uses.maker[number][0]]
                if node.layer or node.place:
                    row.origin = self.tables.origin(node.layer, node.place)

    def one_tensor(self, views: Sequence[View | None]) -> list[int]:
        """As `tensors`, of the one that each step returned; empty where one returned none."""
        found = [[view] for view in views if view is not None]
        return self.tensors(found, "the result") if len(found) == len(views) else []

    def graph(self, input_names: list[str], training: bool, micro_batches: int,
              repeatable: bool) -> tuple[dict[str, Any], list[StorageRow]]:
        node_names = [self.names.unique(node_name(node)) for node in self.step.nodes]
        classifier = Classifier(self.recording, self.step, self.storages[0], Names(), node_names)
        rows = classifier.rows(input_names)
        self.makers = classifier.uses.maker
        nodes = self.node_rows(node_names, classifier)
        self.set_origins(rows, classifier)
        inputs = self.tensors([step.inputs for step in self.steps], "the inputs")
        losses = self.tensors([step.losses[-micro_batches:] for step in self.steps], "the loss")
        output = self.one_tensor([step.output for step in self.steps])
        graph = {
            "storages": self.storage_rows(rows), "nodes": nodes,
            "saved": saved_rows(self),
            "inputs": inputs * micro_batches, "output": output or losses[:2] or nodes[-1][7][:2],
            "losses": losses if training else [], "gradients": self.gradients(),
            "host_state_bytes": self.step.host_state_bytes}
        if repeatable and training:
            part = MicroBatch(self, rows).graph_entry()
            if part is not None:
                graph["micro_batch"] = part
        return graph, rows

    def gradients(self) -> list[int]:
        flat = []
        for row in (*self.recording.parameters, *self.recording.buffers):
            views = [step.gradients[row.name] for step in self.steps if row.name in step.gradients]
            if len(views) < len(self.steps) or views[0].storage not in self.local:
                flat += [-1, -1]
            else:
                flat += [self.local[views[0].storage], self.tables.layout(tuple(views), row.name)]
        return flat


def remaining_arguments(node: NodeRecord, local: dict[int, int]) -> str:
    """The names of the node's arguments, without those whose storages belong to the step before."""
    names, index = [], 0
    for word in node.arguments.split(","):
        name, _, count = word.partition(":")
        number = int(count or 1)
        left = sum(view.storage in local for view in node.reads[index:index + number])
        index += number
        if left:
            names.append(name if not count else f"{name}:{left}")
    return ",".join(names)


def parameter_rows(recording: Recording, tables: Tables) -> list[list[Any]]:
    rows = []
    for name, dtype, shape, kind, _ in (*recording.parameters, *recording.buffers):
        word, factor = type_of(dtype)
        rows.append([name, word, tables.shape((*shape, factor) if factor > 1 else shape), kind])
    return rows


def document(recording: Recording, batches: Sequence[int],
             description: Description) -> dict[str, Any]:
    """The content of the step file. `batches` are those of the recording's steps from the second on.
    Where sizes are not affine in the batch the batch is fixed, and a warning says where."""
    warnings = list(description.warnings)
    described, others = recording.steps[1], recording.steps[2:]
    if not described.nodes:
        raise StowageError("the step runs no kernel on the device",
                           "give it the models and tensors that it is to compute with")
    fixed = described.batch in [step.batch for step in others]  # no other batch was to be had
    others = [] if fixed else others
    try:
        assembly = Assembly(recording, described, others, batches[:1] if fixed else batches)
        assembly.check_structure()
        graph, rows = assembly.graph(description.input_names, description.training,
                                     description.micro_batches, description.repeatable)
    except NotAffine as reason:
        fixed = True
        warnings.append({
            "message": f"the step is recorded for batch {described.batch} alone: {reason}",
            "hint": "record it again at the batch that is asked for" if described.batch > 1 else
                    "record it at batch 2: an axis of one element is like no other"})
        assembly = Assembly(recording, described, [], batches[:1])
        graph, rows = assembly.graph(description.input_names, description.training,
                                     description.micro_batches, description.repeatable)
    tables = assembly.tables
    modules = module_rows(assembly) if description.training else []
    parameters = parameter_rows(recording, tables)
    layers, result_bytes = layer_rows(assembly, rows)
    missing = not_updated_ids(recording) if description.training else []
    content: dict[str, Any] = printable_tree({
        "format": "stowage-step", "version": 1,
        "written_by": f"stowage.record {VERSION}, torch {description.torch_version}",
        "model": description.name, "source": description.source, "runtime": "pytorch",
        "precision": description.precision, "seq": description.seq,
        "accumulation": description.micro_batches, "batch": described.batch,
        "fixed_batch": fixed, "settings": description.settings(graph),
        "origins": tables.origins.rows or [["step"]], "parameters": parameters,
        **({"not_updated": missing} if missing else {}), "layers": layers,
        **({"modules": modules} if modules else {}),
        "result_bytes": result_bytes, "warnings": warnings, "shapes": tables.shapes.rows,
        "layouts": tables.layouts.rows, "attributes": tables.attributes.rows, "convolutions": [],
        "step": graph})
    return content
