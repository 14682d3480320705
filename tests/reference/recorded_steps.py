#!/usr/bin/env python3
"""Compare the two roads: each shipped model recorded from its PyTorch implementation, and lowered
from its description; the large language models cut to two layers.

    python recorded_steps.py --stowage ../../build/stowage                 all of them
    python recorded_steps.py --stowage ../../build/stowage vgg16 gpt2      some of them
    python recorded_steps.py --stowage ../../build/stowage --keep DIR mlp  keeps the step files
    python recorded_steps.py --stowage ../../build/stowage --rows rows.jsonl
                                           rows are kept there: a run goes on where it was cut off
    python recorded_steps.py --fixtures                                    ../recorded, for tests

Needs no GPU. Writes recorded_steps.json: parameters, saved bytes and the peaks of tensor bytes by
both roads, at a batch whose peak lies in backward and at 1, whose peak lies in the update, and with
which versions. Each model is recorded in a process of its own. Rows of models that are not named
stay as they are. tests/estimator/recorded/recorded_models_test.cpp names
every difference in it, with its reason.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "python")]

RECORDED_BATCH = 2
OPTIMIZER = "adam"
CAPABILITY = (8, 6)
CARD = "rtx3090"
IMAGE_BATCH, TOKEN_BATCH = 32, 8
LIMIT_S = 1800
# Where the reference's example is smaller than the description's.
ARGUMENTS = {"unet": {"size": 64}}


class Called(Exception):
    """How a reference's loss calls its model."""

    def __init__(self, arguments, keywords):
        super().__init__()
        self.arguments, self.keywords = arguments, keywords


def source_of(name, entry):
    """The catalogue's entry as the recorder takes it."""
    import torch
    from stowage.sources.source import Example, Source, built_on_meta

    reference = entry.reference

    def call_of(inputs, target):
        def model(*arguments, **keywords):
            raise Called(arguments, keywords)

        try:
            reference.loss(model, inputs, target)
        except Called as called:
            return called.arguments, called.keywords
        raise AssertionError(f"{name}: the loss does not call the model")

    def inputs_of(batch):
        with torch.device("meta"):
            return reference.inputs(reference, batch, reference.seq)

    def example(batch):
        inputs, target = inputs_of(batch)
        arguments, keywords = call_of(inputs, target)
        given = any(value is target for value in keywords.values())
        return Example(arguments, keywords, None if given else target)

    unread = inputs_of(1)[0]  # a loss may take its inputs apart to call the model

    def loss(output, target):
        return reference.loss(lambda *_, **__: output, unread, target)[1]

    return Source(name, reference.source, built_on_meta(lambda: reference.build(reference.seq)),
                  example, loss, reference.seq)


def record(name, entry, path, precision="fp32"):
    from stowage.record import RecordOptions, record_source

    options = RecordOptions(optimizer=OPTIMIZER, capability=CAPABILITY, precision=precision)
    record_source(source_of(name, entry), RECORDED_BATCH, options).save(path)


def record_apart(name, entry, path):
    """The same in a process of its own, whose memory goes with it."""
    from recorded_models import in_a_process

    failure = in_a_process(lambda: record(name, entry, path), LIMIT_S)[0]
    if failure:
        raise RuntimeError(failure["why"])


def fixtures():
    """Small steps of each kind of call, by their files' names: (entry, precision)."""
    import catalogue

    plain = {name: (catalogue.cases()[name], "fp32")
             for name in ("mlp", "resnet18", "unet", "lstm-lm")}
    gpt2 = catalogue.Entry("gpt2", catalogue.hugging_face("GPT2LMHeadModel", n_layer=1))
    return plain | {"gpt2-1layer": (gpt2, "fp32"), "gpt2-1layer-amp-bf16": (gpt2, "amp-bf16")}


def write_fixtures():
    for name, (entry, precision) in fixtures().items():
        record(entry.model, entry, ROOT / "tests" / "recorded" / f"{name}.json", precision)
        print(name, flush=True)


def answer(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(arguments)}\n{done.stdout[:2000]}{done.stderr[:2000]}")
    return json.loads(done.stdout)


def peaks(stowage, what, batch, runtime):
    """Tensor bytes: loaded, the first step's peak, later ones', and where that is."""
    report = answer([stowage, "check", *what, "--runtime", runtime, "--batch", str(batch), "--gpu",
                     CARD, "--format", "json"])
    return [phase["tensor_bytes"] for phase in report["phases"]]


