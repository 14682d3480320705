"""For the tests: a program that answers as stowage does, results as measure.py writes them, a job."""

import json
import os
import sys
import time
from dataclasses import asdict

import matrix

MIB = 1 << 20

# Figures follow from the question, so that a wrong option shows as a wrong figure. 'vgg16' is refused.
_PROGRAM = r"""#!{python}
import json, os, sys
asked = sys.argv[1:]
with open({log!r}, "a") as file:
    file.write(json.dumps(asked) + "\n")
if asked == ["--version"]:
    print({version!r})
elif "--help" in asked:
    print({help!r})
elif asked[1] == "vgg16":
    print("error: there is no model 'vgg16'\n  a second line", file=sys.stderr)
    sys.exit(2)
elif asked[1] == "resnet152":
    print("not what was asked for")
else:
    given = dict(zip(asked[2::2], asked[3::2]))
    tensors = int(given["--batch"]) << 20
    context = int(given.get("--context", "314572800B").removesuffix("B"))
    fits = int(given["--batch"]) < 1000
    print(json.dumps({{"verdict": "fits" if fits else "does_not_fit",
                      "peak": {{"tensor_bytes": tensors, "reserved_bytes": 2 * tensors,
                               "device_bytes": 2 * tensors + context}}}}))
    sys.exit(0 if fits else 1)
"""

HELP = "  --gpu NAME   a card\n  -v, --verbose\n      --not-an-option-but-text"


class Program:
    """Written into `folder`; `asked()` is what it was asked, question by question."""

    def __init__(self, folder: str, version: str = "stowage 0.1.0", options: str = HELP):
        self.path, self.log = os.path.join(folder, "stowage"), os.path.join(folder, "asked")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(_PROGRAM.format(python=sys.executable, log=self.log, version=version,
                                       help=options))
        os.chmod(self.path, 0o755)

    def asked(self) -> list[list[str]]:
        with open(self.log, encoding="utf-8") as file:
            questions = [json.loads(line) for line in file]
        return sorted(question for question in questions
                      if question[0] == "check" and "--help" not in question)


def record(key: str, status: str = "ok", allocated=None, reserved=None, device=None, context=None):
    """One job's record, in MiB. `context`: with the 2 MiB that the allocator holds by then."""
    scaled = lambda value: None if value is None else round(value * MIB)
    phases = {"steady": {"max_requested_bytes": scaled(allocated),
                         "max_allocated_bytes": scaled(allocated),
                         "max_reserved_bytes": scaled(reserved),
                         "process_device_bytes": scaled(device)}} if status == "ok" else {}
    phases["context"] = {"process_device_bytes": scaled(context), "reserved_bytes": 2 * MIB}
    job = matrix.Job.from_key(key)
    return {"key": job.key(), "job": asdict(job), "status": status, "phases": phases}


def results(records: list, **head) -> dict:
    return {"schema_version": 1, "measurement": True, "card": {"name": "NVIDIA H200"},
            "software": {"torch": "2.11.0", "environment": {}}, "warmup": 2, "steps": 3,
            "jobs": records, **head}


def run(spec: dict, path: str) -> None:
    """A job for process.py that ends, dies or hangs."""
    record = {"key": spec["key"], "status": "running", "phases": {"loaded": {}}, "pid": os.getpid(),
              "began": time.monotonic()}
    if spec["does"] == "die":
        print("about to go", flush=True)
        os._exit(7)
    if spec["does"] == "end":
        record.update(status="ok", ended=time.monotonic())
    with open(path, "w", encoding="utf-8") as file:
        json.dump(record, file)
    if spec["does"] == "hang":
        time.sleep(60)
