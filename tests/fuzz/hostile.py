"""Hostile files of every kind that the program reads, each held to an answer or a refusal.

    python3 tests/fuzz/hostile.py PROGRAM [--mutations N] [--seed N] [--keep FOLDER] [--only WORD]

First the files that are written here: bombs, numbers at the ends of their types, broken encodings,
names that lead elsewhere, pipes and devices. Then N mutations of the repository's own files. Each run may
address 2 GB and take 5 s of the processor; it must end with exit code 0, 1 or 2. What does not is named,
kept, and makes the exit status 1. libFuzzer's targets (tests/fuzz/run.sh), which need clang, see more.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
ADDRESS_SPACE = 2 << 30
SECONDS = 5.0
PATIENCE = 120.0  # seconds by the clock, of a machine with other work
OF_ARCHITECTURES = 0.1  # the share of all changes to the configurations of tests/hf that is tried
SHOWN: list[bool] = []  # whether each outcome is printed


class Hostile(NamedTuple):
    """Files by name (a text or bytes), and the command; {} in it is the folder that they lie in."""

    name: str
    files: dict[str, bytes]
    command: str


def text(content: str) -> bytes:
    return content.encode("utf-8", "surrogatepass")


# ---- descriptions

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


# ---- cards, hosts, calibrations


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


# ---- Hugging Face folders

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 128,
    "torch_dtype": "float32",
    "tie_word_embeddings": False,
}
JSON_NUMBERS = (
    "0",
    "-1",
    "9223372036854775807",
    "1e308",
    "-1e308",
    "1e999",
    "NaN",
    "Infinity",
    "null",
    '"8"',
    "[]",
)


def configs() -> Iterator[Hostile]:
    def one(name: str, config: str, command: str = "check {}/config.json --gpu t4 --seq 16") -> Hostile:
        return Hostile(f"config {name}", {"config.json": text(config)}, command)

    for key in CONFIG:
        for number in JSON_NUMBERS:
            whole = json.dumps({**CONFIG, key: "@"}).replace('"@"', number)
            yield one(f"{key} {number}", whole)
            if random.random() < 0.2:
                yield one(
                    f"served {key} {number}",
                    whole,
                    "check {} --mode inference --context-length 64 --gpu t4",
                )
    whole = json.dumps(CONFIG)
    yield one("many layers", json.dumps({**CONFIG, "num_hidden_layers": 100_000}))
    yield one("repeated keys", whole[:-1] + ', "hidden_size": 32, "hidden_size": 16}')
    yield one("nesting", '{"a":' * 100_000)
    yield one("lists", "[" * 100_000)
    yield one("lone surrogate", whole.replace("llama", "\\ud800"))
    yield one("NUL", whole.replace("llama", "\\u0000"))
    yield one("long line", whole[:-1] + ', "a": "' + "x" * 100_000_000 + '"}')
    for path in sorted(REPOSITORY.glob("tests/hf/small-*/config.json")):  # every architecture's own keys
        given = json.loads(path.read_text())
        for key, value in given.items():
            for number in JSON_NUMBERS if isinstance(value, int) else ():
                if random.random() < OF_ARCHITECTURES:
                    changed = json.dumps({**given, key: "@"}).replace('"@"', number)
                    yield one(f"{path.parent.name} {key} {number}", changed)
    quantisations = (
        "gptq",
        "awq",
        "fp8",
        "bitsandbytes",
        "compressed-tensors",
        "mxfp4",
        "torchao",
        "",
        "\\u001b[31m",
    )
    for method in quantisations:
        for bits in ("0", "-8", "8", "9223372036854775807", "1e308", '"x"'):
            layout = f'{{"quant_method": "{method}", "bits": {bits}, "group_size": {bits}}}'
            yield one(f"quantised {method} {bits}", whole[:-1] + f', "quantization_config": {layout}}}')


def safetensors(header: bytes, length: int | None = None, after: int = 0) -> bytes:
    return (
        struct.pack("<Q", len(header) if length is None else length & (2**64 - 1))
        + header
        + b"\0" * after
    )


def weight_files() -> Iterator[Hostile]:
    config = text(json.dumps(CONFIG))

    def one(name: str, files: dict[str, bytes]) -> Hostile:
        return Hostile(f"weights {name}", {"config.json": config, **files}, "check {} --gpu t4 --seq 16")

    def tensor(shape: str, offsets: str, dtype: str = "F32") -> bytes:
        return text(f'{{"w": {{"dtype": "{dtype}", "shape": {shape}, "data_offsets": {offsets}}}}}')

    name = "model.safetensors"
    for length in (0, 1, 2**31, 2**63, 2**64 - 1, 100_000_000):
        yield one(f"header of {length}", {name: safetensors(b"{}", length)})
    big = "9223372036854775807"
    for shape in (
        "[]",
        "[0]",
        "[-1]",
        f"[{big}]",
        f"[{big},{big}]",
        "[65536,65536,65536,65536]",
        "[1e308]",
        '["x"]',
        "{}",
    ):
        yield one(f"shape {shape}", {name: safetensors(tensor(shape, "[0,4]"), after=4)})
    for offsets in (
        "[4,0]",
        "[-4,0]",
        f"[0,{big}]",
        f"[{big},{big}]",
        "[0]",
        "[]",
        "[0,4,8]",
        "[1e3,2e3]",
        "null",
    ):
        yield one(f"offsets {offsets}", {name: safetensors(tensor("[1]", offsets), after=4)})
    yield one("unknown dtype", {name: safetensors(tensor("[1]", "[0,4]", "\\u001b[31m"), after=4)})
    rows = ",".join(
        f'"t{i}":{{"dtype":"F32","shape":[1],"data_offsets":[{4 * i},{4 * i + 4}]}}'
        for i in range(1_000_000)
    )
    yield one("a million tensors", {name: safetensors(text("{" + rows + "}"), after=4_000_000)})
    same = ",".join('"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}' for _ in range(100_000))
    yield one("one name 100,000 times", {name: safetensors(text("{" + same + "}"), after=4)})
    wide = ",".join(["1"] * 1_000_000)
    yield one("a million axes", {name: safetensors(tensor(f"[{wide}]", "[0,4]"), after=4)})
    yield one("nesting", {name: safetensors(b'{"w":' * 100_000)})
    index = "model.safetensors.index.json"
    for shard in (
        "/dev/zero",
        "../x",
        "",
        ".",
        "..",
        "fifo",
        "device",
        "folder",
        "missing",
        "\\u0000",
        "a/b",
    ):
        yield one(f"index of {shard}", {index: text(f'{{"weight_map": {{"w": "{shard}"}}}}')})
    many = ",".join(f'"t{i}":"s{i}.safetensors"' for i in range(200_000))
    yield one("index of 200,000 shards", {index: text('{"weight_map":{' + many + "}}")})
    for counts in ((2**63, 0), (0, 2**63), (2**64 - 1, 2**64 - 1), (10**6, 10**6)):
        yield one(f"GGUF counts {counts}", {"m.gguf": b"GGUF" + struct.pack("<IQQ", 3, *counts)})
    key = struct.pack("<Q", 1) + b"k"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)
    for length in (2**31, 2**63, 2**64 - 1):
        yield one(f"GGUF text of {length}", {"m.gguf": head + key + struct.pack("<IQ", 8, length)})
        yield one(f"GGUF key of {length}", {"m.gguf": head + struct.pack("<Q", length)})
        for kind in (0, 8, 9):
            yield one(
                f"GGUF list {kind} of {length}",
                {"m.gguf": head + key + struct.pack("<IIQ", 9, kind, length)},
            )
    yield one(
        "GGUF nesting", {"m.gguf": head + key + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 100_000}
    )
    for axes, extent in ((4, 2**62), (2**32 - 1, 1), (4, 0), (4, 2**64 - 1), (0, 0)):
        one_tensor = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + key + struct.pack("<I", axes)
        one_tensor += struct.pack("<Q", extent) * min(axes, 100) + struct.pack("<IQ", 0, 2**63)
        yield one(f"GGUF tensor of {axes} axes of {extent}", {"m.gguf": one_tensor})


# ---- ONNX


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = text(value) if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def ints(name: str, values: list[int]) -> bytes:
    return field(5, field(1, name) + b"".join(field(8, value) for value in values) + field(20, 7))


def integer(name: str, value: int) -> bytes:
    return field(5, field(1, name) + field(3, value) + field(20, 2))


def node(
    kind: str, inputs: list[str], outputs: list[str], attributes: bytes = b"", domain: str = ""
) -> bytes:
    names = b"".join(field(1, each) for each in inputs) + b"".join(field(2, each) for each in outputs)
    return field(1, names + field(4, kind) + attributes + (field(7, domain) if domain else b""))


def tensor_of(
    name: str, dims: list[int], values: list[int] | None = None, kind: int = 7, extra: bytes = b""
) -> bytes:
    raw = b"" if values is None else field(9, b"".join(struct.pack("<q", value) for value in values))
    return b"".join(field(1, each) for each in dims) + field(2, kind) + field(8, name) + raw + extra


def value_info(name: str, dims: list[int | str], kind: int = 1) -> bytes:
    shape = b"".join(field(1, field(2 if isinstance(each, str) else 1, each)) for each in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def onnx(
    nodes: bytes,
    constants: dict[str, bytes] | None = None,
    dims: list[int | str] | None = None,
    more: bytes = b"",
    opset: int = 13,
) -> bytes:
    graph = nodes + field(2, "g")
    for each in (constants or {}).values():
        graph += field(5, each)
    graph += field(11, value_info("x", dims or ["N", 8])) + field(12, value_info("y", ["N", 8]))
    return field(1, 8) + field(7, graph) + field(8, field(2, opset)) + more


ENDS = [0, -1, 1, 2**31, 2**62, 2**63 - 1, -(2**63)]


def onnx_files() -> Iterator[Hostile]:
    def one(name: str, content: bytes) -> Hostile:
        return Hostile(f"ONNX {name}", {"m.onnx": content}, "check {}/m.onnx --gpu t4")

    def with_constant(kind: str, values: list[int], attributes: bytes = b"", outputs: int = 1) -> bytes:
        names = [f"y{i}" if i else "y" for i in range(outputs)]
        made = node(kind, ["x", "c"], names, attributes)
        return onnx(made, {"c": tensor_of("c", [len(values)], values)}, ["N", 3, 8, 8])

    for kind in (
        "Reshape",
        "Expand",
        "Tile",
        "Unsqueeze",
        "Squeeze",
        "ReduceSum",
        "Slice",
        "Pad",
        "Resize",
        "Split",
        "Gather",
        "OneHot",
        "TopK",
        "Upsample",
        "Transpose",
        "ConstantOfShape",
        "Range",
        "Add",
        "Div",
        "Mod",
        "Mul",
        "Sub",
        "Pow",
        "Where",
        "Concat",
        "CumSum",
        "GatherElements",
        "ScatterND",
        "MatMul",
        "Gemm",
    ):
        for end in ENDS:
            yield one(f"{kind} by {end}", with_constant(kind, [end] * 4))
            yield one(f"{kind} by one {end}", with_constant(kind, [end]))
    for kind, key in (
        ("Conv", "strides"),
        ("Conv", "dilations"),
        ("Conv", "pads"),
        ("MaxPool", "kernel_shape"),
        ("AveragePool", "strides"),
        ("MaxPool", "pads"),
        ("ConvTranspose", "output_padding"),
        ("Transpose", "perm"),
        ("Squeeze", "axes"),
        ("Split", "split"),
        ("ReduceMean", "axes"),
        ("Tile", "repeats"),
        ("Pad", "pads"),
        ("Slice", "starts"),
    ):
        for end in ENDS:
            for count in (1, 2, 4, 1000):
                made = node(
                    kind, ["x", "w"], ["y"], ints(key, [end] * count) + ints("kernel_shape", [3, 3])
                )
                yield one(
                    f"{kind} {key} {count} times {end}",
                    onnx(made, {"w": tensor_of("w", [4, 3, 3, 3], kind=1)}, ["N", 3, 8, 8]),
                )
    for kind, key in (
        ("Conv", "group"),
        ("Concat", "axis"),
        ("Flatten", "axis"),
        ("Softmax", "axis"),
        ("Gather", "axis"),
        ("Split", "axis"),
        ("DepthToSpace", "blocksize"),
        ("Shape", "start"),
        ("LSTM", "hidden_size"),
        ("LayerNormalization", "axis"),
        ("SpaceToDepth", "blocksize"),
    ):
        for end in ENDS:
            made = node(kind, ["x", "w", "w"], ["y"], integer(key, end))
            yield one(
                f"{kind} {key} {end}",
                onnx(made, {"w": tensor_of("w", [4, 3, 3, 3], kind=1)}, ["N", 3, 8, 8]),
            )
    add = node("Add", ["x", "w"], ["y"])
    for dims in ([2**63 - 1], [2**32, 2**32], [-1], [0], [1] * 100_000, [2**31] * 3, []):
        yield one(f"weights of {str(dims)[:40]}", onnx(add, {"w": tensor_of("w", dims, kind=1)}))
    for place in (
        "/dev/zero",
        "/dev/urandom",
        "../../etc/passwd",
        "/etc/passwd",
        "",
        "fifo",
        "device",
        "\0",
        "folder",
    ):
        for length in ("4", "-1", "9223372036854775807", "x"):
            outside = b"".join(
                field(13, field(1, key) + field(2, value))
                for key, value in (("location", place), ("offset", length), ("length", length))
            ) + field(14, 1)
            yield one(
                f"external {place!r} {length}",
                onnx(add, {"w": tensor_of("w", [8], kind=1, extra=outside)}),
            )
            shaped = node("Reshape", ["x", "s"], ["y"])
            yield one(
                f"external shape {place!r} {length}",
                onnx(shaped, {"s": tensor_of("s", [2], extra=outside)}),
            )
    inputs: tuple[list[int | str], ...] = (
        [0, 0],
        ["N", 0],
        ["N", -1],
        ["N", 2**63 - 1],
        ["N", 2**32, 2**32],
        [2**63 - 1],
        ["N"] * 1000,
    )
    for shape in inputs:
        yield one(f"input of {str(shape)[:40]}", onnx(node("Relu", ["x"], ["y"]), dims=shape))

    def function(name: str, nodes: bytes) -> bytes:
        body = b"".join(b"\x3a" + each[1:] for each in [nodes]) if nodes else b""
        return field(25, field(1, name) + field(4, "x") + field(5, "y") + body + field(10, "d"))

    call = node("f", ["x"], ["y"], domain="d")
    yield one("function of itself", onnx(call, more=function("f", call)))
    yield one(
        "functions in a ring",
        onnx(call, more=function("f", node("g", ["x"], ["y"], domain="d")) + function("g", call)),
    )
    chain = b"".join(
        function(f"f{i}", node(f"f{i + 1}", ["x"], ["y"], domain="d")) for i in range(20_000)
    )
    yield one("20,000 functions deep", onnx(node("f0", ["x"], ["y"], domain="d"), more=chain))
    for count in (100_000, 200_000):
        names = ["x", *(f"t{i}" for i in range(1, count)), "y"]
        yield one(
            f"{count} layers", onnx(b"".join(node("Relu", [a], [b]) for a, b in zip(names, names[1:])))
        )
    folded = b"".join(node("Add", [f"c{i}" if i else "c", "c"], [f"c{i + 1}"]) for i in range(100_000))
    yield one(
        "100,000 additions of constants",
        onnx(folded + node("Add", ["x", "c100000"], ["y"]), {"c": tensor_of("c", [1], [1])}),
    )
    doubled = b"".join(
        node("Concat", [f"c{i}" if i else "c"] * 2, [f"c{i + 1}"], integer("axis", 0)) for i in range(60)
    )
    yield one(
        "doubled 60 times",
        onnx(doubled + node("Reshape", ["x", "c60"], ["y"]), {"c": tensor_of("c", [1], [1])}),
    )
    yield one("many outputs", onnx(node("Split", ["x"], [f"y{i}" for i in range(200_000)])))
    yield one("many inputs", onnx(node("Concat", ["x"] * 300_000, ["y"], integer("axis", 1))))
    yield one("nested subgraphs", onnx(node("If", ["x"], ["y"], _nested_graphs(5_000))))
    yield one("truncated", onnx(add)[:-3])
    yield one("names of escapes", onnx(node("\x1b[31m\0", ["x"], ["y"])))
    yield one("groups", b"\x0b" * 100_000)


def _nested_graphs(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        inner = field(
            5, field(1, "then_branch") + field(6, field(1, field(4, "If") + inner)) + field(20, 5)
        )
    return inner


# ---- Keras


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


# ---- the hub's folder, and what is no regular file


def run(program: str, case: Hostile, folder: pathlib.Path) -> str | None:
    """Why the case is not as it should be."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CPU, (int(2 * SECONDS), int(2 * SECONDS)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    words = [program, *(word.replace("{}", str(folder)) for word in case.command.split())]
    environment = {**os.environ, "STOWAGE_NO_CACHE": "1", "HF_HOME": str(folder / "hub")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        ended = subprocess.run(
            words,
            preexec_fn=limit,
            capture_output=True,
            timeout=PATIENCE,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"still running after {PATIENCE:.0f} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if ended.returncode not in (0, 1, 2):
        return f"exit code {ended.returncode}: {ended.stderr[-300:].decode(errors='replace')}"
    output = ended.stdout + ended.stderr
    if SHOWN:
        lines = ended.stderr.decode(errors="replace").strip().splitlines() or ["-"]
        said = lines[0].replace(str(folder), "")[:150]
        print(f"{seconds:5.2f} s  {ended.returncode}  {case.name}: {said}")
    if b"\x1b" in output or b"\0" in output:
        return "a control byte is printed"
    if ended.returncode == 2 and not output.strip():
        return "refused without a word"
    if len(output) > 1_000_000:
        return f"{len(output):,} bytes are printed"
    return f"takes {seconds:.1f} s of the processor" if seconds > SECONDS else None


def special_files(folder: pathlib.Path) -> Iterator[Hostile]:
    """Pipes, devices, folders and sockets as every kind of file; `folder` is where they lie."""
    import socket

    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    (folder / "device").symlink_to("/dev/zero")
    (folder / "loop").symlink_to("loop")
    os_socket = socket.socket(socket.AF_UNIX)
    os_socket.bind(str(folder / "socket"))
    (folder / "m.yaml").write_bytes(description("  - linear: {name: l, features: 4}"))
    for kind in ("fifo", "folder", "device", "socket", "loop", "missing"):
        for command in (
            f"check {{}}/{kind} --gpu t4",
            f"summary {{}}/{kind}",
            f"batch {{}}/{kind} --gpu t4",
            f"lower {{}}/{kind} -o /dev/null",
            f"check {{}}/m.yaml --gpu {{}}/{kind}",
            f"plan {{}}/m.yaml --gpu t4 --host {{}}/{kind}",
            f"check {{}}/m.yaml --gpu t4 --calibration {{}}/{kind}",
            f"check {{}}/m.yaml --gpu t4 --cudnn {{}}/{kind}",
            f"check {{}}/m.yaml --gpu t4 --configs {{}}/{kind}",
            f"validate {{}}/{kind} --model-only",
            f"explain {{}}/{kind} l",
            f"diff {{}}/{kind} {{}}/{kind}",
            f"export {{}}/{kind} --to dot",
        ):
            yield Hostile(f"special {command}", {}, command)
        for place in ("refs/main", "snapshots", "snapshots/a", "snapshots/a/config.json", "refs"):
            hub = (
                folder / "hub" / "hub" / f"models--o--{kind}-{place.replace('/', '-').replace('.', '-')}"
            )
            path = hub / place
            path.parent.mkdir(parents=True, exist_ok=True)
            if place.startswith("snapshots"):
                (hub / "refs").mkdir(exist_ok=True)
                (hub / "refs" / "main").write_text("a")
            path.symlink_to(folder / kind)
            yield Hostile(f"special hub {kind} as {place}", {}, f"check hf:o/{hub.name[11:]} --gpu t4")
        for name in (
            "config.json",
            "model.safetensors",
            "model.safetensors.index.json",
            "m.gguf",
            "adapter_config.json",
        ):
            inside = folder / f"in-{kind}-{name}"
            inside.mkdir()
            if name != "config.json":
                (inside / "config.json").write_text(json.dumps(CONFIG))
            (inside / name).symlink_to(folder / kind)
            yield Hostile(f"special {kind} as {name}", {}, f"check {inside} --gpu t4 --seq 16")


# ---- mutations


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


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--mutations", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--only", default="", help="those whose name has this word")
    parser.add_argument("--show", action="store_true", help="print each outcome")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    random.seed(options.seed)
    if options.show:
        SHOWN.append(True)
    special = pathlib.Path(tempfile.mkdtemp())
    total, found = 0, 0
    kinds = (
        descriptions(),
        machines(),
        configs(),
        weight_files(),
        onnx_files(),
        keras_files(),
        special_files(special),
        mutations(options.mutations, options.seed),
    )
    for cases in kinds:
        for case in cases:
            if options.only not in case.name:
                continue
            total += 1
            folder = special if case.name.startswith("special") else pathlib.Path(tempfile.mkdtemp())
            why = run(program, case, folder)
            if why is not None:
                found += 1
                print(f"{case.name}: {why}", flush=True)
                if options.keep and folder != special:
                    shutil.copytree(folder, options.keep / f"{found}")
                    continue
            if folder != special:
                shutil.rmtree(folder)
    shutil.rmtree(special)
    print(f"{total} hostile inputs, seed {options.seed}: {found} not as they should be")
    return 1 if found or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
