"""Kernels that reduce, repeat, pad and move elements; normalisations over parts of a tensor."""

import torch
import torch.nn.functional as functional

from kernel_call import Call, gradients, one_input


def reduced(operation, axes, shape, keep):
    def build(draw):
        x = draw.normal(*shape)
        y = getattr(torch, operation)(x, dim=axes, keepdim=keep)
        return ({"x": x, "y": y},
                [Call("reduce", {"axes": axes, "operation": operation}, ["x"], ["y"])])
    return f"{operation} over {axes} of {list(shape)}{', kept' if keep else ''}", build


def expanded(factor, before, after):
    def build(draw):
        x = draw.normal(*before)
        return ({"x": x, "y": factor * x.expand(after)},
                [Call("expand", {"factor": factor}, ["x"], ["y"])])
    return f"expand {list(before)} to {list(after)}", build


def padded(shape, before, after, mode, value=0.0):
    """PyTorch lists the widths from the last axis, and pads leading axes in no mode but constant."""
    widths = [w for pair in reversed(list(zip(before, after))) for w in pair]
    while mode != "constant" and widths[-2:] == [0, 0] and len(widths) > 2 * (len(shape) - 2):
        widths = widths[:-2]
    attributes = {"before": list(before), "after": list(after), "mode": mode}
    if mode == "constant":
        attributes["value"] = value
    run = lambda t: functional.pad(t, widths, mode, value if mode == "constant" else None)
    return (f"pad {mode} {list(before)} {list(after)}",
            one_input("pad", "pad_backward", attributes, shape, run, ""))


def rolled(shape, shifts, axes):
    def build(draw):
        x = draw.normal(*shape)
        return ({"x": x, "y": torch.roll(x, shifts, axes)},
                [Call("roll", {"shifts": shifts, "axes": axes}, ["x"], ["y"])])
    return f"roll {shifts} along {axes}", build


CASES = [
    reduced("sum", [1], (2, 3, 4), True), reduced("sum", [0, 2], (2, 3, 4), False),
    reduced("mean", [2, 3], (2, 3, 2, 2), True), reduced("mean", [-1], (3, 4), False),
    reduced("mean", [0, 1], (3, 4), False), reduced("sum", [0], (1, 3), False),
    expanded(1.0, (2, 1, 3), (2, 4, 3)), expanded(0.25, (2, 3, 1, 1), (2, 3, 2, 2)),
    expanded(2.0, (), (2, 3)), expanded(1.0, (3,), (2, 3)),
    padded((2, 3), (0, 1), (0, 2), "constant"), padded((2, 3), (1, 0), (1, 2), "constant", 1.5),
    padded((3, 4), (0, -1), (0, -1), "constant"), padded((2, 3), (0, 2), (0, -1), "constant"),
    padded((1, 2, 5), (0, 0, 2), (0, 0, 3), "reflect"),
    padded((1, 2, 3, 4), (0, 0, 2, 1), (0, 0, 1, 3), "reflect"),
    padded((1, 1, 3, 3, 3), (0, 0, 1, 0, 2), (0, 0, 0, 2, 1), "reflect"),
    padded((1, 2, 4), (0, 0, 3), (0, 0, 1), "replicate"),
    padded((1, 2, 3, 3), (0, 0, 1, 4), (0, 0, 2, 0), "replicate"),
    padded((1, 1, 2, 2, 2), (0, 0, 1, 2, 0), (0, 0, 1, 0, 3), "replicate"),
    padded((1, 2, 4), (0, 0, 3), (0, 0, 1), "circular"),
    padded((1, 2, 3, 3), (0, 0, 3, 1), (0, 0, 2, 0), "circular"),
    padded((1, 1, 2, 3, 2), (0, 0, 1, 2, 0), (0, 0, 1, 0, 2), "circular"),
    rolled((2, 5), [2], [1]), rolled((3, 4), [-1, 6], [0, 1]), rolled((2, 3, 2), [1, 1], [0, -2]),
]


