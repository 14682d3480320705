"""Measures real PyTorch training steps: models x batches x optimizers x precisions -> JSON.

    python measure.py --preset quick -o h200.json
    python measure.py --models resnet50,gpt2 --batches 8,32 --precisions fp32,amp-bf16 -o some.json
    python measure.py --cap-from estimates.jsonl -o capped.json
    python measure.py --preset quick --device cpu --batches 1 -o dry.json    # NOT a measurement

Each job runs in a process of its own. A finished job is a line in OUTPUT.journal; run the same
command again and only what is missing is run. README.md says what the fields mean.
Exit codes: 0 all recorded, 1 some jobs failed or timed out (they are recorded), 2 usage, 3 no GPU,
130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace

import journal
import matrix
from matrix import Job

SCHEMA_VERSION = 1
_HERE = os.path.dirname(os.path.abspath(__file__))
_JOB_COMMAND = (sys.executable, os.path.join(_HERE, "one_job.py"))
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
    if sum(map(bool, (options.preset, options.models, options.cap_from))) != 1:
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
    """One job a line: {"job": key or fields, "device_bytes": n, "overhead_bytes": n if known}."""
    jobs, overheads = [], {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                asked = entry["job"]
                job = Job.from_key(asked) if isinstance(asked, str) else matrix.complete(Job(**asked))
                job = replace(job, cap_bytes=int(entry["device_bytes"]))
            except (ValueError, KeyError, TypeError) as error:
                raise Usage(f"{path}:{number}: {type(error).__name__}: {error}") from error
            jobs.append(job)
            if entry.get("overhead_bytes") is not None:
                overheads[job.key()] = int(entry["overhead_bytes"])
    return list(dict.fromkeys(jobs)), overheads


def describe(device: str) -> dict:
    """{card, software}, asked in another process. Usage if no torch, SystemExit(3) if no GPU."""
    answer = subprocess.run([sys.executable, os.path.join(_HERE, "card.py"), "--device", device],
                            capture_output=True, text=True)
    if answer.returncode == 3:
        print("measure: no CUDA device; --device cpu makes a dry run", file=sys.stderr)
        raise SystemExit(3)
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["?"])[-1]
        raise Usage(f"cannot describe the machine: {last}")
    return json.loads(answer.stdout)


def run_job(spec: dict, timeout: float, command=_JOB_COMMAND) -> dict:
    """Runs one job in a fresh process and returns its record. Never raises for what the job does."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        spec_path = os.path.join(folder, "spec.json")
        result_path = os.path.join(folder, "result.json")
        with open(spec_path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        with open(os.path.join(folder, "log"), "w+", encoding="utf-8", errors="replace") as log:
            child = subprocess.Popen([*command, spec_path, result_path], stdout=log, stderr=log,
                                     start_new_session=True,
                                     env={**os.environ, "HF_HUB_OFFLINE": "1"})
            try:
                code = child.wait(timeout=timeout)
            except subprocess.TimeoutExpired:
                code = None
            finally:  # also on Ctrl-C: nothing of the job outlives it
                _end(child)
            log.seek(0)
            said = log.read()[-2000:]
        record = _record(spec, result_path, code, timeout, said)
    record["wall_seconds"] = round(time.monotonic() - started, 3)
    return record


def _end(child: subprocess.Popen) -> None:
    """Ends the job's whole process group, which is its own."""
    if child.poll() is None:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()


def _record(spec: dict, result_path: str, code: int | None, timeout: float, said: str) -> dict:
    """What the job wrote, with a status that is true however the process ended."""
    try:
        with open(result_path, encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError):
        record = {"key": Job(**spec["job"]).key(), "job": spec["job"], "status": "running",
                  "phases": {}}
    if record["status"] != "running":
        return record
    if code is None:
        record.update(status="timeout", error={"kind": "Timeout",
                                               "message": f"not finished after {timeout:g} s"})
    else:
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        record.update(status="failed", error={"kind": "ProcessEnded", "message": how, "said": said})
    return record


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
    content = {**head, **further, "complete": not missing, "missing": missing, "jobs": found}
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def run_all(jobs: list[Job], extras: dict[str, dict], options, uuid, log: journal.Journal) -> None:
    """Runs what the journal lacks, in order. `extras`: by key, what a job's process is told besides."""
    again = ("failed", "timeout") if options.retry_failed else ()
    todo = [job for job in jobs
            if job.key() not in log.records or log.records[job.key()]["status"] in again]
    print(f"measure: {len(jobs)} jobs, {len(jobs) - len(todo)} already in {log.path}",
          file=sys.stderr)
    started = time.monotonic()
    for number, job in enumerate(todo, start=1):
        if options.stop_after and time.monotonic() - started > options.stop_after:
            print(f"measure: stopped, {len(todo) - number + 1} jobs left", file=sys.stderr)
            return
        spec = {"job": asdict(job), "device": options.device, "uuid": uuid, "warmup": options.warmup,
                "steps": options.steps, **extras.get(job.key(), {})}
        record = run_job(spec, options.timeout)
        log.append(record)
        print(_line(number, len(todo), record), file=sys.stderr, flush=True)


def fill_defaults(options) -> None:
    cuda = options.device == "cuda"
    if options.warmup is None:
        options.warmup = 5 if cuda else 1
    if options.steps is None:
        options.steps = 10 if cuda else 1
    if options.warmup < 1 or options.steps < 1:
        raise Usage("--warmup and --steps are at least 1")


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


def run_and_write(jobs: list[Job], extras: dict[str, dict], options, summarise=None) -> int:
    """Opens the journal, runs what it lacks, writes the results file; the exit code.

    Usage, WrongJournal or OSError if it cannot begin.
    """
    head, header, uuid = _head(options, describe(options.device))
    log = journal.Journal(options.output + ".journal", header)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = 0
    try:
        run_all(jobs, extras, options, uuid, log)
    except KeyboardInterrupt:
        print("measure: interrupted; run the same command to continue", file=sys.stderr)
        code = 130
    journal.atomic_write(options.output, final_text(head, jobs, log.records, summarise))
    statuses = {log.records[job.key()]["status"] for job in jobs if job.key() in log.records}
    return code or int(bool(statuses & {"failed", "timeout"}))


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
