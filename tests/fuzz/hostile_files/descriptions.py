"""Descriptions of models, and the files of cards, hosts and calibrations."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hostile_files.case import REPOSITORY, Hostile, text

MODEL = """model: m
inputs:
  x: {shape: %(shape)s}
  label: {shape: [batch], dtype: int64}
layers:
%(layers)s
loss:
  cross_entropy: {from: [%(last)s, label]}
"""

NUMBERS = (
    "0 -1 1 2147483648 4294967296 9223372036854775807 9223372036854775808 -9223372036854775808 "
    "1000000000000000000000000 1e308 -1e308 1e400 nan .nan inf .inf -.inf 0x10 010 1.5 true ~ ''"
).split()


def description(layers: str, shape: str = "[batch, 8]", last: str = "l") -> bytes:
    return text(MODEL % {"shape": shape, "layers": layers, "last": last})


def descriptions() -> Iterator[Hostile]:
    def one(name: str, content: bytes) -> Hostile:
        return Hostile(f"description {name}", {"m.yaml": content}, "check {}/m.yaml --gpu t4")

    plain = description("  - linear: {name: l, features: 4}")
    for number in NUMBERS:
        yield one(f"features {number}", description(f"  - linear: {{name: l, features: {number}}}"))
        yield one(
            f"repeat {number}", description(f"  - linear: {{name: l, features: 4, repeat: {number}}}")
        )
        yield one(
            f"shape {number}", description("  - linear: {name: l, features: 4}", f"[batch, {number}]")
        )
        yield one(
            f"stride {number}",
            description(
                f"  - conv2d: {{name: c, channels: 4, kernel: 3, stride: {number}}}\n  - flatten\n"
                "  - linear: {name: l, features: 4}",
                "[batch, 3, 8, 8]",
            ),
        )
        yield one(
            f"kernel {number}",
            description(
                f"  - max_pool2d: {{name: c, kernel: {number}, padding: {number}}}\n  - flatten\n"
                "  - linear: {name: l, features: 4}",
                "[batch, 3, 8, 8]",
            ),
        )
    aliases = "\n".join(f"b{i}: &b{i} [{', '.join([f'*b{i - 1}'] * 10)}]" for i in range(1, 12))
    yield one("alias bomb", text(f"b0: &b0 [x]\n{aliases}\n") + plain)
    yield one("flow nesting", text("model: " + "[" * 200_000))
    yield one("block nesting", text("".join("  " * i + "a:\n" for i in range(2_000))))
    yield one("long line", text("model: " + "x" * 100_000_000))
    yield one("long line within the limit", text("model: " + "x" * 16_000_000))
    yield one("many keys", text("\n".join(f"k{i}: 1" for i in range(900_000))))
    yield one(
        "many layers",
        description("\n".join(f"  - relu: {{name: r{i}}}" for i in range(200_000)), last="r1"),
    )
    yield one("a list of 1 million", text("model: [" + "1," * 1_000_000 + "]"))
    yield one("many anchors", text("\n".join(f"k{i}: &a{i} 1" for i in range(300_000))))
    yield one("UTF-16", plain.decode().encode("utf-16"))
    yield one("UTF-32", plain.decode().encode("utf-32"))
    yield one("UTF-8 with BOM", b"\xef\xbb\xbf" + plain)
    yield one("NUL bytes", plain.replace(b"features", b"fea\0tures"))
    yield one("NUL alone", b"\0" * 1000)
    yield one("lone surrogate", plain.replace(b"name: l", text("name: \ud800")))
    yield one("escaped surrogate", plain.replace(b"name: l", b'name: "\\ud800"'))
    yield one("control bytes in a name", plain.replace(b"name: l", b'name: "\\e[31m\\x00"'))
    yield one("wide ranges", plain.replace(b"model: m", b"model: m\nsymbols: {a: 9223372036854775807}"))
    nested = "(" * 100_000 + "8" + ")" * 100_000
    yield one(
        "deep expression", description("  - linear: {name: l, features: 4}", f'[batch, "{nested}"]')
    )
    products = " * ".join(["9223372036854775807"] * 50)
    yield one(
        "overflowing expression",
        description("  - linear: {name: l, features: 4}", f'[batch, "{products}"]'),
    )
    for word in ("batch * batch", "8 / 0", "8 % 0", "-9223372036854775808 / -1", "batch / 0", "1 << 70"):
        yield one(
            f"expression {word}", description("  - linear: {name: l, features: 4}", f'[batch, "{word}"]')
        )


def machines() -> Iterator[Hostile]:
    model = {"m.yaml": description("  - linear: {name: l, features: 4}")}
    card = (REPOSITORY / "configs/gpus/a100-pcie-40gb.yaml").read_text()
    host = next((REPOSITORY / "configs/hosts").glob("*.yaml")).read_text()
    for number in NUMBERS:
        for kind, whole, command in (
            ("card", card, "check {}/m.yaml --gpu {}/f.yaml"),
            ("host", host, "plan {}/m.yaml --gpu t4 --host {}/f.yaml"),
        ):
            for at, row in enumerate(whole.splitlines()):
                if ":" not in row or row.lstrip().startswith("#") or random.random() > 0.15:
                    continue
                lines = whole.splitlines()
                lines[at] = f"{row.split(':')[0]}: {number}"
                yield Hostile(
                    f"{kind} {lines[at].strip()}", {**model, "f.yaml": text("\n".join(lines))}, command
                )
    for content in ("{}", "[]", "null", '{"version": 1e999}', '{"a": ' * 5000, '"' + "x" * 900_000):
        yield Hostile(
            f"calibration {content[:20]}",
            {**model, "c.json": text(content)},
            "check {}/m.yaml --gpu t4 --calibration {}/c.json",
        )
