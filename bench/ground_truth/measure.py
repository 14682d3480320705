"""Measures real PyTorch training steps: models x batches x optimizers x precisions -> JSON.

    python measure.py --preset quick -o h200.json
    python measure.py --models resnet50,gpt2 --batches 8,32 --precisions fp32,amp-bf16 -o some.json
    python measure.py --cap-from estimates.jsonl -o capped.json
    python measure.py --preset quick --device cpu --batches 1 -o dry.json    # NOT a measurement

Each job runs in a process of its own, with --parallel N up to N at once. A finished job is a line in
OUTPUT.journal; run the same command again and only what is missing is run. README.md says what the
fields mean.
Exit codes: 0 all recorded, 1 some jobs failed or timed out (they are recorded), 2 usage, 3 no GPU,
130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace

import estimates
import journal
import matrix
import nvml
from forked import forked_or_fresh
from interrupts import Interrupts
from matrix import Job
from pool import Admission, Pool, is_doubtful
from process import Fresh

SCHEMA_VERSION = 1
_TARGET = "one_job:run"  # what a job's process runs
_PRELOADED = ("torch", "torchvision", "timm", "transformers", "torch._dynamo",
              "transformers:GPT2LMHeadModel", "transformers:BertForMaskedLM",
              "transformers:BertForSequenceClassification", "one_job", "meter", "training")
_OUTSIDE = 1 << 30  # what a process may hold besides its allocator
_HERE = os.path.dirname(os.path.abspath(__file__))
_CARD_IDENTITY = ("name", "compute_capability", "torch_total_bytes", "driver")


class Usage(Exception):
    """A mistake in the command line or in a file that it names."""


def add_running(to: argparse.ArgumentParser, output: str | None) -> None:
    """The options of how jobs are run, which every command that runs some has."""
    how = to.add_argument_group("how")
    how.add_argument("-o", "--output", default=output)
    how.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    how.add_argument("--warmup", type=int, help="steps before the steady phase; 5, on the CPU 1")
    how.add_argument("--steps", type=int, help="steps in the steady phase; 10, on the CPU 1")
    how.add_argument("--timeout", type=float, default=300, help="seconds a job may take")
    how.add_argument("--stop-after", type=float, metavar="SECONDS",
                     help="start no further job after this; run again to continue")
    how.add_argument("--retry-failed", action="store_true",
                     help="run recorded failures and timeouts again")
    beside = to.add_argument_group("several at once")
    beside.add_argument("--parallel", type=int, default=1, metavar="N", help="jobs at once [1]")
    beside.add_argument("--fresh", action="store_true",
                        help="start each job in a new interpreter; with N > 1 they are else forked "
                             "from one process that has imported everything")
    beside.add_argument("--keep-free", type=float, default=25, metavar="PERCENT",
                        help="start no job beside others while less of the device is free [25]")
    beside.add_argument("--sizes", metavar="FILE", help="JSON lines {job, device_bytes}: what jobs are "
                        "expected to take, so that only such start together as fit together")
    how.add_argument("--from-journal", action="store_true",
                     help="run nothing, need no GPU: write OUTPUT from OUTPUT.journal")
    how.add_argument("--list", action="store_true", help="print the jobs' keys and stop")


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: [part.strip() for part in text.split(",") if part.strip()]
    numbers = lambda text: [int(part) for part in names(text)]
    which = result.add_argument_group("which jobs (one of --preset, --models, --cap-from)")
    which.add_argument("--preset", choices=sorted(matrix.PRESETS))
    which.add_argument("--models", type=names, help="see catalogue.py; also timm/X, torchvision/X")
    which.add_argument("--cap-from", metavar="FILE", help="JSON lines {job, device_bytes}")
    which.add_argument("--batches", type=numbers, default=[],
                       help="default: the model's own; with --preset: replaces the preset's batches")
    which.add_argument("--optimizers", type=names, default=["adam"])
    which.add_argument("--precisions", type=names, default=["fp32"])
    which.add_argument("--tf32", choices=matrix.TF32, default="default")
    which.add_argument("--image-size", type=int)
    which.add_argument("--seq", type=int)
    which.add_argument("--channels-last", action="store_true")
    which.add_argument("--cudnn-benchmark", action="store_true")
    which.add_argument("--outputs", choices=matrix.OUTPUTS, default="step")
    add_running(result, "ground_truth.json")
    return result


def jobs_asked_for(options) -> tuple[list[Job], dict[str, int]]:
    """The jobs, and for capped ones the overhead in bytes by key where the file gives it."""
    given = sum(map(bool, (options.preset, options.models, options.cap_from)))
    if options.from_journal and not given:
        return [], {}  # all of the journal
    if given != 1:
        raise Usage("give one of --preset, --models, --cap-from")
    shape_only = ("optimizers", "precisions", "tf32", "image_size", "seq", "channels_last",
                  "cudnn_benchmark", "outputs") + (("batches",) if options.cap_from else ())
    unused = [name for name in shape_only if getattr(options, name) != parser().get_default(name)]
    if unused and not options.models:
        raise Usage(f"--{unused[0].replace('_', '-')} goes with --models only")
    try:
        if options.cap_from:
            return capped_jobs(options.cap_from)
        if options.preset:
            jobs = matrix.PRESETS[options.preset]()
            if options.batches:
                jobs = [replace(job, batch=batch) for job in jobs for batch in options.batches]
            return list(dict.fromkeys(jobs)), {}
        return matrix.expand(options.models, options.batches, options.optimizers, options.precisions,
                             tf32=options.tf32, image_size=options.image_size, seq=options.seq,
                             channels_last=options.channels_last, outputs=options.outputs,
                             cudnn_benchmark=options.cudnn_benchmark), {}
    except (KeyError, ValueError) as error:
        raise Usage(error.args[0]) from error


def capped_jobs(path: str) -> tuple[list[Job], dict[str, int]]:
    """The jobs of a file of estimates, each under its cap; the overhead by key where it is given."""
    jobs, overheads = [], {}
    for job, size, overhead in estimates.read(path):
        job = replace(job, cap_bytes=size)
        jobs.append(job)
        if overhead is not None:
            overheads[job.key()] = overhead
    return list(dict.fromkeys(jobs)), overheads


def describe(device: str,
             no_gpu: str = "measure: no CUDA device; --device cpu makes a dry run") -> dict:
    """{card, software}, asked in another process. Usage if no torch, SystemExit(3) if no GPU."""
    answer = subprocess.run([sys.executable, os.path.join(_HERE, "card.py"), "--device", device],
                            capture_output=True, text=True)
    if answer.returncode == 3:
        print(no_gpu, file=sys.stderr)
        raise SystemExit(3)
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["?"])[-1]
        raise Usage(f"cannot describe the machine: {last}")
    return json.loads(answer.stdout)


def _line(number: int, count: int, record: dict) -> str:
    """One line of progress."""
    steady = record["phases"].get("steady") or {}
    mib = lambda name: "-" if steady.get(name) is None else f"{steady[name] / (1 << 20):,.0f}"
    wrong = record.get("oom") or record.get("error") or {}
    said = record.get("reason") or wrong.get("message", "")
    return (f"[{number}/{count}] {record['status']:7} allocated {mib('max_allocated_bytes')} "
            f"reserved {mib('max_reserved_bytes')} device {mib('process_device_bytes')} MiB "
            f"{record['wall_seconds']:.0f} s  {record['key']}  {said[:100]}").rstrip()


def final_text(head: dict, jobs: list[Job], records: dict[str, dict], summarise=None) -> str:
    """The results file: the records of the jobs asked for, sorted by key.

    `summarise` turns those records into further fields of the head.
    """
    found = sorted((records[job.key()] for job in jobs if job.key() in records),
                   key=lambda record: record["key"])
    missing = sorted(job.key() for job in jobs if job.key() not in records)
    further = summarise(found) if summarise else {}
    at_once = max((record.get("at_once", 1) for record in found), default=1)
    content = {**head, **further, "at_once": at_once, "complete": not missing, "missing": missing,
               "jobs": found}
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _starter(options):
    """What starts the jobs' processes. Close it."""
    if options.parallel == 1 or options.fresh:
        return Fresh(_TARGET)
    return forked_or_fresh(_TARGET, _PRELOADED, "measure")


