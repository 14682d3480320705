#!/usr/bin/env python3
"""Write recorded_models.json: torchvision's classification models and models of timm through
`python -m stowage record`, held against PyTorch.

    python recorded_models.py                        all of exported_models.sources()
    python recorded_models.py --rows rows.jsonl      rows are kept there: a run goes on where it was cut off
    python recorded_models.py --models timm:resmlp_12_224
    python recorded_models.py --pytorch eager.jsonl  what PyTorch saves is kept there, and not asked again

Each model is recorded in a process of its own, at batch 2 and the image size of its source, within a
time limit. Compared are every parameter's shape, tensor by tensor, with the nn.Module's; the storages
that the step keeps for its backward pass, byte by byte, with those that eager PyTorch saves under fake
CUDA (saved_tensors.py, by another road: a preloaded library in place of the recorder's slots);
buffers' bytes. Needs no GPU and no program. See README.md for the format.
"""

import argparse
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import traceback

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "python")]

BATCH = 2
LIMIT_S = 900


def recorded(name):
    """Counters of saved storages' bytes and of parameters' shapes, buffers' bytes; how large the
    step is, and whether its sizes follow the batch."""
    import exported_models
    from stowage.record import RecordOptions, record_source
    from stowage.sources import resolve

    document = record_source(resolve(name), BATCH, RecordOptions()).document
    step, shapes = document["step"], document["shapes"]
    rows = [row if isinstance(row, dict) else dict(zip(("name", "class", "lifetime", "bytes"), row))
            for row in step["storages"]]
    existed = ("parameter", "buffer", "input")
    bytes_of = lambda row: exported_models.sized(row["bytes"], BATCH)
    saved = collections.Counter(bytes_of(rows[n]) for n in {row[1] for row in step["saved"]}
                                if rows[n]["class"] not in existed)
    del saved[0]
    trained = [row for row in document["parameters"] if "buffer" not in row[3:]]
    parameters = [shapes[row[2]] if isinstance(row[2], int) else row[2] for row in trained]
    return {"kernels": len(step["nodes"]), "fixed_batch": bool(document["fixed_batch"]),
            "saved": sorted(saved.items()),
            "shapes": sorted(collections.Counter(map(tuple, parameters)).items()),
            "buffers": sum(bytes_of(row) for row in rows if row["class"] == "buffer")}


def in_a_process(function, limit_s):
    """What the function returns, in a child that has this process's modules; a dict with `why`
    where it raises, dies or takes longer."""
    from stowage.errors import StowageError

    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        signal.alarm(limit_s)
        try:
            answer = function()
        except StowageError as error:
            answer = {"why": str(error)}
        except BaseException as error:  # whatever it is, the row says it
            traceback.print_exc()
            answer = {"why": f"{type(error).__name__}: {str(error)[:400]}"}
        with os.fdopen(write_end, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    status, usage = os.wait4(child, 0)[1:]
    if not text:
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
        return {"why": f"took over {limit_s} s" if late else f"ended with status {status}"}, usage
    return json.loads(text), usage


class Eager:
    """What PyTorch saves, asked of a process with the preloaded library; rows are kept in a file."""

    def __init__(self, path):
        import exported_models

        self.path, self.process = path, None
        self.known = exported_models.Kept(path).rows

    def of(self, name):
        if name in self.known:
            return self.known[name]
        if self.process is None:
            command = [sys.executable, str(pathlib.Path(__file__)), "--eager"]
            command += ["--pytorch", self.path] if self.path else []
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            text=True)
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def answer_eagerly(path):
    """The other end of Eager: a line with a name in, a row out."""
    import exported_models
    import fake_cuda

    fake_cuda.relaunch_with_shim()
    kept, answers = exported_models.Kept(path), os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    for line in iter(sys.stdin.readline, ""):
        name = line.strip()
        try:
            from stowage.sources import resolve

            kept.of(name, resolve(name).example(BATCH).arguments[0].shape)
            row = kept.rows[name]
        except Exception as error:
            row = {"why": f"{type(error).__name__}: {str(error)[:400]}"}
        os.write(answers, (json.dumps(row) + "\n").encode())


def counter(rows):
    return collections.Counter({tuple(key) if isinstance(key, list) else key: n for key, n in rows})


def measured(name, eager):
    import exported_models

    ours, usage = in_a_process(lambda: recorded(name), LIMIT_S)
    row = {"model": name, "recorded": "why" not in ours}
    if not row["recorded"]:
        return {**row, "why": ours["why"]}
    theirs = eager.of(name)
    if "why" in theirs:
        raise RuntimeError(f"PyTorch alone: {theirs['why']}")
    saved = [counter(side["saved"]) for side in (ours, theirs)]
    shapes = [counter(side["shapes"]) for side in (ours, theirs)]
    row |= {"kernels": ours["kernels"], "fixed_batch": ours["fixed_batch"],
            "processor_s": round(usage.ru_utime + usage.ru_stime, 1),
            "parameters": sum(shapes[1].values()), "parameters_equal": shapes[0] == shapes[1],
            "saved_bytes": sum(size * n for size, n in saved[1].items()),
            "saved_equal": saved[0] == saved[1],
            "buffers_equal": ours["buffers"] == theirs["buffers"]}
    if not row["parameters_equal"]:
        row["parameters_differ"] = exported_models.difference(*shapes)
    if not row["saved_equal"]:
        row["saved_bytes_ours"] = sum(size * n for size, n in saved[0].items())
        row["saved_differ"] = exported_models.difference(*saved)
    if not row["buffers_equal"]:
        row["buffer_bytes"] = [ours["buffers"], theirs["buffers"]]
    return row


def spread(names):
    """One of each family first (by the letters that a name begins with), so that a run that is cut
    off has seen many kinds."""
    families = collections.defaultdict(list)
    for name in names:
        families[name.split("_")[0].rstrip("0123456789")].append(name)
    turns = [(turn, name) for members in families.values() for turn, name in enumerate(members)]
    return [name for _, name in sorted(turns, key=lambda pair: pair[0])]


def main():
    import exported_models

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--models", nargs="+", metavar="SOURCE", help="only these, write nothing")
    parser.add_argument("--rows", metavar="FILE", help="a row a line, as they are measured")
    parser.add_argument("--pytorch", metavar="FILE", help="what PyTorch saves, kept between runs")
    parser.add_argument("--eager", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="write the rows that there are, measure none")
    arguments = parser.parse_args()
    if arguments.eager:
        answer_eagerly(arguments.pytorch)
        return
    import torch
    import timm
    import torchvision

    import stowage.pretend.session  # children have it from here
    import stowage.training.steps

    torch.set_num_threads(1)
    rows, eager = exported_models.earlier(arguments.rows), Eager(arguments.pytorch)
    done = {row["model"] for row in rows}
    names = [] if arguments.write else arguments.models or spread(exported_models.sources())
    for name in [n for n in names if n not in done]:
        started = time.monotonic()
        row = measured(name, eager)
        rows.append(row)
        print(f"{time.monotonic() - started:5.1f} s", json.dumps(row), flush=True)
        if arguments.rows:
            with open(arguments.rows, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    if arguments.models:
        return
    import counts
    import json_format

    order = {name: at for at, name in enumerate(exported_models.sources())}
    rows.sort(key=lambda row: order[row["model"]])
    json_format.write(HERE / "recorded_models.json",
                      {"schema_version": 1, "versions": counts.versions(), "batch": BATCH,
                       "models": rows})


if __name__ == "__main__":
    main()