def statistics(x, axes, eps):
    """mean and 1 / sqrt(variance + eps) over `axes`."""
    mean = x.mean(axes)
    return mean, (x.var(axes, correction=0) + eps).rsqrt()


def group_norm(name, shape, groups, affine=True, eps=1e-5):
    attributes = {"groups": groups, "eps": eps}

    def build(draw):
        x = draw.normal(*shape)
        weights = [draw.normal(shape[1]), draw.normal(shape[1])] if affine else []
        y, dy, found = gradients(lambda t, *w: functional.group_norm(t, groups, *w, eps=eps),
                                 [x, *weights], draw.normal(*shape))
        mean, rstd = statistics(x.reshape(shape[0], groups, -1), 2, eps)
        names = ["w", "b"] if affine else []
        tensors = {"x": x, **dict(zip(names, weights)), "y": y, "mean": mean, "rstd": rstd,
                   "dy": dy, **dict(zip(["dx", "dw", "db"], found))}
        return tensors, [
            Call("group_norm_forward", attributes, ["x", *names], ["y", "mean", "rstd"]),
            Call("group_norm_backward", attributes, ["x", "dy", *names[:1], "mean", "rstd"],
                 ["dx", "dw", "db"][:1 + len(names)])]
    return f"group_norm {name}", build


def rms_norm(name, shape, axes, weighted=True, eps=1e-6):
    attributes = {"axes": axes, "eps": eps}

    def build(draw):
        x, wide = draw.normal(*shape), shape[len(shape) - axes:]
        weights = [draw.normal(*wide)] if weighted else []
        y, dy, found = gradients(
            lambda t, *w: functional.rms_norm(t, wide, *w, eps=eps), [x, *weights],
            draw.normal(*shape))
        names = ["w"] if weighted else []
        rstd = (x.square().flatten(len(shape) - axes).mean(-1) + eps).rsqrt()
        return ({"x": x, **dict(zip(names, weights)), "y": y, "rstd": rstd, "dy": dy,
                 **dict(zip(["dx", "dw"], found))},
                [Call("rms_norm_forward", attributes, ["x", *names], ["y", "rstd"]),
                 Call("rms_norm_backward", attributes, ["x", "dy", *names, "rstd"],
                      ["dx", "dw"][:1 + len(names)])])
    return f"rms_norm {name}", build


def local_response_norm(name, shape, size, alpha=1e-4, beta=0.75, k=1.0):
    attributes = {"size": size, "alpha": alpha, "beta": beta, "k": k}

    def scale(x):
        squares = x.square()
        below, above = size // 2, (size - 1) // 2
        wide = torch.cat([torch.zeros_like(squares[:, :1])] * below + [squares]
                         + [torch.zeros_like(squares[:, :1])] * above, 1)
        sums = sum(wide[:, i:i + x.shape[1]] for i in range(size))
        return k + alpha / size * sums

    build = one_input("local_response_norm_forward", "local_response_norm_backward", attributes,
                      shape, lambda t: functional.local_response_norm(t, size, alpha, beta, k),
                      "x y scale", lambda x: {"scale": scale(x)})
    return f"local_response_norm {name}", build


NORMALISATIONS = [
    group_norm("two groups", (2, 4, 3), 2), group_norm("one group", (2, 3, 2, 2), 1),
    group_norm("one channel a group", (2, 3, 2, 2), 3), group_norm("2-D", (2, 8), 2, eps=1e-3),
    group_norm("no weight", (2, 4, 2, 1, 2), 2, affine=False),
    rms_norm("last", (2, 3, 4), 1), rms_norm("last two", (2, 3, 4), 2, eps=1e-3),
    rms_norm("no weight", (3, 5), 1, weighted=False),
    local_response_norm("AlexNet's", (2, 6, 2, 2), 5, k=2.0),
    local_response_norm("strong", (1, 5, 3), 3, alpha=1.5, beta=0.5),
    local_response_norm("even", (1, 4, 2, 2), 2, alpha=0.9),
    local_response_norm("wider than the channels", (1, 3, 2), 9, alpha=2.0),
]
