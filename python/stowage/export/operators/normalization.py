"""Normalizations. A module in training mode normalizes a batch norm by the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..layers import Conversion, Unsupported, rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..capture import Operation, Value
    from ..sizes import Dimension


@rule("batch_norm")
def batch_norm(c: Conversion, op: Operation, input: Value, weight: Value | None, bias: Value | None,
               running_mean: Value | None, running_var: Value | None, training: bool,
               momentum: float, eps: float, cudnn_enabled: bool) -> None:
    computed = [v for v in (weight, bias) if v is not None and c.real(v).kind != "parameter"]
    if computed:
        if running_mean is not None or len(computed) != sum(v is not None for v in (weight, bias)):
            raise Unsupported("aten.batch_norm with one of weight and bias computed")
        c.emit("batch_norm", [input, *computed], op.outputs,
               {"eps": eps, "momentum": momentum, "affine": False, "track_running_stats": False,
                "training": bool(training)})
        return
    for buffer in (running_mean, running_var):
        if buffer is not None:
            c.used_buffers.add(buffer)
    c.emit("batch_norm", [input], op.outputs,
           {"eps": eps, "momentum": momentum, "affine": weight is not None,
            "track_running_stats": running_mean is not None, "training": bool(training),
            **({"bias": False} if weight is not None and bias is None else {})},
           [("weight", weight), ("bias", bias)])


@rule("layer_norm")
def layer_norm(c: Conversion, op: Operation, input: Value, normalized_shape: Sequence[Dimension],
               weight: Value | None, bias: Value | None, eps: float, cudnn_enable: bool) -> None:
    c.emit("layer_norm", [input], op.outputs,
           {"axes": len(normalized_shape), "eps": eps, "affine": weight is not None,
            "bias": weight is None or bias is not None}, [("weight", weight), ("bias", bias)])


@rule("group_norm")
def group_norm(c: Conversion, op: Operation, input: Value, num_groups: int, weight: Value | None,
               bias: Value | None, eps: float, cudnn_enabled: bool) -> None:
    without_bias = weight is not None and bias is None
    c.emit("group_norm", [input], op.outputs,
           {"groups": num_groups, "eps": eps, "affine": weight is not None,
            **({"bias": False} if without_bias else {})},
           [("weight", weight), ("bias", bias)])


@rule("instance_norm")
def instance_norm(c: Conversion, op: Operation, input: Value, weight: Value | None,
                  bias: Value | None, running_mean: Value | None, running_var: Value | None,
                  use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool) -> None:
    for buffer in (running_mean, running_var):
        if buffer is not None:
            c.used_buffers.add(buffer)
    c.emit("instance_norm", [input], op.outputs,
           {"eps": eps, "momentum": momentum, "affine": weight is not None,
            "track_running_stats": running_mean is not None},
           [("weight", weight), ("bias", bias)])


@rule("rms_norm")
def rms_norm(c: Conversion, op: Operation, input: Value, normalized_shape: Sequence[Dimension],
             weight: Value | None, eps: float | None) -> None:
    c.emit("rms_norm", [input], op.outputs,
           {"axes": len(normalized_shape), "eps": 1.1920928955078125e-07 if eps is None else eps,
            "affine": weight is not None}, [("weight", weight)])
