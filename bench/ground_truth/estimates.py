"""Files of estimates: one line a job, {"job": key or fields, "device_bytes": n, "overhead_bytes": n}."""

from __future__ import annotations

import json

import matrix
from matrix import Job


def read(path: str) -> list[tuple[Job, int, int | None]]:
    """(job, device bytes, overhead if given) a line. ValueError, which names the line, if malformed."""
    found = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                asked, overhead = entry["job"], entry.get("overhead_bytes")
                job = Job.from_key(asked) if isinstance(asked, str) else matrix.complete(Job(**asked))
                found.append((job, int(entry["device_bytes"]),
                              None if overhead is None else int(overhead)))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"{path}:{number}: {type(error).__name__}: {error}") from error
    return found
