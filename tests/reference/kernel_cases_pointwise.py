"""Functions of single elements, gates, and losses of elements."""

import torch
import torch.nn.functional as functional

from kernel_call import Call, given, gradients, one_input

KINKS = given([-7.5, -3, -1.25, -0.5, 0, 0.5, 1.25, 3, 4, 6, 7.5, 25])
POSITIVE = given([0.01, 0.25, 0.5, 1, 2.5, 10])


def unary(function, run, reads="x", x=KINKS, **attributes):
    build = one_input("unary_forward", "unary_backward", {"function": function, **attributes},
                      lambda _draw: x, run, reads)
    return " ".join([function, *(f"{k} {v}" for k, v in attributes.items())]), build


def prelu(channels, shape):
    def build(draw):
        x, w = draw.normal(*shape), draw.uniform(0.1, 0.4, channels)
        y, dy, (dx, dw) = gradients(functional.prelu, [x, w], draw.normal(*shape))
        return ({"x": x, "w": w, "y": y, "dy": dy, "dx": dx, "dw": dw},
                [Call("prelu_forward", {}, ["x", "w"], ["y"]),
                 Call("prelu_backward", {}, ["x", "w", "dy"], ["dx", "dw"])])
    return f"prelu of {channels}, {len(shape)}-D", build


def swiglu(x, axis):
    gate, value = x.chunk(2, axis)
    return functional.silu(gate) * value


def operands(kernel, a, b, run):
    def build(draw):
        left, right = draw.normal(*a), draw.uniform(0.5, 2, *b)
        return ({"a": left, "b": right, "y": run(left, right)},
                [Call(kernel, {}, ["a", "b"], ["y"])])
    return f"{kernel} {list(a)} and {list(b)}", build


def scaled(factor, offset):
    def build(draw):
        x = draw.normal(7)
        return ({"x": x, "y": factor * x + offset},
                [Call("scale", {"factor": factor, "offset": offset}, ["x"], ["y"])])
    return f"scale {factor} x + {offset}", build


CASES = [
    unary("relu6", functional.relu6),
    unary("leaky_relu", lambda t: functional.leaky_relu(t, 0.2), negative_slope=0.2),
    unary("elu", functional.elu, alpha=1.0),
    unary("elu", lambda t: functional.elu(t, 0.7), alpha=0.7),
    unary("silu", functional.silu),
    unary("mish", functional.mish),
    unary("hardswish", functional.hardswish),
    unary("hardsigmoid", functional.hardsigmoid),
    unary("sigmoid", torch.sigmoid, "y"),
    unary("abs", torch.abs),
    unary("sin", torch.sin),
    unary("cos", torch.cos),
    unary("erf", torch.erf),
    unary("expm1", torch.expm1, "y", given([-7.5, -3, -0.5, 0, 0.5, 1.25, 3])),
    unary("log1p", torch.log1p, x=POSITIVE),
    unary("rsqrt", torch.rsqrt, "y", POSITIVE),
    unary("reciprocal", torch.reciprocal, "y", POSITIVE),
    unary("selu", torch.selu),
    unary("celu", lambda t: functional.celu(t, 0.7), alpha=0.7),
    unary("log_sigmoid", functional.logsigmoid),
    *(unary(name, getattr(torch, name)) for name in ("sign", "floor", "ceil", "round", "trunc")),
    unary("tanh", torch.tanh, "y"),
    unary("softplus", functional.softplus, beta=1.0, threshold=20.0),
    unary("softplus", lambda t: functional.softplus(t, 2, 5), beta=2.0, threshold=5.0),
    unary("exp", torch.exp, "y", given([-3, -0.5, 0, 1, 2.5])),
    unary("log", torch.log, x=POSITIVE),
    unary("sqrt", torch.sqrt, "y", POSITIVE),
    unary("power", lambda t: t.pow(2), exponent=2),
    unary("power", lambda t: t.pow(3), exponent=3.0),
    unary("power", lambda t: t.pow(0), exponent=0),
    unary("power", lambda t: t.pow(0.5), x=POSITIVE, exponent=0.5),
    unary("power", lambda t: t.pow(-1.5), x=POSITIVE, exponent=-1.5),
    unary("clamp", lambda t: t.clamp(-0.5, 3), minimum=-0.5, maximum=3.0),
    unary("clamp", lambda t: t.clamp(min=0.5), minimum=0.5),
    unary("clamp", lambda t: t.clamp(max=1.25), maximum=1.25),
    prelu(1, (3, 4)), prelu(3, (2, 3, 2, 2)), prelu(3, (4, 3)), prelu(1, (5,)),
    ("glu last", one_input("glu_forward", "glu_backward", {"axis": -1, "gate": "sigmoid"}, (3, 6),
                           lambda t: functional.glu(t, -1))),
    ("glu axis 1", one_input("glu_forward", "glu_backward", {"axis": 1}, (2, 4, 3),
                             lambda t: functional.glu(t, 1))),
    ("swiglu last", one_input("glu_forward", "glu_backward",
                              {"axis": 1, "gate": "silu", "first_is_gate": True}, (3, 8),
                              lambda t: swiglu(t, 1))),
    ("swiglu axis 0", one_input("glu_forward", "glu_backward",
                                {"axis": 0, "gate": "silu", "first_is_gate": True}, (4, 3),
                                lambda t: swiglu(t, 0))),
    operands("subtract", (2, 3), (2, 3), torch.subtract),
    operands("subtract", (2, 3, 4), (3, 1), torch.subtract),
    operands("subtract", (4,), (2, 3, 1), torch.subtract),
    operands("divide", (2, 3), (2, 3), torch.divide),
    operands("divide", (2, 3, 4), (1, 4), torch.divide),
    operands("divide", (1,), (3, 2), torch.divide),
    scaled(2.5, 0), scaled(-1.0, 1.0),
]


