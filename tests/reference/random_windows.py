"""Random layers over images, sequences and volumes: what has windows, or moves pixels.

Each function draws one layer of its kind and adds it, or returns False where the value at hand does
not suit; so do those of the other random_*.py."""


def spatial(b):
    """How many axes follow the channels, if 1 to 3 do."""
    axes = len(b.shape) - 1
    return axes if axes in (1, 2, 3) else None


def of_rank(rank, name):
    from torch import nn

    return getattr(nn, f"{name}{rank}d")


def windows(b, most):
    """Kernel, stride, padding, dilation of one value an axis that suit the shape."""
    kernel = [b.number(1, min(most, size)) for size in b.shape[1:]]
    stride = [b.number(1, 2) for _ in kernel]
    padding = [b.number(0, k // 2) for k in kernel]
    dilation = [2 if b.chance(0.15) and 2 * (k - 1) < size else 1
                for k, size in zip(kernel, b.shape[1:])]
    return kernel, stride, padding, dilation


def out(size, kernel, stride, padding, dilation=1, up=False):
    """The extent of a window's result."""
    free = size + 2 * padding - dilation * (kernel - 1) - 1
    extent = (-(-free // stride) if up else free // stride) + 1
    if up and (extent - 1) * stride >= size + padding:
        extent -= 1  # a window may not begin in the padding after the values
    return extent


def convolution(b):
    rank = spatial(b)
    if rank is None:
        return False
    inputs = b.shape[0]
    groups = b.one_of(*[g for g in (1, 1, 2, 4, inputs) if inputs % g == 0])
    channels = groups * b.number(1, max(1, 8 // groups))
    kernel, stride, padding, dilation = windows(b, 3)
    bias = b.chance(0.5)
    sizes = [out(*values) for values in zip(b.shape[1:], kernel, stride, padding, dilation)]
    b.add(f"conv{rank}d", {"channels": channels, "kernel": kernel, "stride": stride,
                           "padding": padding, "dilation": dilation, "groups": groups,
                           "bias": bias},
          lambda: of_rank(rank, "Conv")(inputs, channels, kernel, stride, padding, dilation,
                                        groups, bias), (channels, *sizes))


def same_convolution(b):
    rank = spatial(b)
    if rank is None:
        return False
    inputs, channels = b.shape[0], b.number(1, 6)
    kernel = [b.number(1, 4) for _ in range(rank)]
    dilation = [b.number(1, 2) for _ in range(rank)]
    b.add(f"conv{rank}d", {"channels": channels, "kernel": kernel, "padding": "same",
                           "dilation": dilation},
          lambda: of_rank(rank, "Conv")(inputs, channels, kernel, padding="same",
                                        dilation=dilation), (channels, *b.shape[1:]))


def transposed_convolution(b):
    rank = spatial(b)
    if rank is None or max(b.shape[1:]) > 12:
        return False
    inputs, bias = b.shape[0], b.chance(0.5)
    groups = b.one_of(*[g for g in (1, 1, 2) if inputs % g == 0])
    channels = groups * b.number(1, 4)
    kernel = [b.number(1, 3) for _ in range(rank)]
    stride = [b.number(1, 2) for _ in range(rank)]
    padding = [b.number(0, (k - 1) // 2) for k in kernel]
    extra = [b.number(0, s - 1) for s in stride]
    sizes = [(size - 1) * s - 2 * p + k + e
             for size, s, p, k, e in zip(b.shape[1:], stride, padding, kernel, extra)]
    if min(sizes) < 1:
        return False
    b.add(f"conv_transpose{rank}d", {"channels": channels, "kernel": kernel, "stride": stride,
                                     "padding": padding, "output_padding": extra,
                                     "groups": groups, "bias": bias},
          lambda: of_rank(rank, "ConvTranspose")(inputs, channels, kernel, stride, padding, extra,
                                                 groups, bias), (channels, *sizes))


def pool(b):
    rank = spatial(b)
    if rank is None:
        return False
    kernel, stride, padding, dilation = windows(b, 3)
    maximum, up = b.chance(0.5), b.chance(0.3)
    if not maximum:
        dilation = [1] * rank
    sizes = [out(*values, up) for values in zip(b.shape[1:], kernel, stride, padding, dilation)]
    attributes = {"kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": up}
    if maximum:
        b.add(f"max_pool{rank}d", {**attributes, "dilation": dilation},
              lambda: of_rank(rank, "MaxPool")(kernel, stride, padding, dilation, ceil_mode=up),
              (b.shape[0], *sizes))
    else:
        b.add(f"avg_pool{rank}d", attributes,
              lambda: of_rank(rank, "AvgPool")(kernel, stride, padding, ceil_mode=up),
              (b.shape[0], *sizes))


def adaptive_pool(b):
    rank = spatial(b)
    if rank is None:
        return False
    whole = b.chance(0.3)
    sizes = [1 if whole else b.number(1, size) for size in b.shape[1:]]
    kind = b.one_of("max", "avg")
    b.add(f"adaptive_{kind}_pool{rank}d", {"size": sizes},
          lambda: of_rank(rank, f"Adaptive{kind.title()}Pool")(sizes if rank > 1 else sizes[0]),
          (b.shape[0], *sizes))


def pad(b):
    import torch.nn.functional as functional

    rank = spatial(b)
    if rank is None or min(b.shape[1:]) < 2:
        return False
    mode = b.one_of("constant", "constant", "reflect", "replicate", "circular")
    low = -1 if mode == "constant" and min(b.shape[1:]) > 3 else 0
    before, after = [b.number(low, 1) for _ in range(rank)], [b.number(low, 1) for _ in range(rank)]
    if mode == "constant" and not any(before + after):
        return False  # PyTorch clones, for which there is no reason to ask
    widths = [w for pair in reversed(list(zip(before, after))) for w in pair]
    shape = [b.shape[0], *[s + x + y for s, x, y in zip(b.shape[1:], before, after)]]
    outer = [0, 0] if mode == "constant" else []  # the other modes name the padded axes alone
    b.add("pad", {"before": [*outer, *before], "after": [*outer, *after], "mode": mode},
          lambda: lambda x: functional.pad(x, widths, mode), shape)


def upsample(b):
    from torch import nn

    rank = spatial(b)
    if rank is None or max(b.shape[1:]) > 10:
        return False
    smooth = {1: ["linear"], 2: ["bilinear", "bicubic"], 3: ["trilinear"]}[rank]
    mode = b.one_of("nearest", *smooth)
    settings = {"align_corners": b.chance(0.3)} if mode != "nearest" else {}
    if b.chance(0.6):
        sizes = [2 * size for size in b.shape[1:]]
        extent, arguments = {"scale": 2}, {"scale_factor": 2}
    else:
        sizes = [b.number(2, 9) for _ in range(rank)]
        extent = {"size": sizes}
        arguments = {"size": tuple(sizes)}
    b.add("upsample", {**extent, "mode": mode, **settings},
          lambda: nn.Upsample(**arguments, mode=mode, **settings), (b.shape[0], *sizes))


def shuffle(b):
    from torch import nn

    if spatial(b) != 2:
        return False
    channels, height, width = b.shape
    if channels % 4 == 0 and b.chance(0.5):
        b.add("pixel_shuffle", {"factor": 2}, lambda: nn.PixelShuffle(2),
              (channels // 4, 2 * height, 2 * width))
    elif height % 2 == 0 and width % 2 == 0:
        b.add("pixel_unshuffle", {"factor": 2}, lambda: nn.PixelUnshuffle(2),
              (channels * 4, height // 2, width // 2))
    else:
        return False


DRAWN = [convolution, convolution, convolution, same_convolution, transposed_convolution, pool,
         pool, pool, adaptive_pool, pad, upsample, shuffle]
