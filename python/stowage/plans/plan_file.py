"""Reading a plan for PyTorch (docs/apply.md says what is in it).

A plan comes from a file, and the file may be anybody's: whatever it holds, reading it ends with a Plan or
with a StowageError that names the place.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from stowage.errors import StowageError
from stowage.plans.dimensions import Size, dimension_of
from stowage.plans.region_names import faulty_row, is_key, region_of
from stowage.shown import printable_line

if TYPE_CHECKING:
    from collections.abc import Callable

FORMAT, VERSION = "stowage-pytorch-plan", 1
LARGEST_FILE = 16 * 2 ** 20  # bytes
MOST_SAVED, MOST_AXES = 1_000_000, 64  # of one plan, of one tensor
LARGEST_NUMBER, LONGEST_TEXT = 2 ** 60, 4096
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool")

PlanLike: TypeAlias = "str | os.PathLike[str] | Plan"


@dataclasses.dataclass(frozen=True)
class PlannedTensor:
    """A saved tensor, by its key (saved_names.py). `dtype` is the step file's word; a wider type stands
    as several elements along a new last axis (document/tables.py)."""

    key: str
    dtype: str
    shape: tuple[Size, ...]


@dataclasses.dataclass(frozen=True)
class Offload:
    """A storage that leaves for pinned memory. `saved` are the tensors in it. The copy out begins right
    after the pack call `start`; before the pack call `release` is answered the storage is let go (None:
    at the first unpack call); before the unpack call `fetch` is answered the copy back begins (None: at
    the first of its own)."""

    saved: tuple[PlannedTensor, ...]
    bytes: Size
    start: str
    release: str | None
    fetch: str | None


@dataclasses.dataclass(frozen=True)
class Streamed:
    """A module whose parameters lie in host memory. Before it runs they are copied to one piece of
    `bytes`, in this order, each from a multiple of 512 bytes on; `uploads` times in a pass."""

    module: str
    parameters: tuple[str, ...]  # their whole names
    bytes: int
    uploads: int


@dataclasses.dataclass(frozen=True)
class Chunks:
    """An inference in parts of the batch: the shapes of the model's inputs, in the order of its call, and
    of its output. The first axis of those that follow the batch is the batch."""

    parts: int
    inputs: tuple[tuple[Size, ...], ...]
    output: tuple[Size, ...]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is carried out, and what the step was when it was made. None: the file does not say it."""

    model: str
    offload: tuple[Offload, ...]
    checkpoint: tuple[str, ...]  # names of regions (region_names.py)
    stream: tuple[Streamed, ...] = ()  # in the order in which they run
    trains: bool = True  # else an inference
    chunks: Chunks | None = None  # None: the batch runs whole
    batch: int | None = None
    micro_batches: int = 1
    saved_calls: int | None = None  # pack calls with keys of one pass
    first_keys: tuple[str, ...] = ()  # of the first of them
    peak_allocated: int | None = None  # bytes
    peak_reserved: int | None = None  # bytes
    gradients_in_flight: int | None = None  # of an optimizer on the CPU; None: it stays on the device
    cpu_parameters: tuple[str, ...] = ()  # whose optimizer that is; empty: all of them
    early_updates: bool = False  # each as soon as its gradient is whole
    allocator: str = ""  # settings of PyTorch's allocator that it was simulated with, beside the usual
    update_bytes: int = 0  # that such an optimizer moves to the host each step, and back
    source: str = "the plan"  # the file's name

    @property
    def micro_batch(self) -> int | None:
        """Samples of one pass."""
        return None if self.batch is None else self.batch // self.micro_batches

    def streamed_bytes(self) -> int:
        """What a pass, or an inference with all of its parts, brings of streamed parameters."""
        parts = self.chunks.parts if self.chunks is not None else 1
        return parts * sum(one.bytes * one.uploads for one in self.stream)

    def offloaded_bytes(self, batch: int) -> int:
        """What a pass of so many samples moves to the host, and back."""
        return sum(entry.bytes.at(batch) for entry in self.offload)


