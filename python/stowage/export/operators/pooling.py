"""Pooling and changes of extent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..layers import Conversion, Number, Numbers, Unsupported, rule
from .products import filled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..capture import Operation, Value


@rule("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(c: Conversion, op: Operation, self: Value, kernel_size: Numbers, stride: Numbers,
             padding: Numbers, dilation: Numbers, ceil_mode: bool) -> None:
    axes = int(op.name[-2])
    c.emit(op.name, [self], op.outputs,
           {"kernel": filled(kernel_size, axes), "stride": filled(stride or kernel_size, axes),
            "padding": filled(padding, axes), "dilation": filled(dilation, axes),
            "ceil_mode": ceil_mode})


@rule("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(c: Conversion, op: Operation, self: Value, kernel_size: Numbers, stride: Numbers,
             padding: Numbers, ceil_mode: bool, count_include_pad: bool,
             divisor_override: int | None = None) -> None:
    if divisor_override is not None:
        raise Unsupported(f"aten.{op.name} with divisor_override")
    axes = int(op.name[-2])
    c.emit(op.name, [self], op.outputs,
           {"kernel": filled(kernel_size, axes), "stride": filled(stride or kernel_size, axes),
            "padding": filled(padding, axes), "ceil_mode": ceil_mode,
            "count_include_pad": count_include_pad})


@rule("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
      "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_pool(c: Conversion, op: Operation, self: Value, output_size: Numbers) -> None:
    c.emit(op.name, [self], op.outputs[:1], {"size": filled(output_size, int(op.name[-2]))})


UPSAMPLING = {"upsample_nearest1d": "nearest", "upsample_nearest2d": "nearest",
              "upsample_nearest3d": "nearest", "upsample_linear1d": "linear",
              "upsample_bilinear2d": "bilinear", "upsample_bicubic2d": "bicubic",
              "upsample_trilinear3d": "trilinear"}


@rule(*UPSAMPLING)
def upsample(c: Conversion, op: Operation, output_size: Any,
             scale_factors: Sequence[float] | None = None, align_corners: bool = False,
             **source: Any) -> None:
    value = source.get("input", source.get("self"))
    attributes = {"mode": UPSAMPLING[op.name], "align_corners": bool(align_corners)}
    if scale_factors and len(set(scale_factors)) == 1:
        attributes["scale"] = scale_factors[0]
    else:
        attributes["size"] = list(op.outputs[0].shape[2:])
    c.emit("upsample", [value], op.outputs, attributes)


@rule("pixel_shuffle")
def pixel_shuffle(c: Conversion, op: Operation, self: Value, upscale_factor: int) -> None:
    c.emit("pixel_shuffle", [self], op.outputs, {"factor": upscale_factor})


@rule("pixel_unshuffle")
def pixel_unshuffle(c: Conversion, op: Operation, self: Value, downscale_factor: int) -> None:
    c.emit("pixel_unshuffle", [self], op.outputs, {"factor": downscale_factor})


@rule("pad")
def pad(c: Conversion, op: Operation, self: Value, pad: Sequence[int], mode: str,
        value: Number | None) -> None:
    """PyTorch lists pairs from the last axis on; the catalogue has an entry an axis, in order."""
    before, after = list(pad[0::2])[::-1], list(pad[1::2])[::-1]
    c.emit("pad", [self], op.outputs,
           {"before": before, "after": after, "mode": mode, "value": value or 0})


@rule("constant_pad_nd")
def constant_pad(c: Conversion, op: Operation, self: Value, pad: Sequence[int],
                 value: Number) -> None:
    globals()["pad"](c, op, self, pad, "constant", value)
