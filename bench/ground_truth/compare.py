"""Holds what was measured against what stowage predicts.

    python compare.py h200.json
    python compare.py h200.json --stowage ../../build/stowage --gpu h200 --format json

Each job of the file is put to `stowage check`, as the program ships and with the CUDA context that was
measured for that job. README.md says what the figures are. Exit codes: 0 compared, however near; 2 a
mistake in the command line or in the file, or no program.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass

import measured
import predicted
import score
from predicted import Compared
from score import Pair
from stowage import Prediction
from table import mib, table

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Figure:
    name: str
    measured: str  # a field of Row
    predicted: str  # a field of Prediction
    own_context: bool = False  # predicted with the context that was measured


FIGURES = (Figure("requested", "requested_bytes", "tensor_bytes"),
           Figure("allocated", "allocated_bytes", "tensor_bytes"),
           Figure("reserved", "reserved_bytes", "reserved_bytes"),
           Figure("device", "device_bytes", "device_bytes"),
           Figure("device, measured context", "device_bytes", "device_bytes", own_context=True))


def pair_of(row: Compared, figure: Figure) -> Pair | None:
    """None where either side has no figure."""
    answer = row.in_context if figure.own_context else row.shipped
    amount = getattr(row.row, figure.measured)
    if amount is None or not isinstance(answer, Prediction):
        return None
    return Pair(amount, getattr(answer, figure.predicted))


def groups(rows: list[Compared]) -> dict[str, list[Compared]]:
    """All, each family, each precision; in the order of their names."""
    result = {"all": rows}
    for name in (lambda row: row.row.job.family(), lambda row: row.row.job.precision):
        for group in sorted({name(row) for row in rows}):
            result[group] = [row for row in rows if name(row) == group]
    return result


def scores(rows: list[Compared]) -> list[dict]:
    """For every figure and group with rows: the score, as fields."""
    result = []
    for figure in FIGURES:
        for group, members in groups(rows).items():
            pairs = [pair for row in members if (pair := pair_of(row, figure))]
            if pairs:
                result.append({"figure": figure.name, "group": group,
                               **asdict(score.score(pairs))})
    return result


def worst(rows: list[Compared], count: int) -> dict[str, list[dict]]:
    """By figure, the rows that are farthest off; of equals the first by key."""
    result = {}
    for figure in FIGURES:
        found = [(row.row.job.key(), pair) for row in rows if (pair := pair_of(row, figure))]
        found.sort(key=lambda entry: (-abs(entry[1].error), entry[0]))
        result[figure.name] = [{"key": key, **asdict(pair), "error": pair.error}
                               for key, pair in found[:count]]
    return result


def verdicts(rows: list[Compared]) -> dict[str, int]:
    """Whether it fits, against whether it ran."""
    count = lambda status, fits: sum(row.row.status == status and row.shipped.fits == fits
                                     for row in rows)
    return {"ran_and_fits": count("ok", True), "ran_but_refused": count("ok", False),
            "out_of_memory_and_refused": count("oom", False),
            "out_of_memory_but_fits": count("oom", True)}


def _row_fields(row: Compared) -> dict:
    fields = lambda answer: asdict(answer) if isinstance(answer, Prediction) else None
    return {"key": row.row.job.key(), "status": row.row.status, "untold": list(row.untold),
            "measured": {name: getattr(row.row, name) for name in
                         ("requested_bytes", "allocated_bytes", "reserved_bytes", "device_bytes",
                          "context_bytes")},
            "predicted": fields(row.shipped), "predicted_in_context": fields(row.in_context)}


def report(source: measured.Measured, program, gpu: str, rows: list[Compared], count: int) -> dict:
    judged = [row for row in rows if row.judged()]
    statuses = [row.status for row in source.rows]
    return {
        "schema_version": SCHEMA_VERSION, "file": os.path.basename(source.path),
        "card": source.card, "gpu": gpu, "torch": source.software.get("torch"),
        "program": program.version, "alloc_conf": source.alloc_conf(),
        "jobs": {status: statuses.count(status) for status in measured.STATUSES},
        "scores": scores(judged), "verdicts": verdicts(judged), "worst": worst(judged, count),
        "refused": predicted.refused(rows),
        "rows": [_row_fields(row) for row in rows]}


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"


def _score_lines(entries: list[dict]) -> list[str]:
    lines = []
    for figure in FIGURES:
        mine = [entry for entry in entries if entry["figure"] == figure.name]
        cells = [(str(entry["rows"]), _percent(entry["median"]), _percent(entry["percentile90"]),
                  f"{100 * entry['median_signed']:+.2f}", str(entry["low"]),
                  str(entry["low_by_2_percent"]), entry["group"]) for entry in mine]
        lines += ["", f"{figure.name}: measured against peak.{figure.predicted}"]
        lines += (table(("rows", "median %", "p90 %", "signed %", "low", "low > 2 %", "of"), cells)
                  if cells else ["  no rows"])
    return lines


def _row_table(entries: list[tuple[str, Pair]]) -> list[str]:
    cells = [(mib(pair.measured), mib(pair.predicted), f"{100 * pair.error:+.2f}", name)
             for name, pair in entries]
    return table(("measured MiB", "predicted MiB", "error %", "job"), cells)


def text(found: dict, rows: list[Compared]) -> str:
    counts = ", ".join(f"{number} {status}" for status, number in found["jobs"].items() if number)
    lines = [f"{found['file']}: {found['card']}, PyTorch {found['torch']}: {counts}",
             f"{found['program']}, --gpu '{found['gpu']}'"]
    lines += [f"--alloc-conf {found['alloc_conf']}"] if found["alloc_conf"] else []
    lines += _score_lines(found["scores"])
    for figure, entries in found["worst"].items():
        if entries:
            lines += ["", f"Worst, {figure}"]
            lines += _row_table([(entry["key"], Pair(entry["measured"], entry["predicted"]))
                                 for entry in entries])
    untold = [row for row in rows if row.untold and isinstance(row.shipped, Prediction)]
    if untold:
        lines += ["", "Not in the figures above: check has no option for what is named in front"]
        lines += _row_table([(f"{', '.join(row.untold)}: {figure.name} of {row.row.job.key()}", pair)
                             for row in untold for figure in FIGURES if (pair := pair_of(row, figure))])
    if found["refused"]:
        lines += ["", f"Refused: {len(found['refused'])}"]
        for entry in found["refused"]:
            lines += [entry["key"], *("  " + line for line in entry["said"].splitlines())]
    told = found["verdicts"]
    lines += ["", f"Ran: {told['ran_and_fits']} said to fit, {told['ran_but_refused']} said not to. "
                  f"Out of memory: {told['out_of_memory_and_refused']} said not to fit, "
                  f"{told['out_of_memory_but_fits']} said to."]
    return "\n".join(lines) + "\n"


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    predicted.add_asking(parser)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--worst", type=int, default=5, metavar="N",
                        help="rows to list that are farthest off [5]")
    options = parser.parse_args(arguments)
    try:
        source, program, gpu = predicted.opened(options)
    except predicted.Usage as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    rows = predicted.compare_all(program, source.rows)
    found = report(source, program, gpu, rows, max(0, options.worst))
    print(text(found, rows) if options.format == "table" else json.dumps(found, indent=1), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