def loss(kernel, name, run, x, target, attributes=None, scale=1.0):
    """Backward's `scale` is the gradient of the loss itself."""
    attributes = attributes or {}

    def build(draw):
        value, goal = x(draw), target(draw)
        y, _, (dx,) = gradients(lambda t: run(t, goal), [value],
                                torch.tensor(scale, dtype=torch.float64))
        return ({"x": value, "target": goal, "loss": y, "dx": dx},
                [Call(f"{kernel}_forward", attributes, ["x", "target"], ["loss"]),
                 Call(f"{kernel}_backward", {**attributes, "scale": scale}, ["x", "target"],
                      ["dx"])])
    return f"{kernel} {name}", build


def log_softmax(axis, shape):
    return (f"log_softmax {len(shape)}-D, axis {axis}",
            one_input("log_softmax_forward", "log_softmax_backward", {"axis": axis}, shape,
                      lambda t: torch.log_softmax(t, axis), "y"))


def nll(name, shape, target, scale=1.0, **attributes):
    return loss("nll_loss", name, lambda x, t: functional.nll_loss(x, t, **attributes),
                logs(*shape), lambda _: torch.tensor(target), attributes, scale)


def cross_entropy(name, shape, target, **attributes):
    def build(draw):
        x, goal = draw.normal(*shape), torch.tensor(target)
        y, _, (dx,) = gradients(lambda t: functional.cross_entropy(t, goal, **attributes), [x],
                                torch.tensor(0.5, dtype=torch.float64))
        sums = torch.logsumexp(x, 1)
        return ({"x": x, "target": goal, "loss": y, "logsumexp": sums, "dx": dx},
                [Call("cross_entropy_forward", attributes, ["x", "target"], ["loss", "logsumexp"]),
                 Call("cross_entropy_backward", {**attributes, "scale": 0.5},
                      ["x", "target", "logsumexp"], ["dx"])])
    return f"cross_entropy {name}", build


def normal(*shape):
    return lambda draw: draw.normal(*shape)


def chances(*shape):
    return lambda draw: draw.uniform(0.02, 0.98, *shape)


def logs(*shape):
    return lambda draw: draw.rounded(torch.log_softmax(draw.normal(*shape), 1))


LOSSES = [
    cross_entropy("smoothed", (3, 5), [0, 4, 2], label_smoothing=0.1),
    cross_entropy("smoothed, some ignored", (2, 3, 2), [[0, -100], [2, 1]], label_smoothing=0.3),
    log_softmax(1, (3, 5)), log_softmax(1, (2, 3, 2, 2)), log_softmax(-1, (2, 2, 4)),
    nll("2-D", (3, 5), [0, 4, 2]),
    nll("per pixel, some ignored", (2, 3, 2), [[0, -100], [2, 1]], 0.5),
    nll("another number ignored", (3, 4), [1, 3, 1], ignore_index=1),
    loss("mse", "3-D", functional.mse_loss, normal(2, 3, 2), normal(2, 3, 2)),
    loss("l1", "2-D", functional.l1_loss, normal(3, 4), normal(3, 4)),
    loss("l1", "equal in places", functional.l1_loss, lambda _: given([1, 2, -3]),
         lambda _: given([1, 4, -5]), scale=0.5),
    loss("bce", "2-D", functional.binary_cross_entropy, chances(3, 4), chances(3, 4),
         {"logits": False}),
    loss("bce", "certain", functional.binary_cross_entropy, lambda _: given([0, 1, 0.5, 1]),
         lambda _: given([0, 1, 1, 0.5]), {"logits": False}, 0.25),
    loss("bce", "logits", functional.binary_cross_entropy_with_logits, normal(3, 4),
         chances(3, 4), {"logits": True}),
    loss("bce", "large logits", functional.binary_cross_entropy_with_logits,
         lambda _: given([-90, 90, 0, 20]), lambda _: given([1, 0, 0.5, 1]), {"logits": True}, 2.0),
    loss("kl_div", "mean", lambda x, t: functional.kl_div(x, t, reduction="mean"), logs(3, 4),
         chances(3, 4), {"reduction": "mean"}),
    loss("kl_div", "batchmean", lambda x, t: functional.kl_div(x, t, reduction="batchmean"),
         logs(3, 4), chances(3, 4), {"reduction": "batchmean"}, 0.5),
    loss("kl_div", "a target of 0", lambda x, t: functional.kl_div(x, t, reduction="batchmean"),
         logs(2, 2), lambda _: given([[0, 1], [0.5, 0.5]]), {"reduction": "batchmean"}),
]
