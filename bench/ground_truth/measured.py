"""What measure.py wrote, read and checked field by field: jobs with the figures that are predicted."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

import matrix
from matrix import Job

SCHEMA_VERSION = 1
STATUSES = ("ok", "oom", "skipped", "failed", "timeout")


class Malformed(Exception):
    """The file is not one of measure.py's; the text names the file and the place in it."""


@dataclass(frozen=True)
class Row:
    """One job. The figures are those of the steady phase; None where there are none."""

    job: Job
    status: str
    requested_bytes: int | None = None  # max_requested_bytes: before rounding to blocks
    allocated_bytes: int | None = None  # max_allocated_bytes: blocks, with what is not split off
    reserved_bytes: int | None = None  # max_reserved_bytes
    device_bytes: int | None = None  # process_device_bytes
    context_bytes: int | None = None  # held before any tensor, without the allocator's segment


@dataclass(frozen=True)
class Measured:
    path: str
    measurement: bool  # False: a dry run, without figures
    card: str | None
    software: dict
    warmup: int | None
    steps: int | None
    rows: tuple[Row, ...]

    def alloc_conf(self) -> str | None:
        """The allocator's settings that were in force, in PyTorch's syntax."""
        environment = self.software.get("environment") or {}
        return environment.get("PYTORCH_ALLOC_CONF") or environment.get("PYTORCH_CUDA_ALLOC_CONF")


class _Place:
    """A value of the file with the way to it, so that a complaint can say where."""

    def __init__(self, path: str, value, way: str = ""):
        self.path, self.value, self.way = path, value, way

    def fail(self, text: str) -> Malformed:
        return Malformed(f"{self.path}: {self.way + ': ' if self.way else ''}{text}")

    def is_a(self, kind, what: str) -> _Place:
        if not isinstance(self.value, kind) or (kind is int and isinstance(self.value, bool)):
            raise self.fail(f"{what} is expected, not {json.dumps(self.value)[:60]}")
        return self

    def get(self, name: str, required: bool = True) -> _Place:
        self.is_a(dict, "an object")
        way = f"{self.way}.{name}" if self.way else name
        if required and name not in self.value:
            raise _Place(self.path, None, way).fail("is missing")
        return _Place(self.path, self.value.get(name), way)

    def items(self) -> list[_Place]:
        self.is_a(list, "a list")
        return [_Place(self.path, value, f"{self.way}[{index}]")
                for index, value in enumerate(self.value)]

    def bytes_or_none(self) -> int | None:
        """A device's difference may have come out below 0, where others freed memory: no figure."""
        if self.value is not None:
            self.is_a(int, "a number of bytes")
        return self.value if self.value and self.value > 0 else None


def _job(place: _Place) -> Job:
    values = place.is_a(dict, "an object").value
    unknown = set(values) - {field.name for field in fields(Job)}
    if unknown:
        raise place.fail(f"unknown field '{min(unknown)}'")
    for field in fields(Job):
        value = values.get(field.name)
        kind = {"str": str, "bool": bool}.get(field.type.split()[0], int)
        if value is not None or field.name in ("model", "batch"):
            place.get(field.name).is_a(kind, f"a value of type {kind.__name__}")
    try:
        return matrix.complete(Job(**values))
    except (KeyError, ValueError) as error:
        raise place.fail(str(error.args[0])) from error


def _row(place: _Place) -> Row:
    job = _job(place.get("job"))
    status = place.get("status")
    if status.is_a(str, "a status").value not in STATUSES:
        raise status.fail(f"'{status.value}' is none of {', '.join(STATUSES)}")
    phases = place.get("phases").is_a(dict, "an object")
    figures = {}
    if status.value == "ok":
        steady = phases.get("steady")
        figures = {"requested_bytes": steady.get("max_requested_bytes").bytes_or_none(),
                   "allocated_bytes": steady.get("max_allocated_bytes").bytes_or_none(),
                   "reserved_bytes": steady.get("max_reserved_bytes").bytes_or_none(),
                   "device_bytes": steady.get("process_device_bytes").bytes_or_none()}
    if "context" in phases.value:
        context = phases.get("context")
        held = context.get("process_device_bytes").bytes_or_none()
        reserved = context.get("reserved_bytes").bytes_or_none()
        if held is not None and reserved is not None and held > reserved:
            figures["context_bytes"] = held - reserved
    return Row(job, status.value, **figures)


def load(path: str) -> Measured:
    """Malformed, or OSError where the file cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            root = _Place(path, json.load(file))
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{path}: not JSON: {error}") from error
    version = root.get("schema_version")
    if version.value != SCHEMA_VERSION:
        raise version.fail(f"{json.dumps(version.value)[:60]} is not {SCHEMA_VERSION}")
    measurement = root.get("measurement").is_a(bool, "true or false").value
    card = root.get("card").value
    name = root.get("card").get("name").is_a(str, "a name").value if card is not None else None
    software = root.get("software").is_a(dict, "an object").value
    rows = tuple(_row(place) for place in root.get("jobs").items())
    keys = set()
    for key in (row.job.key() for row in rows):
        if key in keys:
            raise root.get("jobs").fail(f"the job {key} stands there twice")
        keys.add(key)
    return Measured(path, measurement, name, software, root.get("warmup", False).value,
                    root.get("steps", False).value, rows)