def read_plan(plan: PlanLike) -> Plan:
    """The plan of a file; one that was read already is returned. Raises StowageError for a file that
    cannot be read, or that is none."""
    if isinstance(plan, Plan):
        return plan
    if not isinstance(plan, (str, os.PathLike)):
        raise StowageError(f"a plan is the path of a file, not a {type(plan).__name__}")
    name = os.fspath(plan)
    try:
        with open(name, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise StowageError(f"{name}: {error.strerror}") from None
    except ValueError:
        raise StowageError(f"'{printable_line(str(name))}' is no name of a file") from None
    if len(content) > LARGEST_FILE:
        raise StowageError(f"{name} has over {LARGEST_FILE >> 20} MiB: it is no plan for PyTorch")
    return PlanReader(str(name), loaded(str(name), content)).plan()


def loaded(name: str, content: bytes) -> Any:
    def no_number(word: str) -> NoReturn:
        raise ValueError(f"{word} is no number of JSON")

    def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ValueError(f"an object has '{printable_line(twice[:80])}' twice")
        return found

    try:
        return json.loads(content.decode(), parse_constant=no_number,
                          object_pairs_hook=without_duplicates)
    except json.JSONDecodeError as error:
        raise StowageError(f"{name}:{error.lineno}:{error.colno}: {error.msg}: this is no JSON",
                           "stowage plan MODEL --for pytorch -o FILE writes a plan") from None
    except RecursionError:
        raise StowageError(f"{name}: its lists are nested too deep: it is no plan") from None
    except ValueError as error:  # UnicodeDecodeError among them
        raise StowageError(f"{name}: {error}") from None


class PlanReader:
    """Holds a file's content to the format, entry by entry; `name` is the file's."""

    def __init__(self, name: str, content: Any) -> None:
        self.name, self.content = name, content
        self.saved = 0
        self.streamed_names: set[str] = set()

    def refuse(self, where: str, what: str, hint: str = "") -> NoReturn:
        raise StowageError(f"{self.name}: {where}: {what}" if where else f"{self.name}: {what}", hint)

    def entry(self, table: dict[str, Any], key: str, where: str, kind: type | tuple[type, ...],
              kind_name: str) -> Any:
        """The entry, of that kind. Booleans are no numbers."""
        place = f"{where}.{key}" if where else key
        if key not in table:
            self.refuse(place, "is missing")
        value = table[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            self.refuse(place, f"is no {kind_name}")
        return value

    def optional(self, table: dict[str, Any], key: str, where: str, kind: type, kind_name: str) -> Any:
        return None if table.get(key) is None else self.entry(table, key, where, kind, kind_name)

    def text(self, table: dict[str, Any], key: str, where: str) -> str:
        value: str = self.entry(table, key, where, str, "text")
        if len(value) > LONGEST_TEXT or not value.isprintable():
            self.refuse(f"{where}.{key}" if where else key, "is a text with control characters" if
                        len(value) <= LONGEST_TEXT else f"is a text of over {LONGEST_TEXT} characters")
        return value

    def number(self, value: Any, where: str, least: int = 0) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            self.refuse(where, "is no whole number")
        if not least <= value <= LARGEST_NUMBER:
            self.refuse(where, f"{str(value)[:30]} is out of range")
        return value

    def optional_number(self, table: dict[str, Any], key: str, where: str, least: int = 0) -> int | None:
        value = table.get(key)
        return None if value is None else self.number(value, f"{where}.{key}" if where else key, least)

    def plan(self) -> Plan:
        content = self.content
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            found = content.get("format") if isinstance(content, dict) else None
            self.refuse("", f"is no plan for PyTorch: its format is {printable_line(repr(found)[:80])}"
                        if found is not None else "is no plan for PyTorch",
                        "stowage plan step.json --for pytorch -o FILE writes one")
        if content.get("version") != VERSION or isinstance(content["version"], bool):
            self.refuse("version", f"{printable_line(repr(content.get('version'))[:40])} is unknown; "
                        f"this stowage reads version {VERSION}")
        self.check_names()
        in_flight, cpu_parameters = self.host_updates()
        passes = self.optional(content, "passes", "", dict, "object") or {}
        totals = self.optional(content, "totals", "", dict, "object") or {}
        offload = self.each("offload", self.offload)
        self.check_keys(offload)
        checkpoint = self.each("checkpoint", self.checkpoint)
        self.check_regions(checkpoint)
        plan = Plan(
            model=self.text(content, "model", ""), offload=tuple(offload),
            checkpoint=tuple(checkpoint),
            stream=tuple(self.each("stream", self.streamed)), trains=self.trains(),
            chunks=self.chunks(),
            batch=self.optional_number(content, "batch", "", 1),
            micro_batches=self.optional_number(content, "micro_batches", "", 1) or 1,
            saved_calls=self.optional_number(passes, "saved", "passes"),
            first_keys=self.first_keys(passes),
            peak_allocated=self.optional_number(totals, "peak_allocated_bytes", "totals"),
            peak_reserved=self.optional_number(totals, "peak_reserved_bytes", "totals"),
            gradients_in_flight=in_flight, cpu_parameters=cpu_parameters,
            early_updates=self.early_updates(),
            allocator=self.text(content, "allocator", "") if content.get("allocator") is not None else "",
            source=self.name)
        moved = self.optional_number(totals, "to_host_bytes", "totals")
        if in_flight is None or moved is None or plan.micro_batch is None:
            return plan
        offloaded = plan.micro_batches * plan.offloaded_bytes(plan.micro_batch)
        return dataclasses.replace(plan, update_bytes=max(0, moved - offloaded))

    def check_names(self) -> None:
        names = self.text(self.content, "names", "")
        if names != "recorded":
            self.refuse("names", f"'{names}': its saved tensors have no names that a script has",
                        "record the step (python -m stowage record), and plan that file")

    def each(self, key: str, read: Callable[[dict[str, Any], str], Any]) -> list[Any]:
        """What `read(row, place)` makes of each object in the list."""
        rows = self.content.get(key)
        if rows is None:
            return []
        if not isinstance(rows, list):
            self.refuse(key, "is no list")
        found = []
        for index, row in enumerate(rows):
            where = f"{key}[{index}]"
            if not isinstance(row, dict):
                self.refuse(where, "is no object")
            found.append(read(row, where))
        return found

    def offload(self, row: dict[str, Any], where: str) -> Offload:
        rows = self.entry(row, "saved", where, list, "list")
        saved = tuple(self.planned_tensor(one, f"{where}.saved[{index}]")
                      for index, one in enumerate(rows))
        self.saved += len(saved)
        if not saved:
            self.refuse(f"{where}.saved", "is empty")
        if self.saved > MOST_SAVED:
            self.refuse(f"{where}.saved", f"the plan has over {MOST_SAVED} tensors")
        start = self.key(row, "start", where)
        if start not in [one.key for one in saved]:
            self.refuse(f"{where}.start", f"'{start}' is none of its own tensors")
        return Offload(saved, self.bytes(row, where), start,
                       self.key(row, "release", where) if row.get("release") is not None else None,
                       self.key(row, "fetch", where) if row.get("fetch") is not None else None)

    def planned_tensor(self, row: Any, where: str) -> PlannedTensor:
        if not isinstance(row, dict):
            self.refuse(where, "is no object")
        dtype = self.text(row, "dtype", where)
        if dtype not in DTYPES:
            self.refuse(f"{where}.dtype", f"'{dtype}' is no type of a step file")
        shape = self.shape(row.get("shape"), f"{where}.shape")
        return PlannedTensor(self.key(row, "key", where), dtype, shape)

    def shape(self, sizes: Any, where: str) -> tuple[Size, ...]:
        if not isinstance(sizes, list):
            self.refuse(where, "is no list" if sizes is not None else "is missing")
        if len(sizes) > MOST_AXES:
            self.refuse(where, f"has over {MOST_AXES} axes")
        return tuple(self.dimension(size, f"{where}[{axis}]") for axis, size in enumerate(sizes))

    def chunks(self) -> Chunks | None:
        row = self.optional(self.content, "chunks", "", dict, "object")
        if row is None:
            return None
        inputs = self.entry(row, "inputs", "chunks", list, "list")
        shapes = [self.shape(sizes, f"chunks.inputs[{index}]") for index, sizes in enumerate(inputs)]
        output = self.shape(row.get("output"), "chunks.output")
        for where, shape in (*((f"chunks.inputs[{index}]", one) for index, one in enumerate(shapes)),
                             ("chunks.output", output)):
            if any(size.slope for size in shape) and (shape[0] != Size(0, 1) or any(
                    size.slope for size in shape[1:])):
                self.refuse(where, "has the batch elsewhere than in its first axis")
        parts = self.number(row.get("parts"), "chunks.parts", 2)
        batch = self.number(self.content.get("batch"), "batch", 1)
        if batch % parts:
            self.refuse("chunks.parts", f"{parts} parts cannot share a batch of {batch} equally")
        return Chunks(parts, tuple(shapes), output)

    def dimension(self, value: Any, where: str) -> Size:
        if isinstance(value, str):
            size = dimension_of(value)
            if size is None:
                self.refuse(where, f"'{printable_line(value[:80])}' is no size",
                            "a number, or one that follows the batch: batch, 2*batch, batch+1")
            return size
        return Size(self.number(value, where))

    def bytes(self, row: dict[str, Any], where: str) -> Size:
        value = self.entry(row, "bytes", where, (list, int), "pair [constant, slope]")
        if isinstance(value, int):
            return Size(self.number(value, f"{where}.bytes"))
        if len(value) != 2:
            self.refuse(f"{where}.bytes", "is no pair [constant, slope]")
        constant, slope = value
        return Size(self.number(constant, f"{where}.bytes[0]", -LARGEST_NUMBER),
                    self.number(slope, f"{where}.bytes[1]"))

    def key(self, row: dict[str, Any], key: str, where: str) -> str:
        text = self.text(row, key, where)
        if not is_key(text):
            self.refuse(f"{where}.{key}", f"'{text}' is no key of a saved tensor",
                        "a module's path and a number: layer1.0.conv1#0")
        return text

    def checkpoint(self, row: dict[str, Any], where: str) -> str:
        return self.text(row, "module", where)

    def trains(self) -> bool:
        mode = self.text(self.content, "mode", "") if "mode" in self.content else "train"
        if mode not in ("train", "inference"):
            self.refuse("mode", f"'{mode}' is neither train nor inference")
        return mode == "train"

    def host_updates(self) -> tuple[int | None, tuple[str, ...]]:
        """(gradients in flight, the parameters; none: all) of an optimizer on the CPU."""
        optimizer = self.optional(self.content, "optimizer_on_cpu", "", dict, "object")
        if optimizer is None:
            return None, ()
        where = "optimizer_on_cpu"
        in_flight = self.number(self.entry(optimizer, "gradients_in_flight", where, int, "number"),
                                f"{where}.gradients_in_flight", 1)
        if optimizer.get("parameters") is None:
            return in_flight, ()
        return in_flight, self.names(optimizer, where)

    def names(self, row: dict[str, Any], where: str) -> tuple[str, ...]:
        names = self.entry(row, "parameters", where, list, "list")
        if not names:
            self.refuse(f"{where}.parameters", "is empty")
        found: dict[str, None] = {}
        for index, name in enumerate(names):
            place = f"{where}.parameters[{index}]"
            self.text({place: name}, place, "")
            if name in found:
                self.refuse(place, f"'{name}' stands twice")
            found[name] = None
        return tuple(found)

    def early_updates(self) -> bool:
        if self.content.get("updates") is None:
            return False
        word = self.text(self.content, "updates", "")
        if word != "early":
            self.refuse("updates", f"'{word}' is not \"early\"")
        if (self.optional_number(self.content, "micro_batches", "", 1) or 1) > 1:
            self.refuse("updates", "cannot be early where the gradients of micro-batches add up")
        return True

    def streamed(self, row: dict[str, Any], where: str) -> Streamed:
        names = self.entry(row, "parameters", where, list, "list")
        if not names:
            self.refuse(f"{where}.parameters", "is empty")
        for index, name in enumerate(names):
            place = f"{where}.parameters[{index}]"
            self.text({place: name}, place, "")
            if name in self.streamed_names:
                self.refuse(place, f"'{name}' is streamed already")
            self.streamed_names.add(name)
        return Streamed(self.text(row, "module", where), tuple(names),
                        self.number(row.get("bytes"), f"{where}.bytes", 1),
                        self.number(row.get("uploads"), f"{where}.uploads", 1))

    def first_keys(self, passes: dict[str, Any]) -> tuple[str, ...]:
        keys = self.optional(passes, "first", "passes", list, "list") or []
        for index, key in enumerate(keys):
            if not isinstance(key, str):
                self.refuse(f"passes.first[{index}]", "is no text")
        return tuple(keys)

    def check_regions(self, names: list[str]) -> None:
        fault = faulty_row([region_of(name) for name in names])
        if fault is not None:
            self.refuse(f"checkpoint[{fault[0]}].module", fault[1])
        for index, name in enumerate(names):
            if name in names[:index]:
                self.refuse(f"checkpoint[{index}].module", f"'{name}' stands twice")

    def check_keys(self, offload: list[Offload]) -> None:
        """No tensor lies in two storages."""
        owner: dict[str, int] = {}
        for index, entry in enumerate(offload):
            for place, one in enumerate(entry.saved):
                if one.key in owner:
                    self.refuse(f"offload[{index}].saved[{place}].key", f"'{one.key}' stands in "
                                f"offload[{owner[one.key]}] already" if owner[one.key] != index else
                                f"'{one.key}' stands twice")
                owner[one.key] = index
