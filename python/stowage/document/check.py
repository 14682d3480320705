"""What `stowage` refuses of a step file (docs/step-file.md, "What is refused"), as far as a recording
could have it. The recorder asks before it calls a file written, since it cannot ask the program: that
may not be installed where recordings are made.

A size is a number or [constant, slope] in the batch. Both are linear, so that what holds at batch 1 and
for the slope holds at every batch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from stowage.document.extents import Extent, at_batch
from stowage.document.not_updated import ELEMENT_BYTES
from stowage.document.tables import contiguous_strides

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_AXES, MOST_ATTRIBUTES, MOST_NODES, MOST_STORAGES = 32, 100, 1_000_000, 4_000_000
MOST_ARGUMENTS, LARGEST_NUMBER, LONGEST_TEXT = 8_000_000, 2 ** 60, 4096
LARGEST_INT64 = 2 ** 63 - 1


class Unreadable(Exception):
    """The first thing that the program would refuse; the message says where it is."""


def require(holds: bool, message: str) -> None:
    if not holds:
        raise Unreadable(message)


def pairs(flat: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(storage, layout) of a flat list of tensors."""
    return zip(flat[::2], flat[1::2])


def line(size: Any) -> tuple[int, int]:
    """(constant, slope)"""
    return (size[0], size[1]) if isinstance(size, list) else (size, 0)


