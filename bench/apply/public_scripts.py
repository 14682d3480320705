"""Scripts of public repositories, as they are but for the lines that a plan needs.

Their text is not here. FOLDER/OWNER/NAME is a clone of each at its commit:

    git clone https://github.com/pytorch/examples FOLDER/pytorch/examples

A script's step is put into a function: its lines from `first` to `last` become the body of one, which
@stowage.step marks. After line `made` the plan is applied.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import os
import pathlib
import random
import runpy
import shutil
import struct
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclasses.dataclass(frozen=True)
class PublicScript:
    """`edited` is the file with the loop; `first`, `last` and `made` are its lines, from 1. `takes`: the
    step's tensors; `loss`: what it returns; `model`, `optimizer`: their names at `made`. `words`: the
    script's own, {batch} the batch; `batch`: that of the plan."""

    repository: str
    commit: str
    path: str
    edited: str
    first: int
    last: int
    made: int
    takes: str
    loss: str
    model: str
    optimizer: str
    words: tuple[str, ...]
    batch: int

    @property
    def name(self) -> str:
        return f"{self.repository}:{self.path}"


SCRIPTS = (
    PublicScript("pytorch/examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8", "mnist/main.py",
                 "mnist/main.py", 40, 44, 128, "data, target", "loss", "model", "optimizer",
                 ("--batch-size", "{batch}", "--epochs", "1"), 256),
    PublicScript("karpathy/minGPT", "37baab71b9abea1b76ab957409a1cc2fbfba8a26",
                 "projects/chargpt/chargpt.py", "mingpt/trainer.py", 93, 99, 65, "x, y", "self.loss",
                 "model", "self.optimizer",
                 ("--model.model_type=gpt-micro", "--trainer.batch_size={batch}",
                  "--trainer.num_workers=0"), 64),
)


def edited_text(script: PublicScript, text: str) -> str:
    """The script's text with its step in a function, and the plan's line."""
    lines = text.split("\n")
    body = lines[script.first - 1:script.last]
    indent = body[0][:len(body[0]) - len(body[0].lstrip())]
    step = ["@script_hooks.step", f"def train_step({script.takes}):",
            *textwrap.indent(textwrap.dedent("\n".join(body)), "    ").split("\n"),
            f"    return {script.loss}", f"loss = train_step({script.takes})"]
    lines[script.first - 1:script.last] = [indent + line for line in step]
    at = script.made - 1 if script.made <= script.first else script.made - 1 + len(step) - len(body)
    before = lines[at]
    lines.insert(at + 1, before[:len(before) - len(before.lstrip())] +
                 f"script_hooks.made({script.model}, {script.optimizer})")
    return "\n".join(["import script_hooks", *lines])


def copied(script: PublicScript, scripts: str, folder: str) -> pathlib.Path:
    """The script's own path in an edited copy of its repository. Raises OSError or ValueError where it is
    not there, or at another commit."""
    source = pathlib.Path(scripts) / script.repository
    found = subprocess.run(["git", "-C", str(source), "rev-parse", "HEAD"], text=True,
                           capture_output=True, check=False).stdout.strip()
    if found != script.commit:
        raise ValueError(f"{source} is no clone of github.com/{script.repository} at {script.commit}")
    target = pathlib.Path(folder) / "repository"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".git"))
    edited = target / script.edited
    edited.write_text(edited_text(script, edited.read_text()))
    return target / script.path


def write_data(place: pathlib.Path) -> None:
    """Random data where the scripts look for theirs: 256 digits beside the example's folder, a text in
    its own."""
    draw = random.Random(0)
    raw = place.parent.parent / "data/MNIST/raw"
    raw.mkdir(parents=True, exist_ok=True)
    for name in ("train", "t10k"):
        images = struct.pack(">4I", 0x803, 256, 28, 28) + draw.randbytes(256 * 28 * 28)
        labels = struct.pack(">2I", 0x801, 256) + bytes(draw.randrange(10) for _ in range(256))
        for kind, content in (("images-idx3", images), ("labels-idx1", labels)):
            (raw / f"{name}-{kind}-ubyte").write_bytes(content)
            (raw / f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(content))
    (place.parent / "input.txt").write_text("".join(draw.choices("abcdefghijklmnoGO ,!\n", k=20000)))


@contextlib.contextmanager
def script_place(place: pathlib.Path, repository: pathlib.Path, words: list[str]) -> Iterator[None]:
    """The process as the script's: its folder, its words, what it imports, and no output on stdout."""
    before = (os.getcwd(), sys.argv[:], sys.path[:])
    os.chdir(place.parent)
    sys.argv = [str(place), *words]
    sys.path[:0] = [str(place.parent), str(repository), str(pathlib.Path(__file__).parent)]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.chdir(before[0])
        sys.argv, sys.path[:] = before[1], before[2]


def run_script(place: pathlib.Path) -> None:
    """Up to where script_hooks ends it. Raises ValueError where it ends by itself."""
    import script_hooks

    try:
        runpy.run_path(str(place), run_name="__main__")
    except script_hooks.Reached:
        return
    raise ValueError(f"{place.name} ended without enough steps")
