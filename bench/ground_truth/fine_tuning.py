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
import contextlib
import json
import os
import sys
import time

import card
import journal
from forked import forked_or_fresh
from interrupts import Interrupts
from measure import Usage, describe
from pool import Admission, Pool, is_doubtful
from process import Fresh
from tuning_cases import CASES, Case, chosen

SCHEMA_VERSION = 1
_ROOM_SHARE = 0.9  # of the card, for the estimates of what runs at once
# What the process that forks loads; of transformers what its models load when they are first used.
_PRELOADED = ("torch", "transformers", "peft", "torchvision", "timm",
              *(f"transformers:{name}" for name in (
                  "LlamaForCausalLM", "GPT2LMHeadModel", "MistralForCausalLM", "Qwen2ForCausalLM",
                  "Qwen3ForCausalLM", "GemmaForCausalLM", "BertForMaskedLM", "ViTForImageClassification",
                  "T5ForConditionalGeneration", "WhisperForConditionalGeneration")))


def _head(device: str) -> dict:
    """The card and the software."""
    content = {"device": device, **describe(device, "fine_tuning: no CUDA device; --device cpu makes a dry run")}
    content["software"].update({name: card.version(name) for name in ("peft", "accelerate")})
    return content


def _starter(target: str, fresh: bool):
    """What starts the cases' processes, which run `target`. Close it."""
    return Fresh(target) if fresh else forked_or_fresh(target, _PRELOADED, "fine_tuning")


def _say(record: dict) -> None:
    print(f"{record['status']:7} {record['wall_seconds']:6.1f} s  {record['key']}", flush=True)


def _needs(path: str | None) -> dict[str, int]:
    """Estimates by key, from `ask`."""
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:
        return {key: entry["device_bytes"] for key, entry in json.load(file).items()}


def _results(head: dict, log: journal.Journal, cases: list[Case]) -> str:
    told = head["card"]  # whose uuid is needed to find it, not to be published
    if told:
        head = {**head, "card": {name: told[name] for name in told if name != "uuid"}}
    return json.dumps({
        "schema_version": SCHEMA_VERSION, "measurement": head["device"] == "cuda", **head,
        "cases": [log.records[key] for key in sorted(log.records)],
        "missing": [case.key() for case in cases if case.key() not in log.records]}, indent=1)


def _run_cases(cases: list[Case], head: dict, log: journal.Journal, options, stop_at: float) -> None:
    """KeyboardInterrupt on a signal; what had ended by then is in the journal."""
    told = head["card"] or {}
    needs = _needs(options.estimates)
    admission = Admission(int(_ROOM_SHARE * told.get("torch_total_bytes", 1 << 60)),
                          lambda case: needs.get(case.key(), 0))

    def spec_of(case: Case, at_once: int) -> dict:
        return {"key": case.key(), "device": options.device, "uuid": told.get("uuid"), "at_once": at_once}

    def done(case: Case, record: dict) -> None:
        log.append(record)
        _say(record)

    with Interrupts() as interrupts, \
            contextlib.closing(_starter("tuning_steps:run", options.fresh)) as starter:
        pool = Pool(starter, options.parallel, admission, spec_of, options.timeout, stop_at, done,
                    lambda case, record: is_doubtful(record), lambda case: log.put_off(case.key()),
                    interrupts.check)
        pool.run([case for case in cases if case.key() not in log.crowded],
                 [case for case in cases if case.key() in log.crowded])


def measure(options) -> int:
    stop_at = time.monotonic() + options.stop_after
    head = _head(options.device)
    log = journal.Journal(os.path.splitext(options.output)[0] + ".jsonl", head)
    cases = chosen(options.words)
    recorded = ("ok", "oom") if options.retry_failed else ("ok", "oom", "failed", "timeout")
    waiting = [case for case in cases
               if log.records.get(case.key(), {}).get("status") not in recorded]
    code = 0
    try:
        if waiting:
            _run_cases(waiting, head, log, options, stop_at)
    except KeyboardInterrupt:
        code = 130
    journal.atomic_write(options.output, _results(head, log, cases))
    bad = sum(record["status"] not in ("ok", "oom") for record in log.records.values())
    print(f"{len(log.records)} of {len(cases)} cases, {bad} failed")
    return code or (1 if bad else 0)


def record(options) -> int:
    """A step file for each case that wants one, beside those that are there."""
    os.makedirs(options.output, exist_ok=True)
    place = lambda case: os.path.join(options.output, case.file_name() + ".json")
    capability = tuple(map(int, options.compute_capability.split(".")))

    def spec_of(case: Case, at_once: int) -> dict:
        return {"key": case.key(), "compute_capability": capability, "output": place(case),
                "at_once": at_once}

    codes = []

    def done(case: Case, result: dict) -> None:
        codes.append(result["status"] != "ok")
        _say(result)
        if "error" in result:
            print(result["error"].get("said") or result["error"]["message"], file=sys.stderr)

    cases = [case for case in chosen(options.words)
             if case.record and not os.path.exists(place(case))]
    if cases:
        with contextlib.closing(_starter("tuning_record:run", fresh=False)) as starter:
            Pool(starter, options.parallel, Admission(None, lambda case: 0), spec_of, options.timeout,
                 None, done).run(cases)
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
    except (Usage, journal.WrongJournal, OSError) as error:
        print(f"fine_tuning: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