def expected_bytes(job: Job, sizes: dict[str, int]) -> int:
    """Bytes on the device: the job's cap, else what it was said to take, else not known: 0."""
    if job.cap_allocator_bytes is not None:
        return job.cap_allocator_bytes + _OUTSIDE
    return job.cap_bytes or sizes.get(job.key(), 0)


def _admission(options, machine_card: dict | None, uuid: str | None) -> Admission[Job]:
    try:
        read = estimates.read(options.sizes) if options.sizes else []
    except ValueError as error:
        raise Usage(error.args[0]) from error
    sizes = {job.key(): size for job, size, _ in read}
    told = machine_card or {}
    total = told.get("torch_total_bytes")
    reader = nvml.open_reader(uuid) if told.get("nvml_reader") and options.parallel > 1 else None
    return Admission(None if total is None else total - _OUTSIDE,
                     lambda job: expected_bytes(job, sizes), reader, options.keep_free / 100)


def run_all(jobs: list[Job], spec_of, options, admission: Admission[Job], log: journal.Journal,
            stop_at: float | None) -> None:
    """Runs what the journal lacks. `spec_of(job, at_once)`: what a job's process is told."""
    again = ("failed", "timeout") if options.retry_failed else ()
    todo = [job for job in jobs
            if job.key() not in log.records or log.records[job.key()]["status"] in again]
    print(f"measure: {len(jobs)} jobs, {len(jobs) - len(todo)} already in {log.path}",
          file=sys.stderr)
    left = {job.key() for job in todo}

    def finished(job: Job, record: dict) -> None:
        log.append(record)
        left.discard(job.key())
        print(_line(len(todo) - len(left), len(todo), record), file=sys.stderr, flush=True)

    if todo and (stop_at is None or time.monotonic() < stop_at):
        with Interrupts() as interrupts, contextlib.closing(_starter(options)) as starter:
            pool = Pool(starter, options.parallel, admission, spec_of, options.timeout, stop_at,
                        finished, lambda job, record: is_doubtful(record, job.is_capped()),
                        lambda job: log.put_off(job.key()), interrupts.check)
            pool.run([job for job in todo if job.key() not in log.crowded],
                     [job for job in todo if job.key() in log.crowded])
    if left:
        print(f"measure: stopped, {len(left)} jobs left", file=sys.stderr)


