"""Runs measured jobs again with PyTorch's allocator held to what stowage predicts for it.

    python capped.py h200.json -o h200_capped.json
    python capped.py h200.json --margin 1.05 -o h200_capped_105.json --stop-after 500

A job that ran is run again, in a fresh process, with the allocator capped at margin x
peak.reserved_bytes. One that now runs out of memory is a failure of the estimate. Journaled and
resumed as measure.py is: run the same command again and only what is missing is run.
Exit codes: 0 all recorded, however many failures; 1 some jobs broke or timed out; 2 usage, 3 no GPU,
130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from dataclasses import replace

import journal
import measure
import predicted
from matrix import Job
from predicted import Compared
from table import mib, table


def capped(row: Compared, margin: float) -> tuple[Job, dict]:
    """The job under its cap, and the estimate that its record keeps."""
    limit = math.ceil(row.shipped.reserved_bytes * margin)
    estimate = {"reserved_bytes": row.shipped.reserved_bytes,
                "device_bytes": row.shipped.device_bytes, "margin": margin,
                "measured_reserved_bytes": row.row.reserved_bytes}
    return replace(row.row.job, cap_bytes=None, cap_allocator_bytes=limit), estimate


def _counts(records: list[dict]) -> dict[str, int]:
    """Of jobs that ended; `after_emptying`: ran, but only since the allocator gave back its cache."""
    ended = [record for record in records if record["status"] in ("ok", "oom")]
    ran = [record for record in ended if record["status"] == "ok"]
    retries = lambda record: any((phase or {}).get("alloc_retries")
                                 for phase in record["phases"].values())
    return {"rows": len(ended), "failures": len(ended) - len(ran),
            "after_emptying": sum(map(retries, ran))}


def summary(records: list[dict]) -> dict[str, dict[str, int]]:
    """Failures of all, by family and by precision."""
    jobs = [(Job(**record["job"]), record) for record in records]
    result = {"all": _counts(records)}
    for name in (Job.family, lambda job: job.precision):
        for group in sorted({name(job) for job, _ in jobs}):
            result[group] = _counts([record for job, record in jobs if name(job) == group])
    return result


def text(content: dict) -> str:
    """What the results file says, for people."""
    told = content["capped"]
    lines = [f"{told['of']}: allocator capped at {told['margin']:g} x peak.reserved_bytes of "
             f"{told['program']}, --gpu '{told['gpu']}'"]
    lines += [] if content["measurement"] else [content["note"]]
    rate = lambda entry: f"{100 * entry['failures'] / entry['rows']:.1f}" if entry["rows"] else "-"
    if told["failures"] is None:
        return "\n".join(lines) + "\n"
    cells = [(str(entry["rows"]), str(entry["failures"]), rate(entry), str(entry["after_emptying"]),
              group) for group, entry in told["failures"].items()]
    lines += ["", *table(("rows", "failures", "%", "ran after emptying the cache", "of"),
                                 cells)]
    cells = [(mib(record["estimate"]["measured_reserved_bytes"]),
              mib(record["job"]["cap_allocator_bytes"]), record.get("failed_in") or "-",
              record["key"]) for record in content["jobs"] if record["status"] == "oom"]
    if cells:
        lines += ["", "Failures: out of memory under the cap",
                  *table(("measured MiB", "cap MiB", "in phase", "job"), cells)]
    for name, title in (("refused", "Not run: refused"),
                        ("untold", "Not run: check has no option for a setting")):
        lines += ["", f"{title}: {len(told[name])}"] if told[name] else []
        for entry in told[name]:
            lines += [entry["key"], *("  " + line for line in entry["said"].splitlines())]
    broken = [record for record in content["jobs"] if record["status"] not in ("ok", "oom")]
    lines += ["", f"Neither ran nor ran out: {len(broken)}"] if broken else []
    lines += [f"{record['status']}  {record['key']}" for record in broken]
    lines += ["", f"Not yet run: {len(content['missing'])}"] if content["missing"] else []
    return "\n".join(lines) + "\n"


def _parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    predicted.add_asking(result)
    result.add_argument("--margin", type=float, default=1.0,
                        help="the estimate is multiplied by this [1]")
    measure.add_running(result, output=None)
    return result


def _prepare(options) -> tuple[list[Job], dict[str, dict], dict]:
    """(jobs, what each process is told besides, the head's part about the cap). Usage if wrong."""
    source, program, gpu = predicted.opened(options, dry=options.device == "cpu")
    stem = os.path.splitext(options.measured)[0]
    options.output = options.output or f"{stem}_capped.json"
    if os.path.realpath(options.output) == os.path.realpath(options.measured):
        raise measure.Usage("--output would overwrite what was measured")
    if not (math.isfinite(options.margin) and options.margin > 0):
        raise measure.Usage("--margin is more than 0")
    if options.warmup is None:
        options.warmup = source.warmup
    if options.steps is None:
        options.steps = source.steps
    measure.fill_defaults(options)
    rows = predicted.compare_all(program, [row for row in source.rows if row.status == "ok"],
                               in_context=False)
    asked = [capped(row, options.margin) for row in rows if row.judged()]
    head = {"of": os.path.basename(options.measured), "margin": options.margin, "gpu": gpu,
            "program": program.version, "refused": predicted.refused(rows),
            "untold": [{"key": row.row.job.key(), "said": ", ".join(row.untold)}
                       for row in rows if row.untold and not row.refusal()]}
    return [job for job, _ in asked], {job.key(): {"estimate": it} for job, it in asked}, head


def main(arguments=None) -> int:
    options = _parser().parse_args(arguments)
    try:
        jobs, extras, head = _prepare(options)
        if options.list:
            print("\n".join(job.key() for job in jobs))
            return 0
        count = summary if options.device == "cuda" else lambda records: None  # a dry run has no cap
        code = measure.run_and_write(
            jobs, extras, options, lambda records: {"capped": {**head, "failures": count(records)}})
        with open(options.output, encoding="utf-8") as file:
            print(text(json.load(file)), end="")
        return code
    except (predicted.Usage, measure.Usage, journal.WrongJournal, OSError) as error:
        print(f"capped: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
