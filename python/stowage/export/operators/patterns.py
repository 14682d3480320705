"""What PyTorch code composes of several operations and the catalogue has as one layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..capture import Operation, Value
from ..layers import COMPOSED, Conversion, Unsupported, rule
from ..sizes import fixed
from .indexing import picked

if TYPE_CHECKING:
    from collections.abc import Sequence


def skip_operation(c: Conversion, operation: Operation) -> Value:
    c.skipped.add(operation)
    return operation.outputs[0]


@rule("bernoulli_")
def drop_path(c: Conversion, op: Operation, self: Value, p: float, generator: Any = None) -> None:
    """Stochastic depth: a mask of [batch, 1, ...], divided by the share that stays, times x."""
    mask = op.outputs[0]
    reader = c.only_reader(mask)
    if reader is not None and reader.name in ("div_", "div"):
        mask = skip_operation(c, reader)
        reader = c.only_reader(mask)
    if reader is None or reader.name not in ("mul", "mul_") or any(
            n != 1 for n in mask.shape[1:]) or not isinstance(p, float):
        raise Unsupported("aten.bernoulli_")
    a, b = reader.arguments["self"], reader.arguments["other"]
    output = skip_operation(c, reader)
    kind = "torchvision" if op.scopes and op.scopes[-1][1] == "StochasticDepth" else "timm"
    c.emit("drop_path", [b if a is mask else a], [output], {"p": round(1 - p, 12), "as": kind})


def window_of(positions: int, rows: int) -> list[int] | None:
    """Rows and columns of a window with so many positions, whose table has `rows` rows."""
    both = (4 * positions + 1 - rows) / 2  # height + width
    root = both * both - 4 * positions
    if root < 0:
        return None
    height = (both - math.sqrt(root)) / 2
    width = both - height
    return [round(height), round(width)] if height == int(height) else None


def forget_index(c: Conversion, value: Value) -> Value:
    """Takes back the layers that made the index of buffers: the bias keeps the buffer itself.
    Returns the buffer."""
    source = c.real(value)
    while source.kind == "result" and source.producer is not None:
        for layer in [x for x in c.layers if source in x.outputs]:
            c.layers.remove(layer)
        inputs = source.producer.inputs()
        if not inputs:
            break
        source = c.real(inputs[0])
    if source.kind != "buffer":
        raise Unsupported("aten.index of a parameter by a computed index")
    made = c.made.pop(source, None)
    c.layers[:] = [x for x in c.layers if made is None or made not in x.outputs]
    c.used_buffers.add(source)
    return source


def bias_of_windows(c: Conversion, op: Operation, table: Value,
                    indices: Sequence[Value]) -> tuple[int, list[int], Value, list[Operation]] | None:
    """(heads, window, the bias, the operations up to it) where the index is Swin's, else None."""
    if table.kind != "parameter" or len(indices) != 1 or len(table.shape) != 2:
        return None
    rows, heads = fixed(table.shape)
    value, path = op.outputs[0], []
    while len(value.shape) != 4 or value.shape[:2] != (1, heads):
        reader = c.only_reader(value)
        if reader is None or reader.name not in ("view", "reshape", "permute", "contiguous",
                                                 "unsqueeze", "transpose"):
            return None
        path.append(reader)
        value = reader.outputs[0]
    window = window_of(fixed(value.shape)[-1], rows)
    return None if window is None else (heads, window, value, path)


@rule("index")
def index(c: Conversion, op: Operation, self: Value, indices: Sequence[Value]) -> None:
    """Swin's learned bias by relative position, looked up, turned and given a batch of one."""
    table = c.real(self)
    found = bias_of_windows(c, op, table, indices)
    if found is None:
        picked(c, op, self, indices)
        return
    heads, window, value, path = found
    buffer = forget_index(c, indices[0])
    c.skipped.update(path)
    c.emit("relative_position_bias", [], [value],
           {"heads": heads, "window": window, "flat_index": len(buffer.shape) == 1},
           [("weight", table)])


