"""Measures fine-tuning, checkpointing, serving, inference and recorded steps on a CUDA GPU.

    python fine_tuning.py measure --parallel 6 --stop-after 150 -o fine_tuning.json
    python fine_tuning.py record -o recordings
    python fine_tuning.py compare fine_tuning.json --recordings recordings
    python fine_tuning.py ask -o estimates.json

Each case (tuning_cases.py) runs in a process of its own. WORDs choose the cases whose key has one of them.
Exit codes: 0 all done, 1 some cases failed or were refused, 2 usage, 3 no GPU, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time

import journal
import tuning_pool
from tuning_cases import CASES, Case, chosen

SCHEMA_VERSION = 1
_ROOM_SHARE = 0.9  # of the card, for the estimates of what runs at once


class Interrupted(Exception):
    pass


def _interrupt(*_):
    raise Interrupted


def _head(device: str, path: str) -> None:
    """In a child: the card and the software, so that the parent never touches CUDA."""
    import importlib.metadata
    import card
    content = {"device": device, "card": card.card() if device == "cuda" else None,
               "software": card.software(device)}
    for name in ("peft", "accelerate"):
        try:
            content["software"][name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            content["software"][name] = None
    journal.atomic_write(path, json.dumps(content))


def _asked_in_child(device: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "head.json")
        _, status = os.waitpid(tuning_pool.forked(lambda to: _head(device, to), path), 0)
        if status:
            raise SystemExit(3)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def _measure_in_child(options, uuid):
    """What a case's process does: measure here, or in a Python of its own."""
    def run(case: Case, path: str) -> None:
        if options.fresh:
            os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), "one", case.key(),
                                      path, "--device", options.device, "--uuid", uuid or ""])
        import tuning_steps
        tuning_steps.measure(case, options.device, uuid, path)
    return run


def again(record: dict) -> bool:
    """Whether other cases may have spoilt it: memory ran out, or PyTorch gave its cache back."""
    squeezed = any((phase or {}).get("alloc_retries") for phase in record["phases"].values())
    return not record["alone"] and (record["status"] == "oom" or squeezed)


def _needs(path: str | None) -> dict[str, int]:
    """Estimates by key, from `ask`."""
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:
        return {key: entry["device_bytes"] for key, entry in json.load(file).items()}


def _results(head: dict, log: journal.Journal, cases: list[Case]) -> str:
    card = head["card"]  # whose uuid is needed to find it, not to be published
    if card:
        head = {**head, "card": {name: card[name] for name in card if name != "uuid"}}
    return json.dumps({
        "schema_version": SCHEMA_VERSION, "measurement": head["device"] == "cuda", **head,
        "cases": [log.records[key] for key in sorted(log.records)],
        "missing": [case.key() for case in cases if case.key() not in log.records]}, indent=1)


def measure(options) -> int:
    until = time.monotonic() + options.stop_after
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    if not options.fresh:
        tuning_pool.preload()
    head = _asked_in_child(options.device)
    log = journal.Journal(os.path.splitext(options.output)[0] + ".jsonl", head)
    cases = chosen(options.words)
    waiting = [case for case in cases if log.records.get(case.key(), {}).get("status") not in
               (("ok", "oom") if options.retry_failed else ("ok", "oom", "failed", "timeout"))]

    def done(case: Case, record: dict) -> None:
        log.append(record)
        print(f"{record['status']:7} {record['wall_seconds']:6.1f} s  {case.key()}", flush=True)

    card = head["card"] or {}
    room = int(_ROOM_SHARE * card.get("torch_total_bytes", 1 << 60))
    run = _measure_in_child(options, card.get("uuid"))
    pool = tuning_pool.Pool(run, done, options.parallel, options.timeout, room,
                            _needs(options.estimates))
    code = 0
    try:
        pool.work(waiting, until)
        pool.parallel = 1
        pool.work([case for case in cases if again({"alone": True, **log.records.get(
            case.key(), {"status": "", "phases": {}})})], until)
    except Interrupted:
        pool.kill()
        code = 130
    journal.atomic_write(options.output, _results(head, log, cases))
    bad = sum(record["status"] not in ("ok", "oom") for record in log.records.values())
    print(f"{len(log.records)} of {len(cases)} cases, {bad} failed")
    return code or (1 if bad else 0)


def one(options) -> int:
    import tuning_steps
    case = next(case for case in CASES if case.key() == options.key)
    tuning_steps.measure(case, options.device, options.uuid or None, options.path)
    return 0


