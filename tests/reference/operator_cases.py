"""The cases of operators.json: one row a case, by operator."""

import dataclasses
from typing import Callable

import torch
import torch.nn.functional as functional


@dataclasses.dataclass(frozen=True)
class Case:
    """`inputs` are shapes (filled with normal values) or given tensors; `run(inputs, parameters,
    buffers)` may update buffers in place. `target_input`: an input that gets no gradient."""

    name: str
    op: str
    attributes: dict
    inputs: list
    run: Callable
    parameters: dict = dataclasses.field(default_factory=dict)
    buffers: dict = dataclasses.field(default_factory=dict)
    target_input: int | None = None

    def is_target(self, tensor, inputs):
        return self.target_input is not None and tensor is inputs[self.target_input]


def conv2d(name, x, filters, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1,
           bias=True):
    attributes = dict(filters=filters, kernel=list(kernel), stride=list(stride),
                      padding=list(padding), dilation=list(dilation), groups=groups, bias=bias)
    parameters = {"weight": (filters, x[1] // groups, *kernel)}
    if bias:
        parameters["bias"] = (filters,)
    return Case(f"conv2d {name}", "conv2d", attributes, [x],
                lambda i, p, _: functional.conv2d(i[0], p["weight"], p.get("bias"), stride,
                                                  padding, dilation, groups), parameters)


def conv_transpose2d(name, x, filters, kernel, stride, padding=(0, 0), output_padding=(0, 0),
                     groups=1, bias=True):
    attributes = dict(filters=filters, kernel=list(kernel), stride=list(stride),
                      padding=list(padding), output_padding=list(output_padding),
                      dilation=[1, 1], groups=groups, bias=bias)
    parameters = {"weight": (x[1], filters // groups, *kernel)}
    if bias:
        parameters["bias"] = (filters,)
    return Case(f"conv_transpose2d {name}", "conv_transpose2d", attributes, [x],
                lambda i, p, _: functional.conv_transpose2d(
                    i[0], p["weight"], p.get("bias"), stride, padding, output_padding, groups),
                parameters)


def linear(name, x, features, bias=True):
    parameters = {"weight": (features, x[-1]), **({"bias": (features,)} if bias else {})}
    return Case(f"linear {name}", "linear", dict(features=features, bias=bias), [x],
                lambda i, p, _: functional.linear(i[0], p["weight"], p.get("bias")), parameters)


def binary(name, op, a, b, run):
    return Case(f"{op} {name}", op, {}, [a, b], lambda i, _p, _b: run(*i))


def batch_norm(name, x, training, momentum=0.1, eps=1e-5):
    channels = x[1]
    buffers = {"running_mean": torch.linspace(-0.5, 0.5, channels),
               "running_var": torch.linspace(0.5, 2.0, channels)}
    return Case(f"batch_norm {name}", "batch_norm",
                dict(mode="train" if training else "eval", momentum=momentum, eps=eps), [x],
                lambda i, p, b: functional.batch_norm(
                    i[0], b["running_mean"], b["running_var"], p["weight"], p["bias"], training,
                    momentum, eps),
                {"weight": (channels,), "bias": (channels,)}, buffers)


def layer_norm(name, x, dimensions, eps=1e-5):
    shape = list(x[-dimensions:])
    return Case(f"layer_norm {name}", "layer_norm", dict(normalized_shape=shape, eps=eps), [x],
                lambda i, p, _: functional.layer_norm(i[0], shape, p["weight"], p["bias"], eps),
                {"weight": tuple(shape), "bias": tuple(shape)})


def unary(name, op, attributes, x, run):
    return Case(f"{op} {name}".strip(), op, attributes, [x], lambda i, _p, _b: run(i[0]))


def max_pool2d(name, x, kernel, stride, padding=(0, 0), ceil_mode=False):
    attributes = dict(kernel=list(kernel), stride=list(stride), padding=list(padding),
                      ceil_mode=ceil_mode)
    return unary(name, "max_pool2d", attributes, x, lambda t: functional.max_pool2d(
        t, kernel, stride, padding, ceil_mode=ceil_mode))


def avg_pool2d(name, x, kernel, stride, padding=(0, 0), ceil_mode=False, count_include_pad=True):
    attributes = dict(kernel=list(kernel), stride=list(stride), padding=list(padding),
                      ceil_mode=ceil_mode, count_include_pad=count_include_pad)
    return unary(name, "avg_pool2d", attributes, x, lambda t: functional.avg_pool2d(
        t, kernel, stride, padding, ceil_mode, count_include_pad))


def concat(name, shapes, axis):
    return Case(f"concat {name}", "concat", dict(axis=axis), list(shapes),
                lambda i, _p, _b: torch.cat(i, dim=axis))


def embedding(name, indices, rows, width, padding_idx=None):
    return Case(f"embedding {name}", "embedding",
                dict(num_embeddings=rows, embedding_dim=width, padding_idx=padding_idx),
                [torch.tensor(indices)],
                lambda i, p, _: functional.embedding(i[0], p["weight"], padding_idx),
                {"weight": (rows, width)})


def attention(name, query, key, causal=False, scale=None):
    return Case(f"scaled_dot_product_attention {name}", "scaled_dot_product_attention",
                dict(causal=causal, scale=scale), [query, key, key],
                lambda i, _p, _b: functional.scaled_dot_product_attention(
                    *i, is_causal=causal, scale=scale))


def cross_entropy(name, logits, target, ignore_index=-100):
    return Case(f"cross_entropy {name}", "cross_entropy",
                dict(reduction="mean", ignore_index=ignore_index), [logits, torch.tensor(target)],
                lambda i, _p, _b: functional.cross_entropy(*i, ignore_index=ignore_index))


CONVOLUTIONS = [
    conv2d("plain", (2, 3, 6, 5), 4, (3, 3)),
    conv2d("padding", (2, 3, 5, 5), 4, (3, 3), padding=(1, 1)),
    conv2d("stride and padding", (2, 3, 7, 7), 4, (3, 3), (2, 2), (1, 1)),
    conv2d("asymmetric", (2, 2, 7, 6), 3, (5, 2), (2, 1), (2, 0)),
    conv2d("dilation", (1, 2, 8, 8), 3, (3, 3), padding=(2, 2), dilation=(2, 2)),
    conv2d("groups", (2, 4, 5, 5), 6, (3, 3), padding=(1, 1), groups=2),
    conv2d("depthwise", (2, 4, 5, 5), 4, (3, 3), padding=(1, 1), groups=4, bias=False),
    conv2d("depthwise with multiplier", (1, 3, 5, 5), 6, (3, 3), (2, 2), (1, 1), groups=3),
    conv2d("no bias", (2, 3, 5, 5), 4, (3, 3), bias=False),
    conv2d("1x1", (2, 5, 4, 4), 3, (1, 1)),
    conv2d("1x1 stride 2", (2, 5, 5, 5), 3, (1, 1), (2, 2), bias=False),
    conv2d("rows unused at the border", (1, 2, 8, 8), 3, (3, 3), (2, 2)),
    conv_transpose2d("k2 s2", (2, 4, 3, 3), 3, (2, 2), (2, 2)),
    conv_transpose2d("k3 s2 p1 output padding 1", (2, 3, 4, 4), 2, (3, 3), (2, 2), (1, 1), (1, 1)),
    conv_transpose2d("groups, no bias", (1, 4, 3, 3), 6, (3, 3), (1, 1), groups=2, bias=False),
]

PRODUCTS = [
    linear("2-D", (3, 5), 4),
    linear("3-D", (2, 3, 5), 4),
    linear("no bias", (3, 5), 4, bias=False),
    linear("one row", (1, 6), 2),
    binary("2-D", "matmul", (3, 4), (4, 5), torch.matmul),
    binary("4-D", "matmul", (2, 3, 4, 5), (2, 3, 5, 2), torch.matmul),
    binary("broadcast matrix", "matmul", (2, 3, 4, 5), (5, 6), torch.matmul),
    binary("broadcast batch", "matmul", (2, 3, 4, 5), (3, 5, 2), torch.matmul),
]

NORMALISATIONS = [
    batch_norm("2-D", (6, 5), True),
    batch_norm("4-D", (3, 4, 5, 5), True),
    batch_norm("momentum and eps", (3, 4, 3, 3), True, momentum=0.3, eps=1e-3),
    batch_norm("eval 4-D", (2, 4, 3, 3), False),
    batch_norm("eval 2-D", (4, 5), False),
    layer_norm("last dimension", (2, 3, 8), 1),
    layer_norm("last two dimensions", (3, 4, 5), 2),
    layer_norm("eps", (4, 6), 1, eps=1e-3),
]

ACTIVATIONS = [
    unary("4-D", "relu", {}, (2, 3, 4, 4), functional.relu),
    unary("2-D", "relu", {}, (5, 7), functional.relu),
    unary("none", "gelu", dict(approximate="none"), (4, 9), functional.gelu),
    unary("tanh", "gelu", dict(approximate="tanh"), (4, 9),
          lambda t: functional.gelu(t, approximate="tanh")),
    unary("last", "softmax", dict(axis=-1), (3, 4, 6), lambda t: functional.softmax(t, -1)),
    unary("axis 1", "softmax", dict(axis=1), (2, 5, 3, 3), lambda t: functional.softmax(t, 1)),
    unary("p 0", "dropout", dict(p=0.0, mode="train"), (3, 5),
          lambda t: functional.dropout(t, 0.0, True)),
    unary("eval", "dropout", dict(p=0.5, mode="eval"), (3, 5),
          lambda t: functional.dropout(t, 0.5, False)),
]

POOLINGS = [
    max_pool2d("k2 s2", (2, 3, 6, 6), (2, 2), (2, 2)),
    max_pool2d("k2 s2 odd size", (1, 2, 7, 5), (2, 2), (2, 2)),
    max_pool2d("k3 s2 p1", (2, 3, 8, 8), (3, 3), (2, 2), (1, 1)),
    max_pool2d("ceil mode", (2, 2, 7, 7), (2, 2), (2, 2), ceil_mode=True),
    max_pool2d("overlapping k3 s1", (1, 2, 5, 5), (3, 3), (1, 1)),
    avg_pool2d("k2 s2", (2, 3, 6, 6), (2, 2), (2, 2)),
    avg_pool2d("k3 s2 p1", (2, 3, 8, 8), (3, 3), (2, 2), (1, 1)),
    avg_pool2d("k3 s2 p1 without padding in the count", (2, 3, 8, 8), (3, 3), (2, 2), (1, 1),
               count_include_pad=False),
    avg_pool2d("ceil mode", (1, 2, 7, 7), (2, 2), (2, 2), ceil_mode=True),
    unary("1x1", "adaptive_avg_pool2d", dict(output_size=[1, 1]), (2, 3, 5, 4),
          lambda t: functional.adaptive_avg_pool2d(t, (1, 1))),
    unary("7x7 from 10x10", "adaptive_avg_pool2d", dict(output_size=[7, 7]), (1, 2, 10, 10),
          lambda t: functional.adaptive_avg_pool2d(t, (7, 7))),
    unary("same size", "adaptive_avg_pool2d", dict(output_size=[3, 3]), (1, 2, 3, 3),
          lambda t: functional.adaptive_avg_pool2d(t, (3, 3))),
]

SHAPES = [
    binary("same shape", "add", (2, 3, 4), (2, 3, 4), torch.add),
    binary("broadcast", "add", (2, 3, 4), (1, 3, 1), torch.add),
    binary("broadcast last", "add", (2, 3, 4), (4,), torch.add),
    binary("same shape", "mul", (2, 3, 4), (2, 3, 4), torch.mul),
    binary("broadcast", "mul", (2, 3, 4, 4), (2, 3, 1, 1), torch.mul),
    binary("broadcast last", "mul", (2, 3, 4), (4,), torch.mul),
    concat("axis 1", [(2, 3, 4, 4), (2, 2, 4, 4)], 1),
    concat("last", [(2, 3, 4), (2, 3, 2), (2, 3, 1)], -1),
    unary("", "reshape", dict(shape=[2, 2, 6]), (2, 3, 4), lambda t: t.reshape(2, 2, 6)),
    unary("start 1", "flatten", dict(start=1), (2, 3, 2, 2), lambda t: t.flatten(1)),
    unary("start 2", "flatten", dict(start=2), (2, 3, 2, 2), lambda t: t.flatten(2)),
    unary("0 2 1 3", "transpose", dict(axes=[0, 2, 1, 3]), (2, 3, 4, 2),
          lambda t: t.permute(0, 2, 1, 3)),
    unary("0 2 3 1", "transpose", dict(axes=[0, 2, 3, 1]), (2, 3, 4, 2),
          lambda t: t.permute(0, 2, 3, 1)),
    unary("1 0", "transpose", dict(axes=[1, 0]), (3, 5), lambda t: t.t()),
    embedding("repeated indices", [[1, 4, 1], [0, 1, 4]], 6, 3),
    embedding("padding index", [[1, 2, 1], [0, 2, 3]], 5, 3, padding_idx=2),
]

ATTENTION_AND_LOSSES = [
    attention("plain", (2, 2, 5, 4), (2, 2, 5, 4)),
    attention("causal", (2, 2, 5, 4), (2, 2, 5, 4), causal=True),
    attention("different lengths", (1, 2, 3, 4), (1, 2, 6, 4)),
    attention("causal, different lengths", (1, 2, 3, 4), (1, 2, 6, 4), causal=True),
    attention("scale", (1, 1, 4, 3), (1, 1, 4, 3), scale=0.25),
    cross_entropy("2-D", (4, 5), [0, 3, 4, 3]),
    cross_entropy("4-D per pixel", (2, 3, 2, 3), [[[0, 1, 2], [2, 1, 0]], [[1, 1, 0], [2, 2, 2]]]),
    cross_entropy("2-D with ignored targets", (5, 4), [0, -100, 3, 2, -100]),
    cross_entropy("4-D with ignored targets", (1, 3, 2, 3), [[[0, 255, 2], [255, 1, 0]]], 255),
    Case("mse", "mse", dict(reduction="mean"), [(3, 4), (3, 4)],
         lambda i, _p, _b: functional.mse_loss(*i), target_input=1),
]

CASES = [*CONVOLUTIONS, *PRODUCTS, *NORMALISATIONS, *ACTIVATIONS, *POOLINGS, *SHAPES,
         *ATTENTION_AND_LOSSES]
