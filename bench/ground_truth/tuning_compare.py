"""What fine_tuning.py measured, held against what stowage predicts."""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

import score
import stowage
import tuning_questions as questions
from score import Pair
from table import mib, table
from tuning_cases import CASES, Case
from tuning_questions import Versions

FIGURES = {"requested": ("max_requested_bytes", "tensor_bytes"),
           "allocated": ("max_allocated_bytes", "tensor_bytes"),
           "reserved": ("max_reserved_bytes", "reserved_bytes")}
_PHASES = {"step": ("first_step", "steady"), "prefill": ("prefill",), "decode": ("decode",)}
_AT_ONCE = 2


@dataclass(frozen=True)
class Row:
    """One part of one case. `pairs` by figure; `cache`: bytes of keys and values."""

    group: str
    part: str
    key: str
    pairs: dict[str, Pair]
    device_bytes: int
    cache: Pair | None = None


def asked(program: stowage.Program, cases: list[Case], versions: Versions,
          recordings: str | None) -> list[tuple[Case, str, questions.Answer]]:
    """(case, group, answer): of each as a description, where it is one, and as a recorded step."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(_AT_ONCE) as pool:
        found = []
        for case in cases:
            if case.group != "recorded":
                found.append((case, case.group, questions.arguments(case, versions, folder)))
            words = questions.recorded_arguments(case, versions, recordings) if recordings else None
            if words:
                found.append((case, "recorded", words))
        answers = pool.map(lambda entry: questions.answer(program, entry[2]), found)
        return [(case, group, answer) for (case, group, _), answer in zip(found, answers)]


def _measured(record: dict, part: str, field: str) -> int | None:
    values = [(record["phases"].get(phase) or {}).get(field) for phase in _PHASES[part]]
    return max((value for value in values if value), default=None)


def _pair(record: dict, part: str, prediction, figure: str) -> Pair | None:
    theirs, ours = FIGURES[figure]
    amount = _measured(record, part, theirs)
    return Pair(amount, getattr(prediction, ours)) if amount else None


def rows(answers: list, records: dict[str, dict]) -> list[Row]:
    """Of the cases that ran, and that were answered."""
    found = []
    for case, group, answer in answers:
        record = records.get(case.key())
        if not record or record["status"] != "ok":
            continue
        for part, prediction in answer.parts.items():
            pairs = {figure: pair for figure in FIGURES
                     if (pair := _pair(record, part, prediction, figure))}
            cached = record.get("cache_bytes") if part == "decode" else None
            cache = Pair(cached, answer.cache_bytes) if cached and answer.cache_bytes else None
            if pairs:
                found.append(Row(group, part, case.key(), pairs, prediction.device_bytes, cache))
    return found


def scores(found: list[Row]) -> list[dict]:
    """By figure: all, and each group's parts."""
    result = []
    for figure in FIGURES:
        groups = {"all": found}
        for row in found:
            groups.setdefault(f"{row.group}, {row.part}", []).append(row)
        for group, members in groups.items():
            pairs = [row.pairs[figure] for row in members if figure in row.pairs]
            if pairs:
                result.append({"figure": figure, "group": group, **asdict(score.score(pairs))})
    return result


def _cells(row: Row, figure: str) -> tuple:
    pair = row.pairs[figure]
    return (mib(pair.measured), mib(pair.predicted), f"{100 * pair.error:+.2f}",
            f"{row.part}  {row.group}  {row.key}")


def text(found: list[Row], answers: list, records: dict[str, dict]) -> str:
    lines = []
    entries = scores(found)
    for figure, (theirs, ours) in FIGURES.items():
        cells = [(str(one["rows"]), f"{100 * one['median']:.2f}", f"{100 * one['percentile90']:.2f}",
                  f"{100 * one['median_signed']:+.2f}", str(one["low"]), str(one["low_by_2_percent"]),
                  one["group"]) for one in entries if one["figure"] == figure]
        lines += [f"{figure}: {theirs} against {ours}",
                  *table(("rows", "median %", "p90 %", "signed %", "low", "low > 2 %", "of"), cells),
                  "", *table(("measured MiB", "predicted MiB", "error %", "case"),
                             [_cells(row, figure) for row in found if figure in row.pairs]), ""]
    cached = [row for row in found if row.cache]
    unlike = [row for row in cached if row.cache.measured != row.cache.predicted]
    lines += [f"Bytes of keys and values: {len(cached) - len(unlike)} of {len(cached)} equal"]
    lines += [f"  {row.cache.measured} measured, {row.cache.predicted} predicted: {row.key}"
              for row in unlike]
    lines += _left_out(answers, records)
    return "\n".join(lines) + "\n"


def _left_out(answers: list, records: dict[str, dict]) -> list[str]:
    lines = [f"refused, as {group}: {case.key()}\n  {answer.refusal.said}"
             for case, group, answer in answers if answer.refusal]
    for key, record in records.items():
        if record["status"] != "ok":
            said = (record.get("error") or record.get("oom") or {}).get("message", "")
            lines.append(f"{record['status']}: {key}\n  {said.splitlines()[0] if said else ''}")
    return lines


def report(content: dict, program: stowage.Program, recordings: str | None) -> tuple[list, list, dict]:
    """(rows, answers, records by key) of what `measure` wrote."""
    records = {record["key"]: record for record in content["cases"]}
    software = content["software"]
    versions = Versions(*(questions.short(software[name])
                          for name in ("torch", "transformers", "cuda")))
    answers = asked(program, [case for case in CASES if case.key() in records], versions, recordings)
    return rows(answers, records), answers, records


def as_json(found: list[Row]) -> str:
    return json.dumps({"schema_version": 1, "scores": scores(found),
                       "rows": [asdict(row) for row in found]}, indent=1)