def fill_defaults(options) -> None:
    cuda = options.device == "cuda"
    if options.warmup is None:
        options.warmup = 5 if cuda else 1
    if options.steps is None:
        options.steps = 10 if cuda else 1
    if options.warmup < 1 or options.steps < 1:
        raise Usage("--warmup and --steps are at least 1")
    if options.parallel < 1 or not 0 <= options.keep_free < 100:
        raise Usage("--parallel is at least 1, --keep-free from 0 to under 100")


def _head(options, machine: dict) -> tuple[dict, dict, str | None]:
    """The file's head, the journal's header (what resumed runs must share), the GPU's UUID."""
    card = machine["card"] or {}
    uuid = card.pop("uuid", None)  # needed to find the GPU, not to be published
    measured = options.device == "cuda"
    header = {"schema_version": SCHEMA_VERSION, "device": options.device, "warmup": options.warmup,
              "steps": options.steps, **machine["software"],
              **{name: card.get(name) for name in _CARD_IDENTITY}}
    head = {"schema_version": SCHEMA_VERSION, "measurement": measured,
            "note": None if measured else "not a measurement: a dry run on the CPU, figures are null",
            "device": options.device, "warmup": options.warmup, "steps": options.steps,
            "card": machine["card"], "software": machine["software"]}
    return head, header, uuid


def _specs(extras: dict[str, dict], options, uuid: str | None):
    """The function that tells what a job's process is told. `extras`: by key, what besides."""
    cores = len(os.sched_getaffinity(0))

    def spec_of(job: Job, at_once: int) -> dict:
        threads = max(1, cores // at_once) if at_once > 1 else None
        return {"key": job.key(), "job": asdict(job), "device": options.device, "uuid": uuid,
                "warmup": options.warmup, "steps": options.steps, "at_once": at_once, "threads": threads,
                **extras.get(job.key(), {})}
    return spec_of


def _write(jobs: list[Job], head: dict, records: dict[str, dict], options, summarise) -> int:
    """Writes the results file; the exit code."""
    journal.atomic_write(options.output, final_text(head, jobs, records, summarise))
    statuses = {records[job.key()]["status"] for job in jobs if job.key() in records}
    return int(bool(statuses & {"failed", "timeout"}))


def run_and_write(jobs: list[Job], extras: dict[str, dict], options, summarise=None) -> int:
    """Opens the journal, runs what it lacks, writes the results file; the exit code.

    Usage, WrongJournal or OSError if it cannot begin.
    """
    if options.from_journal:
        head, records = journal.read(options.output + ".journal")
        every = [Job(**record["job"]) for record in records.values()]
        return _write(jobs or every, head, records, options, summarise)
    stop_at = None if options.stop_after is None else time.monotonic() + options.stop_after
    head, header, uuid = _head(options, describe(options.device))
    admission = _admission(options, head["card"], uuid)
    log = journal.Journal(options.output + ".journal", header, head)
    interrupted = 0
    try:
        run_all(jobs, _specs(extras, options, uuid), options, admission, log, stop_at)
    except KeyboardInterrupt:
        print("measure: interrupted; run the same command to continue", file=sys.stderr)
        interrupted = 130
    code = _write(jobs, head, log.records, options, summarise)
    return interrupted or code


def main(arguments=None) -> int:
    options = parser().parse_args(arguments)
    try:
        fill_defaults(options)
        jobs, overheads = jobs_asked_for(options)
        if options.list:
            print("\n".join(job.key() for job in jobs))
            return 0
        extras = {key: {"overhead_bytes": bytes_} for key, bytes_ in overheads.items()}
        return run_and_write(jobs, extras, options)
    except (Usage, journal.WrongJournal, OSError) as error:
        print(f"measure: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