def record(options) -> int:
    """A step file for each case that wants one, beside those that are there."""
    os.makedirs(options.output, exist_ok=True)
    tuning_pool.preload()
    place = lambda case: os.path.join(options.output, case.file_name() + ".json")
    capability = tuple(map(int, options.compute_capability.split(".")))

    def run(case: Case, path: str) -> None:
        import tuning_record
        tuning_record.record(case, capability, place(case))
        journal.atomic_write(path, json.dumps({"key": case.key(), "status": "ok", "phases": {}}))

    codes = []

    def done(case: Case, result: dict) -> None:
        codes.append(result["status"] != "ok")
        print(f"{result['status']:7} {result['wall_seconds']:6.1f} s  {case.key()}", flush=True)

    cases = [case for case in chosen(options.words)
             if case.record and not os.path.exists(place(case))]
    tuning_pool.Pool(run, done, options.parallel, options.timeout, 1 << 60, {}).work(
        cases, float("inf"))
    return int(any(codes))


def ask(options) -> int:
    """Whether each case is answered, before anything is measured; the answers are estimates."""
    import stowage
    import tuning_compare
    from tuning_questions import Versions
    program = stowage.Program(stowage.find_program(options.stowage), options.gpu)
    versions = Versions(options.pytorch, options.transformers, options.cuda)
    answers = tuning_compare.asked(program, chosen(options.words), versions, options.recordings)
    estimates, refused = {}, 0
    for case, group, answer in answers:
        if answer.refusal:
            refused += 1
            print(f"refused, as {group}: {case.key()}\n  {answer.refusal.said}")
            continue
        needed = max(part.device_bytes for part in answer.parts.values())
        estimates.setdefault(case.key(), {"device_bytes": needed})
        print(f"{needed / 2 ** 30:6.2f} GiB  {group}: {case.key()}")
    if options.output:
        journal.atomic_write(options.output, json.dumps(estimates, indent=1))
    print(f"{len(answers)} asked, {refused} refused")
    return 1 if refused else 0


def compare(options) -> int:
    import stowage
    import tuning_compare
    with open(options.measured, encoding="utf-8") as file:
        content = json.load(file)
    if not content["measurement"]:
        print(f"fine_tuning: {options.measured} is a dry run: there are no figures in it",
              file=sys.stderr)
        return 2
    program = stowage.Program(stowage.find_program(options.stowage),
                              options.gpu or content["card"]["name"])
    rows, answers, records = tuning_compare.report(content, program, options.recordings)
    print(tuning_compare.as_json(rows) if options.format == "json"
          else tuning_compare.text(rows, answers, records), end="")
    return 1 if any(answer.refusal for _, _, answer in answers) else 0


def _parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = result.add_subparsers(dest="command", required=True)

    def command(run, words: bool = True) -> argparse.ArgumentParser:
        made = commands.add_parser(run.__name__, description=run.__doc__)
        made.set_defaults(run=run)
        if words:
            made.add_argument("words", nargs="*", metavar="WORD", help="cases with it in their key")
        return made

    def asking(to, gpu) -> None:
        to.add_argument("--stowage", metavar="PATH", help="the program [as compare.py finds it]")
        to.add_argument("--gpu", default=gpu, help="the card [%(default)s]")
        to.add_argument("--recordings", metavar="FOLDER", help="where `record` left step files")

    to = command(measure)
    to.add_argument("-o", "--output", default="fine_tuning.json")
    to.add_argument("--parallel", type=int, default=1, metavar="N", help="cases at once [1]")
    to.add_argument("--stop-after", type=float, default=float("inf"), metavar="SECONDS",
                    help="start no case later than this")
    to.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="of a case [60]")
    to.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: a dry run")
    to.add_argument("--estimates", metavar="FILE", help="of `ask`: what may run side by side")
    to.add_argument("--retry-failed", action="store_true")
    to.add_argument("--fresh", action="store_true", help="start Python anew for each case")
    to = command(one, words=False)
    to.add_argument("key")
    to.add_argument("path")
    to.add_argument("--device", default="cuda")
    to.add_argument("--uuid", default="")
    to = command(record)
    to.add_argument("-o", "--output", default="recordings", metavar="FOLDER")
    to.add_argument("--parallel", type=int, default=1, metavar="N")
    to.add_argument("--timeout", type=float, default=600)
    to.add_argument("--compute-capability", default="9.0", metavar="X.Y")
    to = command(ask)
    asking(to, "h100-80gb")
    to.add_argument("-o", "--output", metavar="FILE", help="for measure's --estimates")
    for name, default in (("pytorch", "2.11"), ("transformers", "5.17"), ("cuda", "13.0")):
        to.add_argument(f"--{name}", default=default, metavar="X.Y", help="version [%(default)s]")
    to = command(compare, words=False)
    to.add_argument("measured", metavar="MEASURED")
    asking(to, None)
    to.add_argument("--format", choices=("table", "json"), default="table")
    command(list_cases)
    return result


def list_cases(options) -> int:
    print("\n".join(case.key() for case in chosen(options.words)))
    return 0


def main(arguments=None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except (journal.WrongJournal, OSError) as error:
        print(f"fine_tuning: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