class Check:
    """Holds one document to the rules: `Check(document).run()` raises Unreadable."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document, self.step = document, document["step"]
        self.storages, self.nodes = self.step["storages"], self.step["nodes"]
        self.ends: dict[tuple[int, int], None] = {}  # views that were checked

    def run(self) -> None:
        self.check_values(self.document, "the file")
        self.check_tables()
        self.check_lists()
        self.check_names()
        self.check_nodes()
        self.check_saved()
        self.check_modules()
        self.check_flags()

    def check_values(self, value: Any, where: str, largest: int = LARGEST_NUMBER) -> None:
        """Numbers in their ranges and texts that can be read, wherever they stand. An attribute of a call
        may be any number of 64 bits."""
        if isinstance(value, str):
            require(len(value.encode(errors="replace")) <= LONGEST_TEXT,
                    f"{where} has a text of over {LONGEST_TEXT} bytes")
            require(not any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in value),
                    f"{where} has a text with a control character")
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise Unreadable(f"{where} has the number {value}")
        elif isinstance(value, int):  # a document has millions: no message is made in advance
            if not -largest <= value <= largest:
                raise Unreadable(f"{where} has the number {value}")
        elif isinstance(value, dict):
            for key, item in value.items():
                self.check_values(item, f"'{key}'", LARGEST_INT64 if key == "attributes" else largest)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.check_values(item, where, largest)

    def check_tables(self) -> None:
        shapes, layouts = self.document["shapes"], self.document["layouts"]
        require(all(len(shape) <= MOST_AXES for shape in shapes),
                f"a shape has more than {MOST_AXES} axes")
        for row in layouts:
            require(0 <= row[1] < len(shapes), "a layout has a shape that is not there")
            if len(row) > 2 and row[2] is not None:
                require(len(shapes[row[2]]) == len(shapes[row[1]]),
                        "a layout has not as many strides as its shape has axes")
        require(all(len(row) <= MOST_ATTRIBUTES for row in self.document["attributes"]),
                f"a call has more than {MOST_ATTRIBUTES} attributes")

    def check_lists(self) -> None:
        settings, step = self.document["settings"], self.step
        micro_batches, trains = settings["micro_batches"], settings["mode"] == "train"
        require(0 < len(self.nodes) <= MOST_NODES, f"the step has {len(self.nodes)} kernels")
        require(len(self.storages) <= MOST_STORAGES, f"the step has {len(self.storages)} storages")
        require(len(step["inputs"]) // 2 % micro_batches == 0, "inputs are not as many for each "
                                                               "micro-batch")
        require(len(step["losses"]) // 2 == (micro_batches if trains else 0),
                "the step has not one loss for each micro-batch")
        require(len(step["gradients"]) == 2 * len(self.document["parameters"]),
                "the step has not one gradient for each parameter")
        require(len(step["output"]) == 2, "the step has no output on the device")
        for name in ("inputs", "losses", "output", "gradients"):
            for storage, layout in pairs(step[name]):
                if storage >= 0 or name != "gradients":
                    self.check_view(storage, layout, f"'{name}'")

    def check_names(self) -> None:
        for what, rows in (("kernels", self.nodes), ("storages", self.storages)):
            names = [row[0] for row in rows]
            require(all(names), f"one of the {what} has no name")
            require(len(set(names)) == len(names), f"two {what} have one name")
        require(bool(self.document["model"]), "the model has no name")
        require(all(row[0] for row in self.document["parameters"]), "a parameter has no name")

    def check_nodes(self) -> None:
        written, arguments, micro_batch = set(), 0, 0
        for row in self.nodes:
            name, phase, reads, writes = row[0], row[2], row[6], row[7]
            arguments += (len(reads) + len(writes)) // 2
            require(phase == "update" or row[4] >= micro_batch,
                    f"'{name}' stands after a kernel of a later micro-batch")
            micro_batch = micro_batch if phase == "update" else row[4]
            for storage, layout in pairs(reads):
                self.check_view(storage, layout, f"'{name}'")
                require(self.storages[storage][2] != "transient" or storage in written,
                        f"'{name}' reads '{self.storages[storage][0]}' before anything has written it")
            for storage, layout in pairs(writes):
                self.check_view(storage, layout, f"'{name}'")
                written.add(storage)
            for storage in row[9] if len(row) > 9 else ():
                require(0 <= storage < len(self.storages), f"'{name}' holds no storage of the step")
        require(arguments <= MOST_ARGUMENTS, f"the step's kernels have {arguments} arguments")

    def check_saved(self) -> None:
        keys = set()
        for row in self.step["saved"]:
            require(0 <= row[0] < len(self.document["origins"]) and 0 <= row[1] < len(self.storages),
                    "a saved tensor has an origin or a storage that is not there")
            if len(row) == 3:
                continue
            _, storage, _, layout, key, *nodes = row
            self.check_view(storage, layout, f"'{key}'")
            require(key not in keys, f"two saved tensors have the key '{key}'")
            keys.add(key)
            require(all(-1 <= node < len(self.nodes) for node in nodes),
                    f"'{key}' names a kernel that is not there")

    def check_modules(self) -> None:
        for path, _, inputs in self.document.get("modules", ()):
            for _, storage, layout, held in inputs:
                self.check_view(storage, layout, f"the module '{path}'")
                require(-1 <= held < len(self.nodes),
                        f"the module '{path}' names a kernel that is not there")

    def check_flags(self) -> None:
        for row in self.storages:
            flags = row[6] if len(row) > 6 else {}
            for flag, persistence in (("carries_over", "persistent"), ("first_made_by", "persistent"),
                                      ("replaced_after", "transient")):
                require(flag not in flags or row[2] == persistence,
                        f"'{row[0]}' is not {persistence} and has '{flag}'")
            for flag in ("first_made_by", "replaced_after"):
                require(0 <= flags.get(flag, 0) < len(self.nodes),
                        f"'{row[0]}' names a kernel that is not there")
            require(row[1] != "parameter" or not isinstance(row[3], list),
                    f"the bytes of the parameter '{row[0]}' follow the batch")

    def check_view(self, storage: int, layout: int, whose: str) -> None:
        """The view lies within its storage, at every batch that the file serves."""
        require(0 <= storage < len(self.storages) and 0 <= layout < len(self.document["layouts"]),
                f"{whose} has a tensor that is not there")
        if (storage, layout) in self.ends:
            return
        self.ends[storage, layout] = None
        row = self.document["layouts"][layout]
        shape, strides = self.document["shapes"][row[1]], self.strides_of(row)
        if 0 in shape:
            return
        name, size = self.storages[storage][0], self.storages[storage][3]
        if self.document["fixed_batch"]:
            batch = self.document["batch"]
            fits = reach(row, shape, strides, batch) <= at_batch(size, batch)
        else:
            growing = [axis for axis, extent in enumerate(shape) if line(extent)[1]]
            require(len(growing) < 2 and not any(strides and line(strides[axis])[1] for axis in growing),
                    f"{whose} sees '{name}' grow faster than the batch")
            at_one, at_two = (reach(row, shape, strides, batch) for batch in (1, 2))
            fits = at_one <= at_batch(size, 1) and at_two - at_one <= line(size)[1]
        require(fits, f"{whose} sees more of '{name}' than it has")

    def strides_of(self, row: list[Any]) -> list[Any] | None:
        """The strides of a layout's row; None: those of a contiguous tensor."""
        return self.document["shapes"][row[2]] if len(row) > 2 and row[2] is not None else None


def reach(row: list[Any], shape: Sequence[Any], strides: Sequence[Any] | None, batch: int) -> int:
    """One past the last byte that a view of this layout uses at the batch."""
    sizes = tuple(at_batch(size, batch) for size in shape)
    steps = contiguous_strides(sizes) if strides is None else tuple(
        at_batch(stride, batch) for stride in strides)
    offset = at_batch(row[3], batch) if len(row) > 3 else 0
    return Extent(sizes, steps, offset, ELEMENT_BYTES[row[0]]).reach(batch)


def check_readable(document: dict[str, Any]) -> None:
    """Raises Unreadable for a document that the program would refuse."""
    Check(document).run()
