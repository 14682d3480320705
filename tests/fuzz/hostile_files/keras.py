"""Keras' JSON."""

from __future__ import annotations

from collections.abc import Iterator

from hostile_files.case import REPOSITORY, Hostile, text
from hostile_files.huggingface import JSON_NUMBERS


def keras_files() -> Iterator[Hostile]:
    seed = (REPOSITORY / "tests/keras/cnn.json").read_text()

    def one(name: str, content: str) -> Hostile:
        return Hostile(f"Keras {name}", {"m.json": text(content)}, "check {}/m.json --gpu t4")

    for number in JSON_NUMBERS:
        at = 0
        while (at := seed.find("[", at + 1)) > 0:
            end = seed.find("]", at)
            inside = seed[at + 1 : end]
            if inside and all(part.strip().isdigit() for part in inside.split(",")):
                yield one(f"{number} at {at}", seed[: at + 1] + number + seed[end:])
    yield one("nesting", seed[:-2] + ', "a": ' + "[" * 50_000)
