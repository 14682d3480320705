"""Mutations of the repository's own files."""

from __future__ import annotations

import pathlib
import random
from collections.abc import Iterator

from hostile_files.case import REPOSITORY, Hostile
from hostile_files.descriptions import NUMBERS
from hostile_files.onnx import ENDS, varint


def mutated(content: bytes, chance: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        if not data:
            break
        at = chance.randrange(len(data))
        match chance.randrange(6):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                del data[at : at + chance.choice((1, 2, 8, 64))]
            case 2:
                data[at:at] = data[at : at + chance.choice((1, 8, 64, 512))]
            case 3:
                data[at:at] = varint(chance.choice(ENDS))
            case 4:  # a number
                digits = [i for i in range(len(data)) if 48 <= data[i] <= 57]
                if digits:
                    begin = end = chance.choice(digits)
                    while end < len(data) and 48 <= data[end] <= 57:
                        end += 1
                    data[begin:end] = chance.choice(NUMBERS).encode()
            case _:
                other = chance.randrange(len(data))
                data[at : at + 16] = data[other : other + 16]
    return bytes(data)


def mutations(count: int, seed: int) -> Iterator[Hostile]:
    chance = random.Random(seed)
    seeds: list[tuple[pathlib.Path, str, str]] = []
    for pattern, name, command in (
        ("tests/onnx/*.onnx", "m.onnx", "check {}/m.onnx --gpu t4"),
        ("tests/keras/*.json", "m.json", "check {}/m.json --gpu t4"),
        ("tests/hf/small-*/config.json", "config.json", "check {}/config.json --gpu t4 --seq 16"),
        ("tests/plans/plan-*/*.yaml", "p.yaml", "validate {}/p.yaml --model-only"),
        ("tests/plans/step-*/*.json", "s.json", "check {}/s.json --gpu rtx3090"),
        ("tests/recorded/*.json", "s.json", "check {}/s.json --gpu rtx3090"),
        ("configs/models/*.yaml", "m.yaml", "check {}/m.yaml --gpu t4"),
    ):
        seeds += [
            (path, name, command)
            for path in sorted(REPOSITORY.glob(pattern))
            if path.stat().st_size < 100_000
        ]
    for i in range(count):
        path, name, command = chance.choice(seeds)
        content = mutated(path.read_bytes(), chance)
        yield Hostile(f"mutation {i} of {path.relative_to(REPOSITORY)}", {name: content}, command)
