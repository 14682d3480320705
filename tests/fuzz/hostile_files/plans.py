"""Plans for PyTorch and plans of serving, which the program itself has made, with hostile changes."""

from __future__ import annotations

import json
import pathlib
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator

from hostile_files.case import REPOSITORY, Hostile, text
from hostile_files.descriptions import NUMBERS
from hostile_files.mutations import mutated

MODEL = """model: m
inputs:
  x: {shape: [batch, 64, 32, 32]}
  label: {shape: [batch], dtype: int64}
blocks:
  pair:
    layers:
      - conv2d: {name: conv1, channels: 64, kernel: 3, padding: 1}
      - batch_norm: {name: bn}
      - relu: {name: relu}
      - conv2d: {name: conv2, channels: 64, kernel: 3, padding: 1}
      - relu: {name: end}
layers:
  - pair: {name: block, from: x, repeat: 4}
  - flatten: {name: flat}
  - linear: {name: head, features: 8}
loss:
  cross_entropy: {from: [head, label]}
"""

# What is asked for of a plan, on a card that is too small for the step by little.
ASKED = (
    ("offload", "--batch 128 --optimizer adamw --gpu-memory 900MiB --choose offload"),
    ("checkpoint", "--batch 128 --optimizer adamw --gpu-memory 900MiB --choose checkpoint-1-of-4"),
    ("parts", "--batch 128 --mode inference --gpu-memory 512MiB"),
)
COMMANDS = ("validate {}/p.json", "export {}/p.json --to deepspeed", "explain {}/p.json head")
SERVED_COMMANDS = (
    "validate {}/p.yaml --model-only",
    "export {}/p.yaml --to llama.cpp",
    "explain {}/p.yaml *",
)


def planned(program: str, folder: pathlib.Path, words: str, name: str) -> bytes:
    """The file of a plan that the program makes in the folder."""
    made = subprocess.run(
        [program, "plan", *words.split(), "-o", name], cwd=folder, capture_output=True, text=True
    )
    if not (folder / name).is_file():
        raise RuntimeError(f"no plan to change: stowage plan {words}\n{made.stdout}{made.stderr}")
    return (folder / name).read_bytes()


def with_numbers(plan: str) -> Iterator[tuple[str, str]]:
    """The plan with each of its numbers replaced by another: what was changed, and the text."""
    for place in re.finditer(r"(?<=[ \[:])\d+(\.\d+)?(e-?\d+)?(?=[,\]} \n])", plan):
        for number in random.sample(NUMBERS, 1):
            yield f"{place.start()} {number}", plan[: place.start()] + number + plan[place.end() :]


def with_words(plan: str) -> Iterator[tuple[str, str]]:
    """The plan's members changed as a whole: wrong kinds, empty ones, long ones."""
    document = json.loads(plan)
    others: tuple[object, ...] = (None, "", [], {}, [[]], -1, "x" * 100_000, "\x1b[31m", "\ud800")
    for member in document:
        for other in others:
            yield f"{member} {str(other)[:10]!r}", json.dumps({**document, member: other})
    many = {**document, "checkpoint": [{"module": f"block.{i}"} for i in range(200_000)]}
    yield "many modules", json.dumps(many)
    shape = ["batch"] * 100_000
    for entry in document["offload"][:1]:
        saved = [{**entry["saved"][0], "shape": shape}]
        yield "many axes", json.dumps({**document, "offload": [{**entry, "saved": saved}]})
    for model in ("../../etc/passwd", "/dev/zero", "./p.json", "hf:../x", "-", "."):
        question = {"model": model, "settings": {"gpu": ["t4"]}}
        yield f"of {model}", json.dumps({**document, "question": question})
    for setting, value in (("gpu", "./p.json"), ("frobnicate", "1"), ("seq", "9" * 30), ("set", "a")):
        question = {"model": "./m.yaml", "settings": {setting: [value]}}
        yield f"with {setting} {value[:10]}", json.dumps({**document, "question": question})


def plan_files(program: str) -> Iterator[Hostile]:
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        (folder / "m.yaml").write_text(MODEL)
        plans = {
            kind: planned(program, folder, f"m.yaml --for pytorch {words}", f"{kind}.json")
            for kind, words in ASKED
        }
        config = REPOSITORY / "tests/hf/tiny-llama-classifier/config.json"
        words = f"{config} --context-length 64 --gpu-memory 600MiB"
        served = planned(program, folder, words, "served.yaml")
    for kind, plan in plans.items():
        changes = [*with_numbers(plan.decode()), *with_words(plan.decode())]
        for name, content in changes:
            files = {"m.yaml": text(MODEL), "p.json": text(content)}
            command = COMMANDS[0] if chance.random() < 0.7 else chance.choice(COMMANDS[1:])
            yield Hostile(f"plan for pytorch ({kind}) {name}", files, command)
        for i in range(40):
            files = {"m.yaml": text(MODEL), "p.json": mutated(plan, chance)}
            yield Hostile(f"plan for pytorch ({kind}) mutation {i}", files, chance.choice(COMMANDS))
    for i in range(80):
        files = {"p.yaml": mutated(served, chance)}
        yield Hostile(f"plan of serving mutation {i}", files, chance.choice(SERVED_COMMANDS))
