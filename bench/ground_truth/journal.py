"""Results on disk: a journal of one JSON line a finished job, and the final file made from it.

The journal's first line is the header: what the results were measured on. A journal is only ever
continued on the same card and software. Each line is flushed to the disk before anything else is done,
so a crash loses at most the job that was running; a half-written last line is dropped on reading.
"""

from __future__ import annotations

import json
import os
import tempfile


class WrongJournal(Exception):
    """The journal at this path belongs to other hardware, software or settings."""


def atomic_write(path: str, text: str) -> None:
    """Replaces the file at `path` as a whole: readers see the old content or the new."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=os.path.basename(path) + ".")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _lines(path: str) -> list[dict]:
    """The whole lines of the journal; what follows the last whole line is dropped."""
    if not os.path.exists(path):
        return []
    entries = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                entry = json.loads(line) if line.endswith("\n") else None
            except ValueError:
                entry = None
            if not isinstance(entry, dict):
                break
            entries.append(entry)
    return entries


class Journal:
    """Open with the header of this run; `records` then holds what earlier runs left, by key.

    `head` is what the results file says besides, kept so that it can be written without the card.
    `crowded` holds the keys of jobs that are to be run alone.
    """

    def __init__(self, path: str, header: dict, head: dict | None = None):
        self.path = path
        entries = _lines(path)
        if entries and entries[0] != {"header": header}:
            raise WrongJournal(f"{path} was measured on another card, software or setting: "
                               f"{_difference(entries[0].get('header', {}), header)}; "
                               "choose another --output")
        # Written anew once, so that a torn last line is gone before anything is appended to it.
        entries = entries or [{"header": header}, *([{"head": head}] if head else [])]
        atomic_write(path, "".join(map(_line, entries)))
        self.records = _records(entries)
        self.crowded = {entry["crowded"] for entry in entries if "crowded" in entry}

    def append(self, record: dict) -> None:
        """Adds one finished job, on the disk when this returns. The last record of a key counts."""
        self._write(record)
        self.records[record["key"]] = record

    def put_off(self, key: str) -> None:
        """Notes that this job is to be run alone, should this run not come to it."""
        self._write({"crowded": key})

    def _write(self, entry: dict) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(_line(entry))
            file.flush()
            os.fsync(file.fileno())


def read(path: str) -> tuple[dict, dict[str, dict]]:
    """(head, records by key) of a journal, whatever it was measured on. WrongJournal if it has no head."""
    entries = _lines(path)
    heads = [entry["head"] for entry in entries if "head" in entry]
    if not heads:
        raise WrongJournal(f"{path}: not a journal of measurements")
    return heads[0], _records(entries)


def _records(entries: list[dict]) -> dict[str, dict]:
    return {entry["key"]: entry for entry in entries if "key" in entry}


def _line(entry: dict) -> str:
    return json.dumps(entry, sort_keys=True) + "\n"


def _difference(old: dict, new: dict) -> str:
    names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    return ", ".join(f"{name} was {old.get(name)!r} and is {new.get(name)!r}" for name in names)
