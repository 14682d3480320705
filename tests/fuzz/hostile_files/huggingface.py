"""Folders of Hugging Face: configurations, safetensors and GGUF files."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator

from hostile_files.case import REPOSITORY, Hostile, text

OF_ARCHITECTURES = 0.1  # the share of all changes to the configurations of tests/hf that is tried

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
