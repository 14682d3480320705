"""Convolutions, pooling and resampling in one to three spatial dimensions."""

import torch
import torch.nn.functional as functional

from kernel_call import Call, gradients, one_input


def convolution(name, shape, filters, kernel, groups=1, bias=True, output_padding=None, **settings):
    """`settings`: stride, padding, dilation, a number an axis. Transposed with output_padding."""
    transposed = output_padding is not None
    rank = len(kernel)
    kind = "transposed_convolution" if transposed else "convolution"
    function = getattr(functional, f"conv_transpose{rank}d" if transposed else f"conv{rank}d")
    if transposed:
        settings["output_padding"] = output_padding
    attributes = {**settings, "groups": groups}
    w_shape = ((shape[1], filters // groups) if transposed else (filters, shape[1] // groups))

    def build(draw):
        tensors = [draw.normal(*shape), draw.normal(*w_shape, *kernel)]
        if bias:
            tensors.append(draw.normal(filters))
        y, dy, found = gradients(lambda *t: function(*t, **settings, groups=groups), tensors,
                                 lambda y: draw.normal(*y.shape))
        reads = ["x", "w", "b"][:len(tensors)]
        return ({**dict(zip(reads, tensors)), "y": y, "dy": dy,
                 **dict(zip(["dx", "dw", "db"], found))},
                [Call(f"{kind}_forward", attributes, reads, ["y"]),
                 Call(f"{kind}_backward_data", attributes, ["dy", "w"], ["dx"]),
                 Call(f"{kind}_backward_filter", attributes, ["x", "dy"], ["dw"]),
                 *([Call("channel_sum", {"axis": 1}, ["dy"], ["db"])] if bias else [])])
    return f"{kind} {rank}d {name}", build


CONVOLUTIONS = [
    convolution("plain", (2, 2, 6), 3, (3,)),
    convolution("all settings", (1, 4, 9), 2, (3,), 2, stride=[2], padding=[2], dilation=[2]),
    convolution("depthwise", (1, 3, 5), 3, (3,), 3, bias=False, padding=[1]),
    convolution("rows unused at the border", (1, 2, 6), 2, (3,), stride=[2]),
    convolution("dilation and groups", (1, 2, 6, 6), 4, (3, 2), 2, dilation=[2, 3], padding=[1, 2]),
    convolution("plain", (1, 2, 3, 3, 3), 2, (2, 2, 2)),
    convolution("all settings", (1, 2, 4, 4, 3), 2, (3, 2, 2), 2, stride=[2, 1, 2],
                padding=[1, 0, 1], dilation=[1, 2, 1]),
    convolution("depthwise", (1, 2, 3, 2, 3), 2, (2, 2, 2), 2, bias=False),
    convolution("k2 s2", (1, 3, 3), 2, (2,), stride=[2], output_padding=[0]),
    convolution("all settings", (1, 4, 4), 2, (3,), 2, stride=[3], padding=[1], dilation=[2],
                output_padding=[2]),
    convolution("output padding below the dilation", (1, 2, 4), 2, (3,), stride=[1], padding=[1],
                dilation=[2], output_padding=[1]),
    convolution("dilation, output padding", (1, 2, 3, 3), 2, (3, 3), stride=[2, 2],
                padding=[1, 2], dilation=[1, 2], output_padding=[1, 0]),
    convolution("depthwise", (1, 3, 3, 3), 3, (2, 2), 3, bias=False, stride=[2, 2],
                output_padding=[0, 0]),
    convolution("k2 s2", (1, 2, 2, 2, 2), 2, (2, 2, 2), stride=[2, 2, 2],
                output_padding=[0, 0, 0]),
    convolution("all settings", (1, 4, 2, 2, 2), 2, (3, 2, 2), 2, bias=False, stride=[2, 1, 2],
                padding=[1, 0, 1], dilation=[1, 2, 1], output_padding=[1, 1, 0]),
]


def max_pool(name, shape, kernel, stride, padding, dilation=None, ceil_mode=False):
    rank = len(kernel)
    dilation = dilation or [1] * rank
    attributes = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation,
                  "ceil_mode": ceil_mode}
    function = getattr(functional, f"max_pool{rank}d")
    run = lambda t, **more: function(t, kernel, stride, padding, dilation, ceil_mode, **more)
    return (f"max_pool {rank}d {name}",
            one_input("max_pool_forward", "max_pool_backward", attributes, shape, run, "x y",
                      lambda x: {"indices": run(x, return_indices=True)[1]}))


def avg_pool(name, shape, kernel, stride, padding, ceil_mode=False, count_include_pad=True):
    rank = len(kernel)
    attributes = {"kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil_mode,
                  "count_include_pad": count_include_pad}
    function = getattr(functional, f"avg_pool{rank}d")
    return (f"avg_pool {rank}d {name}",
            one_input("avg_pool_forward", "avg_pool_backward", attributes, shape,
                      lambda t: function(t, kernel, stride, padding, ceil_mode, count_include_pad),
                      ""))


def adaptive(kind, shape, size):
    rank = len(size)
    function = getattr(functional, f"adaptive_{kind}_pool{rank}d")
    extra = None
    if kind == "max":
        extra = lambda x: {"indices": function(x, size, return_indices=True)[1]}
    return (f"adaptive_{kind}_pool {rank}d {list(shape)} to {size}",
            one_input(f"adaptive_{kind}_pool_forward", f"adaptive_{kind}_pool_backward", {}, shape,
                      lambda t: function(t, size), "x y" if kind == "max" else "", extra))


def upsample(mode, shape, size, align_corners=False):
    rank = len(size)
    theirs = {"nearest": "nearest", "cubic": "bicubic",
              "linear": ["linear", "bilinear", "trilinear"][rank - 1]}[mode]
    attributes = {"mode": mode, "align_corners": align_corners}
    corners = None if mode == "nearest" else align_corners
    return (f"upsample {mode} {list(shape)} to {size}{', corners' if align_corners else ''}",
            one_input("upsample_forward", "upsample_backward", attributes, shape,
                      lambda t: functional.interpolate(t, size, mode=theirs, align_corners=corners),
                      ""))


def upsample_by(mode, shape, scale):
    """By a number, which also says where the result's positions lie."""
    rank = len(shape) - 2
    theirs = {"nearest": "nearest", "cubic": "bicubic",
              "linear": ["linear", "bilinear", "trilinear"][rank - 1]}[mode]
    return (f"upsample {mode} {list(shape)} by {scale}",
            one_input("upsample_forward", "upsample_backward",
                      {"mode": mode, "align_corners": False, "scale": scale}, shape,
                      lambda t: functional.interpolate(t, scale_factor=scale, mode=theirs), ""))


CASES = [
    max_pool("k2 s2", (1, 2, 5), [2], [2], [0]),
    max_pool("all settings", (1, 2, 8), [3], [2], [1], [2], True),
    max_pool("dilation", (1, 1, 6, 6), [2, 3], [1, 2], [1, 1], [3, 2]),
    max_pool("ceil mode and padding", (1, 1, 5, 6), [3, 2], [2, 3], [1, 1], None, True),
    max_pool("k2 s1", (1, 1, 3, 3, 3), [2, 2, 2], [1, 1, 1], [0, 0, 0]),
    max_pool("all settings", (1, 1, 4, 5, 4), [2, 3, 2], [2, 2, 1], [1, 1, 0], [2, 1, 2], True),
    avg_pool("k2 s2", (1, 2, 5), [2], [2], [0]),
    avg_pool("ceil mode and padding", (1, 2, 6), [3], [2], [1], True),
    avg_pool("ceil mode, padding not counted", (1, 2, 6), [3], [2], [1], True, False),
    avg_pool("ceil mode and padding", (1, 1, 5, 6), [3, 2], [2, 3], [1, 1], True),
    avg_pool("ceil mode, padding not counted", (1, 1, 5, 6), [3, 2], [2, 3], [1, 1], True, False),
    avg_pool("k2 s1", (1, 1, 3, 3, 3), [2, 2, 2], [1, 1, 1], [0, 0, 0]),
    avg_pool("ceil mode and padding", (1, 1, 4, 5, 4), [2, 3, 2], [2, 2, 1], [1, 1, 0], True),
    avg_pool("padding not counted", (1, 1, 4, 5, 4), [2, 3, 2], [2, 2, 1], [1, 1, 0], False, False),
    adaptive("avg", (1, 2, 7), [3]), adaptive("avg", (1, 1, 3, 5, 4), [2, 3, 4]),
    adaptive("avg", (1, 1, 2, 3), [4, 5]),
    adaptive("max", (1, 2, 7), [3]), adaptive("max", (1, 2, 5, 6), [3, 4]),
    adaptive("max", (1, 1, 5, 4), [1, 1]), adaptive("max", (1, 1, 3, 5, 4), [2, 3, 4]),
    upsample("nearest", (1, 2, 3), [6]), upsample("nearest", (1, 1, 3, 4), [5, 4]),
    upsample("nearest", (1, 1, 2, 3, 2), [4, 3, 5]), upsample("nearest", (1, 1, 6, 5), [3, 2]),
    upsample("linear", (1, 2, 4), [7]), upsample("linear", (1, 2, 4), [7], True),
    upsample("linear", (1, 1, 3, 4), [6, 8]), upsample("linear", (1, 1, 3, 4), [5, 7], True),
    upsample("linear", (1, 1, 6, 5), [3, 2]), upsample("linear", (1, 1, 3, 4), [1, 1], True),
    upsample("linear", (1, 1, 2, 3, 2), [3, 6, 4]),
    upsample("linear", (1, 1, 2, 3, 2), [3, 5, 4], True),
    upsample_by("nearest", (1, 1, 5), 1.5), upsample_by("nearest", (1, 1, 3, 5), 0.6),
    upsample_by("linear", (1, 1, 5), 1.5), upsample_by("linear", (1, 1, 3, 3), 1.7),
    upsample_by("cubic", (1, 1, 3, 5), 1.3), upsample_by("linear", (1, 1, 2, 3, 3), 2.0),
    upsample("cubic", (1, 1, 3, 4), [6, 8]), upsample("cubic", (1, 1, 3, 4), [5, 7], True),
    upsample("cubic", (1, 1, 6, 5), [4, 3]), upsample("cubic", (1, 1, 1, 2), [2, 3]),
]