@rule("zero_")
def zeros_in_a_part(c: Conversion, op: Operation, self: Value) -> None:
    """x[a:b].zero_() of a copy, as Swin V2 clears the keys' bias: the parts are joined anew."""
    part = c.real(self)
    cut = next((x for x in c.layers if part in x.outputs), None)
    if cut is None or cut.operator != "slice" or cut.attributes["axis"] != 0 or len(part.shape) != 1:
        raise Unsupported("aten.zero_")
    whole, start = cut.inputs[0], cut.attributes["start"]
    c.layers.remove(cut)
    end, size = start + fixed(part.shape)[0], fixed(whole.shape)[0]
    pieces = []
    for low, high in ((0, start), (end, size)):
        piece = c.intermediate((high - low,), whole)
        if low < high:
            attributes = {"axis": 0, "start": low, "step": 1}
            c.emit("slice", [whole], [piece],
                   {**attributes, **({} if high == size else {"length": high - low})})
            pieces.append(piece)
    zeros, joined = c.intermediate(part.shape, whole), c.intermediate(whole.shape, whole)
    c.emit("constant", [], [zeros], {"shape": list(part.shape), "dtype": whole.dtype})
    pieces.insert(1 if start else 0, zeros)
    c.emit("concat", pieces, [joined], {"axis": 0})
    c.same(whole, joined)


def operations_of_scope(c: Conversion, first: Operation) -> list[Operation]:
    """The operations from this one on that run in the same call of its module."""
    found = []
    for op in c.captured.operations[c.captured.operations.index(first):]:
        if op.scopes[:len(first.scopes)] != first.scopes:
            break
        found.append(op)
    return found


def skip_composition(c: Conversion, operations: Sequence[Operation]) -> list[Value]:
    """Marks the operations as covered by one layer; returns the outputs, which are the last one's.

    A cast to the type that its input has returns the input itself: torch.export lets later readers,
    outside the module too, read the cast, so that its output stays another name of its input.
    """
    c.skipped.update(operations)
    for op in operations[:-1]:
        source = next(iter(op.inputs()), None)
        if op.name in ("to", "_to_copy") and source and source.dtype == op.outputs[0].dtype:
            c.same(op.outputs[0], c.real(source))
    return operations[-1].outputs


def composed_gelu(c: Conversion, op: Operation) -> bool:
    """GELU's tanh form as transformers' NewGELUActivation writes it out."""
    if not op.scopes or op.scopes[-1][1] != "NewGELUActivation":
        return False
    ops = operations_of_scope(c, op)
    source = next(v for v in op.inputs() if isinstance(v, Value))
    if not {"tanh", "pow"} <= {o.name for o in ops}:
        return False
    c.emit("gelu", [source], skip_composition(c, ops), {"approximate": "tanh_composite"})
    return True


def composed_rms_norm(c: Conversion, op: Operation) -> bool:
    """A norm by the root mean square in single operations: x to float32, its squares' mean."""
    if not op.scopes or not op.scopes[-1][1].endswith("RMSNorm") and op.scopes[-1][1] not in (
            "T5LayerNorm",):
        return False
    ops = operations_of_scope(c, op)
    names = [o.name for o in ops]
    if "rsqrt" not in names or "mean" not in names:
        return False
    source = c.real(next(v for v in op.inputs() if isinstance(v, Value) and v.kind == "result"))
    weights = [v for o in ops for v in o.inputs() if v.kind == "parameter"]
    eps = next(o.arguments["other"] for o in ops if o.name == "add")
    if len(weights) != 1 or not isinstance(eps, float):
        return False
    t5 = op.scopes[-1][1] == "T5LayerNorm"
    c.emit("rms_norm", [source], skip_composition(c, ops),
           {"axes": 1, "eps": eps, "affine": True,
            "implementation": "composite_t5" if t5 else "composite"}, [("weight", weights[0])])
    return True


COMPOSED += [composed_gelu, composed_rms_norm]