def saved_bytes(stowage, what, batch):
    report = answer([stowage, "summary", *what, "--verbose", "--batch", str(batch), "--format",
                     "json"])
    return sum(layer["saved_bytes"] for layer in report["layers"])


def parameter_count(stowage, what):
    return answer([stowage, "summary", *what, "--format", "json"])["model"]["parameters"]


def described(name, entry):
    """How the command line names the model."""
    what = [entry.model]
    for argument, value in (entry.arguments | ARGUMENTS.get(name, {})).items():
        what += ["--set", f"{argument}={str(value).lower()}"]
    if entry.reference.seq is not None:
        what += ["--seq", str(entry.reference.seq)]
    return what


def compare(stowage, name, entry, path):
    batch = TOKEN_BATCH if entry.reference.seq is not None else IMAGE_BATCH
    roads = {"recorded": [str(path)], "lowered": described(name, entry)}
    row = {"model": entry.model, "source": entry.reference.source, "versions": versions(),
           "batch": batch, "seq": entry.reference.seq}
    for road, what in roads.items():
        training = what + (["--optimizer", OPTIMIZER] if road == "lowered" else [])
        row[road] = {
            "parameters": parameter_count(stowage, what),
            "saved_bytes": saved_bytes(stowage, what, batch),
            "ideal": peaks(stowage, training, batch, "ideal"),
            "ideal_batch_1": peaks(stowage, training, 1, "ideal"),
            "pytorch": peaks(stowage, training, batch, "pytorch"),
        }
    row["equal"] = row["recorded"] == row["lowered"]
    return row


def versions():
    import counts

    return counts.versions()


def kept_rows(path):
    """The rows of a run before, by their models' names."""
    if not path or not pathlib.Path(path).exists():
        return {}
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    return dict(json.loads(line) for line in lines)


def measured(stowage, name, entry, folder):
    """The model's row, and how long recording took."""
    started = time.monotonic()
    path = pathlib.Path(folder) / f"{name}.json"
    if not path.exists():
        record_apart(name, entry, path)
    recorded = time.monotonic() - started
    return compare(stowage, name, entry, path), recorded


def tell(name, row, recorded, seconds):
    print(f"{name}: {'equal' if row['equal'] else 'DIFFERS'}, recorded in {recorded:.1f} s, "
          f"{seconds:.1f} s in all", flush=True)
    for figure in row["recorded"]:
        if row["recorded"][figure] != row["lowered"][figure]:
            print(f"  {figure}: recorded {row['recorded'][figure]}, lowered "
                  f"{row['lowered'][figure]}", flush=True)


def main():
    import catalogue
    import json_format

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stowage", help="the program")
    parser.add_argument("--fixtures", action="store_true", help="write ../recorded alone")
    parser.add_argument("--keep", metavar="DIR",
                        help="where the step files stay; those that are there are taken as they are")
    parser.add_argument("--rows", metavar="FILE", help="a row a line, as they are measured")
    parser.add_argument("models", nargs="*", help="names of catalogue.cases(); all")
    options = parser.parse_args()
    if options.fixtures:
        write_fixtures()
        return 0
    if not options.stowage:
        parser.error("--stowage says which program weighs the steps")
    import stowage.pretend.session  # children have it from here
    import stowage.training.steps

    written = HERE / "recorded_steps.json"
    models = json.loads(written.read_text())["models"] if written.exists() else {}
    done = kept_rows(options.rows)
    models |= done
    failed, cases = [], catalogue.cases()
    for name in [n for n in options.models or cases if n not in done]:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                row, recorded = measured(options.stowage, name, cases[name], options.keep or folder)
            except Exception as error:  # told of, and the next model is tried
                failed.append(name)
                print(f"{name}: {type(error).__name__}: {str(error)[:1500]}", flush=True)
                continue
        models[name] = row
        tell(name, row, recorded, time.monotonic() - started)
        if options.rows:
            with open(options.rows, "a", encoding="utf-8") as file:
                file.write(json.dumps([name, row]) + "\n")
        json_format.write(written, {
            "schema_version": 2, "optimizer": OPTIMIZER, "card": CARD,
            "rows": "[after loading, first step, later steps], bytes",
            "models": {one: models[one] for one in cases if one in models}})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
