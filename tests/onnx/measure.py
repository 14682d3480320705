#!/usr/bin/env python3
"""Sizes exported ONNX files beside the project's own descriptions, and writes measured.json.

    python3 tests/onnx/export.py FOLDER --how all
    python3 tests/onnx/measure.py FOLDER [--stowage PROGRAM] [--markdown]

For each file that export.py wrote: parameters, and the peak of tensors and of the device in bytes, of a training step
with Adam and, of files of HOW `default`, of an inference; of the file and of the description. torchvision's models at
batch 64, transformers' at batch 8 and sequence 128, on a GeForce RTX 3090, with the workspaces that cuDNN answers where
it is at hand. A file that is not sized has "why" in its row, as one has that was not exported. --markdown prints the table of docs/onnx.md.
"""

import argparse
import importlib.metadata
import json
import pathlib
import platform
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
# Descriptions that lie elsewhere than under the model's own name.
DESCRIPTIONS = {name: f"tests/hf/{name}" for name in ("distilbert-base", "small-llama", "small-gpt2")}
SEQUENCES = ("gpt2", "bert-base", "distilbert-base", "t5-small", "small-llama", "small-gpt2")


def ask(program, command, model, options):
    done = subprocess.run([program, command, model, *options, "--format", "json"], cwd=ROOT,
                          capture_output=True, text=True)
    if done.returncode > 1:
        raise RuntimeError(json.loads(done.stdout)["diagnostics"][0]["message"] if done.stdout
                           else done.stderr.strip())
    return json.loads(done.stdout)


def sizes(program, model, options, step):
    summary = ask(program, "summary", model, options)
    check = ask(program, "check", model, ["--gpu", "rtx3090", *options, *step])
    return {"parameters": summary["model"]["parameters"],
            "tensor_bytes": check["peak"]["tensor_bytes"], "device_bytes": check["peak"]["device_bytes"]}


def description_options(name, how):
    """What the exported graph leaves out is left out of the description."""
    if name == "googlenet" and how != "exported":
        return ["--set", "aux=false"]
    if name == "inception_v3" and how == "default":
        return ["--set", "aux=false"]
    if name == "distilbert-base":  # whose configuration asks for eager attention, being of an old transformers
        return ["--set", "transformers=5.24"]
    return []


def measured(program, name, how, path):
    extent = ["--batch", "8", "--seq", "128"] if name in SEQUENCES else ["--batch", "64"]
    step = ["--mode", "inference"] if how == "default" else ["--optimizer", "adam"]
    row = {"model": name, "how": how}
    try:
        row["file"] = sizes(program, str(path), extent, step)
        row["description"] = sizes(program, DESCRIPTIONS.get(name, name),
                                   extent + description_options(name, how), step)
    except RuntimeError as error:
        row["why"] = str(error).replace(str(path.parent) + "/", "")
    return row


def percent(row, what):
    ours, own = row["file"][what], row["description"][what]
    return "0" if ours == own else f"{100 * (ours - own) / own:+.2f}"


def cell(row):
    if row is None or "why" in row:
        return "-"
    star = "" if row["file"]["parameters"] == row["description"]["parameters"] else " *"
    return f"{percent(row, 'tensor_bytes')} / {percent(row, 'device_bytes')}{star}"


def markdown(rows):
    """A line a model: what the description says in MiB, and by how many percent each file differs."""
    print("| model | training, MiB | traced | opset 11 | exported | inference, MiB | default |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    of = {(row["model"], row["how"]): row for row in rows}
    for name in dict.fromkeys(row["model"] for row in rows):
        def own(how):
            row = of.get((name, how), {})
            if "description" not in row:
                return "-"
            peak = row["description"]
            return f"{peak['tensor_bytes'] / 2**20:,.1f} / {peak['device_bytes'] / 2**20:,.0f}"

        trained = next((how for how in ("traced", "exported") if own(how) != "-"), "traced")
        print(f"| {name} | {own(trained)} | {cell(of.get((name, 'traced')))} | {cell(of.get((name, 'opset11')))} | "
              f"{cell(of.get((name, 'exported')))} | {own('default')} | {cell(of.get((name, 'default')))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--stowage", default=str(ROOT / "build" / "stowage"), metavar="PROGRAM")
    parser.add_argument("--names", nargs="+", metavar="NAME", help="only these, write nothing")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for path in sorted(arguments.folder.glob("*.onnx")):
        name, how = path.stem.rsplit(".", 1)
        if not arguments.names or name in arguments.names:
            rows.append(measured(arguments.stowage, name, how, path.resolve()))
            if not arguments.markdown:
                print(json.dumps(rows[-1]), flush=True)
    for path in sorted(arguments.folder.glob("*.why")):
        name, how = path.stem.rsplit(".", 1)
        if not arguments.names or name in arguments.names:
            why = re.sub("\x1b\\[[0-9;]*m", "", path.read_text().split("\n")[0])
            rows.append({"model": name, "how": how, "why": f"not exported: {why}"})
    if arguments.markdown:
        markdown(rows)
    if arguments.names:
        return
    versions = {"python": platform.python_version()}
    for package in ("torch", "torchvision", "transformers", "onnx", "onnxscript"):
        versions[package] = importlib.metadata.version(package)
    sys.path.insert(0, str(HERE.parent / "reference"))
    import json_format

    json_format.write(HERE / "measured.json", {"schema_version": 1, "versions": versions, "rows": rows})


if __name__ == "__main__":
    main()
