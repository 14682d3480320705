"""ONNX files, written field by field."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hostile_files.case import Hostile, text


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
