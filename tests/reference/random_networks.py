"""Small random networks of every operator, built twice: as a description and as a PyTorch module.

    venv/bin/python tests/reference/random_networks.py --count 2000 --seed 1 rows.json
    build/tests/compare_rows rows.json

Each row is one of operator_saved.py's. The module is built by this script alone, from the very
choices that the description is written from, so that nothing of ours is trusted. The committed
sample, operators/random.json, is `--count 60 --seed 60`, and networks that once disagreed.

Networks start with a convolution or a linear layer, so that what follows needs gradients, and end
in one too. Between them are operators drawn at random, with attributes drawn at random, that suit
the shape at hand; some join two branches.
"""

import argparse
import gc
import pathlib
import platform
import random

import fake_cuda
import operator_saved


class Builder:
    """A network under construction: the layers' lines, and (module or function, inputs) of each."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.steps = [], []
        self.shapes = {"x": None}  # of each value, without the batch
        self.current = "x"
        self.saved_by_producer = True  # the current value is saved by who made it: never in place

    # Choices.
    def one_of(self, *values):
        return self.random.choice(values)

    def number(self, low, high):
        return self.random.randint(low, high)

    def chance(self, probability):
        return self.random.random() < probability

    @property
    def shape(self):
        return self.shapes[self.current]

    def add(self, operator, attributes, make, shape, inputs=None, saved_by_producer=False):
        """`make()` gives a module or function of the inputs' values."""
        name = f"l{len(self.lines)}"
        inputs = inputs or [self.current]
        written = {"name": name, "from": inputs if len(inputs) > 1 else inputs[0], **attributes}
        self.lines.append((operator, written))
        self.steps.append((name, make, inputs))
        self.shapes[name] = tuple(shape)
        self.current = name
        self.saved_by_producer = saved_by_producer

    def in_place(self):
        """Whether the next layer may overwrite its input, as autograd allows."""
        return not self.saved_by_producer and self.chance(0.4)


def text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text(item) for item in value) + "]"
    return str(value)


def line(operator, attributes):
    return f"{operator}: {{" + ", ".join(f"{k}: {text(v)}" for k, v in attributes.items()) + "}"


def network(steps):
    import torch

    class Network(torch.nn.Module):
        """Runs the steps in order and lets go of each value with its last use."""

        def __init__(self):
            super().__init__()
            self.steps = []
            last_use = {}
            for number, (name, make, inputs) in enumerate(steps):
                made = make()
                if isinstance(made, torch.nn.Module):
                    self.add_module(name, made)
                self.steps.append((name, made, inputs))
                for value in inputs:
                    last_use[value] = number
            self.last_use = last_use

        def forward(self, x):
            values = {"x": x}
            del x
            for number, (name, function, inputs) in enumerate(self.steps):
                arguments = [values[value] for value in inputs]
                for value in set(inputs):
                    if self.last_use[value] == number:
                        del values[value]
                values[name] = function(*arguments)
                del arguments
            return values[name]

    return Network()


# Operators. Each is `draw(b)`: adds a layer, or returns False where the shape does not suit.

def functional():
    import torch.nn.functional as functional

    return functional


def spatial(b):
    return len(b.shape) - 1


def windows(b, most):
    """Kernel, stride, padding, dilation of one value an axis that suit the shape."""
    sizes = b.shape[1:]
    kernel = [b.number(1, min(most, size)) for size in sizes]
    stride = [b.number(1, 2) for _ in sizes]
    padding = [b.number(0, k // 2) for k in kernel]
    return kernel, stride, padding


def out(size, kernel, stride, padding, dilation=1):
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def convolution(b):
    from torch import nn

    rank = spatial(b)
    if rank not in (1, 2, 3):
        return False
    channels_in = b.shape[0]
    groups = b.one_of(*[g for g in (1, 1, 2, 4, channels_in) if channels_in % g == 0])
    channels = groups * b.number(1, max(1, 8 // groups))
    kernel, stride, padding = windows(b, 3)
    bias = b.chance(0.5)
    sizes = [out(*values) for values in zip(b.shape[1:], kernel, stride, padding)]
    b.add(f"conv{rank}d", {"channels": channels, "kernel": kernel, "stride": stride,
                           "padding": padding, "groups": groups, "bias": bias},
          lambda: [nn.Conv1d, nn.Conv2d, nn.Conv3d][rank - 1](
              channels_in, channels, kernel, stride, padding, 1, groups, bias),
          (channels, *sizes))


def same_convolution(b):
    from torch import nn

    rank = spatial(b)
    if rank not in (1, 2, 3):
        return False
    channels_in, channels = b.shape[0], b.number(1, 6)
    kernel = [b.number(1, 4) for _ in range(rank)]
    dilation = [b.number(1, 2) for _ in range(rank)]
    b.add(f"conv{rank}d", {"channels": channels, "kernel": kernel, "padding": "same",
                           "dilation": dilation},
          lambda: [nn.Conv1d, nn.Conv2d, nn.Conv3d][rank - 1](
              channels_in, channels, kernel, padding="same", dilation=dilation),
          (channels, *b.shape[1:]))


def transposed_convolution(b):
    from torch import nn

    rank = spatial(b)
    if rank not in (1, 2, 3) or max(b.shape[1:]) > 12:
        return False
    channels_in, channels = b.shape[0], b.number(1, 6)
    kernel = [b.number(1, 3) for _ in range(rank)]
    stride = [b.number(1, 2) for _ in range(rank)]
    extra = [b.number(0, s - 1) for s in stride]
    bias = b.chance(0.5)
    sizes = [(size - 1) * s + k + e for size, s, k, e in zip(b.shape[1:], stride, kernel, extra)]
    b.add(f"conv_transpose{rank}d", {"channels": channels, "kernel": kernel, "stride": stride,
                                     "output_padding": extra, "bias": bias},
          lambda: [nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d][rank - 1](
              channels_in, channels, kernel, stride, 0, extra, 1, bias),
          (channels, *sizes))


def linear(b):
    from torch import nn

    features_in, features, bias = b.shape[-1], b.number(1, 9), b.chance(0.6)
    b.add("linear", {"features": features, "bias": bias},
          lambda: nn.Linear(features_in, features, bias), (*b.shape[:-1], features))


def pool(b):
    from torch import nn

    rank = spatial(b)
    if rank not in (1, 2, 3):
        return False
    kernel, stride, padding = windows(b, 3)
    maximum, ceil_mode = b.chance(0.5), False
    sizes = [out(*values) for values in zip(b.shape[1:], kernel, stride, padding)]
    attributes = {"kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil_mode}
    kinds = ([nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d] if maximum else
             [nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d])
    b.add(f"{'max' if maximum else 'avg'}_pool{rank}d", attributes,
          lambda: kinds[rank - 1](kernel, stride, padding, ceil_mode=ceil_mode),
          (b.shape[0], *sizes))


def adaptive_pool(b):
    from torch import nn

    rank = spatial(b)
    if rank not in (1, 2, 3):
        return False
    sizes = [b.number(1, size) for size in b.shape[1:]]
    maximum = b.chance(0.5)
    kinds = ([nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d] if maximum else
             [nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d])
    b.add(f"adaptive_{'max' if maximum else 'avg'}_pool{rank}d", {"size": sizes},
          lambda: kinds[rank - 1](tuple(sizes) if rank > 1 else sizes[0]), (b.shape[0], *sizes))


def batch_norm(b):
    from torch import nn

    rank = spatial(b)
    if rank not in (0, 1, 2, 3):
        return False
    channels, affine = b.shape[0], b.chance(0.8)
    kind = {0: nn.BatchNorm1d, 1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}[rank]
    b.add("batch_norm", {"affine": affine}, lambda: kind(channels, affine=affine), b.shape)


def group_norm(b):
    from torch import nn

    channels, affine = b.shape[0], b.chance(0.8)
    if len(b.shape) < 2:
        return False
    groups = b.one_of(*[g for g in (1, 2, 3, channels) if channels % g == 0])
    b.add("group_norm", {"groups": groups, "affine": affine},
          lambda: nn.GroupNorm(groups, channels, affine=affine), b.shape)


def instance_norm(b):
    from torch import nn

    rank = spatial(b)
    if rank not in (1, 2, 3) or all(size == 1 for size in b.shape[1:]):
        return False
    channels, affine = b.shape[0], b.chance(0.5)
    b.add("instance_norm", {"affine": affine},
          lambda: [nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d][rank - 1](
              channels, affine=affine), b.shape)


def layer_norm(b):
    from torch import nn

    axes, affine = b.number(1, len(b.shape)), b.chance(0.8)
    shape = b.shape[len(b.shape) - axes:]
    b.add("layer_norm", {"axes": axes, "affine": affine},
          lambda: nn.LayerNorm(shape, elementwise_affine=affine), b.shape)


def rms_norm(b):
    from torch import nn

    features, affine = b.shape[-1], b.chance(0.8)
    b.add("rms_norm", {"affine": affine},
          lambda: nn.RMSNorm(features, elementwise_affine=affine, eps=1e-6), b.shape)


def local_response_norm(b):
    from torch import nn

    if spatial(b) != 2:
        return False
    size = b.number(2, 5)
    b.add("local_response_norm", {"size": size}, lambda: nn.LocalResponseNorm(size), b.shape)


def activation(b):
    from torch import nn

    in_place = b.in_place()
    kinds = {"relu": lambda: nn.ReLU(in_place), "relu6": lambda: nn.ReLU6(in_place),
             "leaky_relu": lambda: nn.LeakyReLU(inplace=in_place),
             "elu": lambda: nn.ELU(inplace=in_place), "silu": lambda: nn.SiLU(in_place),
             "mish": lambda: nn.Mish(in_place), "hardswish": lambda: nn.Hardswish(in_place),
             "hardsigmoid": lambda: nn.Hardsigmoid(in_place)}
    plain = {"sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "softplus": nn.Softplus, "gelu": nn.GELU}
    name = b.one_of(*kinds, *plain)
    attributes = {"in_place": in_place} if name in kinds else {}
    b.add(name, attributes, kinds.get(name) or plain[name], b.shape, saved_by_producer=True)


def prelu(b):
    from torch import nn

    parameters = b.one_of(1, b.shape[0])
    b.add("prelu", {"parameters": parameters}, lambda: nn.PReLU(parameters), b.shape)


def glu(b):
    axes = [i for i, size in enumerate(b.shape) if size % 2 == 0]
    if not axes:
        return False
    axis = b.one_of(*axes)
    shape = list(b.shape)
    shape[axis] //= 2
    b.add("glu", {"axis": axis + 1}, lambda: lambda x: functional().glu(x, axis + 1), shape)


def softmax(b):
    axis = b.number(1, len(b.shape))
    logarithmic = b.chance(0.4)
    b.add("log_softmax" if logarithmic else "softmax", {"axis": axis},
          lambda: lambda x: (functional().log_softmax if logarithmic else
                             functional().softmax)(x, axis),
          b.shape, saved_by_producer=True)


def dropout(b):
    from torch import nn

    p = b.one_of(0.1, 0.5)
    b.add("dropout", {"p": p}, lambda: nn.Dropout(p), b.shape)


def drop_path(b):
    def make():
        import torchvision

        return torchvision.ops.StochasticDepth(0.2, "row")

    b.add("drop_path", {"p": 0.2}, make, b.shape)


def feature_dropout(b):
    from torch import nn

    if spatial(b) != 2:
        return False
    b.add("feature_dropout", {"p": 0.3}, lambda: nn.Dropout2d(0.3), b.shape)


def arithmetic(b):
    """With an earlier value of the same shape."""
    others = [name for name, shape in b.shapes.items()
              if shape == b.shape and name not in ("x", b.current) and name in b.free]
    if not others:
        return False
    import operator

    kinds = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
    name, other = b.one_of(*kinds), b.one_of(*others)
    b.add(name, {}, lambda: kinds[name], b.shape, [b.current, other],
          saved_by_producer=name == "div")


def join(b):
    import torch

    others = [name for name, shape in b.shapes.items()
              if shape == b.shape and name not in ("x", b.current) and name in b.free]
    if not others or len(b.shape) > 3:
        return False
    other, axis = b.one_of(*others), b.number(1, len(b.shape))
    shape = list(b.shape)
    if b.chance(0.6):
        shape[axis - 1] *= 2
        b.add("concat", {"axis": axis}, lambda: lambda x, y: torch.cat([x, y], axis), shape,
              [b.current, other])
    else:
        shape.insert(axis - 1, 2)
        b.add("stack", {"axis": axis}, lambda: lambda x, y: torch.stack([x, y], axis), shape,
              [b.current, other])


def scale(b):
    import torch

    if b.chance(0.5):
        factor = b.one_of(0.5, 2.0, -1.5)
        b.add("scale", {"factor": factor}, lambda: lambda x: x * factor, b.shape)
        return None
    shape = [b.shape[0], *[1] * (len(b.shape) - 1)]

    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(shape))

        def forward(self, x):
            return x * self.weight

    b.add("scale", {"learned": True, "shape": shape}, Scale, b.shape)


def power(b):
    exponent = b.one_of(2.0, 3.0, 0.5)
    b.add("pow", {"exponent": exponent}, lambda: lambda x: x ** exponent, b.shape)


def clamp(b):
    b.add("clamp", {"minimum": -1.0, "maximum": 1.0}, lambda: lambda x: x.clamp(-1.0, 1.0), b.shape)


def reduction(b):
    import torch

    if len(b.shape) < 2:
        return False
    axis, keep, total = b.number(1, len(b.shape)), b.chance(0.5), b.chance(0.4)
    shape = list(b.shape)
    if keep:
        shape[axis - 1] = 1
    else:
        del shape[axis - 1]
    function = torch.sum if total else torch.mean
    b.add("sum" if total else "mean", {"axes": [axis], "keep": keep},
          lambda: lambda x: function(x, axis, keepdim=keep), shape)


def expand(b):
    axes = [i for i, size in enumerate(b.shape) if size == 1]
    if not axes:
        return False
    shape = list(b.shape)
    shape[b.one_of(*axes)] = b.number(2, 4)
    b.add("expand", {"shape": ["batch", *shape]}, lambda: lambda x: x.expand(-1, *shape), shape,
          saved_by_producer=True)


def transpose(b):
    axes = list(range(1, len(b.shape) + 1))
    b.random.shuffle(axes)
    b.add("transpose", {"axes": [0, *axes]}, lambda: lambda x: x.permute(0, *axes),
          [b.shape[a - 1] for a in axes], saved_by_producer=True)


def reshape(b):
    if len(b.shape) < 2:
        return False
    i = b.number(0, len(b.shape) - 2)
    shape = [*b.shape[:i], b.shape[i] * b.shape[i + 1], *b.shape[i + 2:]]
    b.add("reshape", {"shape": ["batch", *shape]},
          lambda: lambda x: x.reshape(x.shape[0], *shape), shape, saved_by_producer=True)


def roll(b):
    import torch

    axis, shift = b.number(1, len(b.shape)), b.number(-2, 2)
    b.add("roll", {"shifts": [shift], "axes": [axis]},
          lambda: lambda x: torch.roll(x, (shift,), (axis,)), b.shape)


def slice_of(b):
    axis = b.number(1, len(b.shape))
    size = b.shape[axis - 1]
    if size < 3:
        return False
    start = b.number(0, 1)
    length = b.number(1, size - start)
    shape = list(b.shape)
    shape[axis - 1] = length
    b.add("slice", {"axis": axis, "start": start, "length": length},
          lambda: lambda x: x.narrow(axis, start, length), shape, saved_by_producer=True)


def pad(b):
    rank = spatial(b)
    if rank not in (1, 2, 3) or min(b.shape[1:]) < 2:
        return False
    before, after = [b.number(0, 1) for _ in range(rank)], [b.number(0, 1) for _ in range(rank)]
    mode = b.one_of("constant", "reflect", "replicate", "circular")
    widths = [w for pair in reversed(list(zip(before, after))) for w in pair]
    shape = [b.shape[0], *[s + x + y for s, x, y in zip(b.shape[1:], before, after)]]
    outer = [0, 0] if mode == "constant" else []  # the other modes name the padded axes alone
    b.add("pad", {"before": [*outer, *before], "after": [*outer, *after], "mode": mode},
          lambda: lambda x: functional().pad(x, widths, mode), shape)


def upsample(b):
    from torch import nn

    rank = spatial(b)
    if rank not in (1, 2, 3) or max(b.shape[1:]) > 10:
        return False
    linear_mode = ["linear", "bilinear", "trilinear"][rank - 1]
    mode = b.one_of("nearest", linear_mode)
    b.add("upsample", {"scale": 2, "mode": mode},
          lambda: nn.Upsample(scale_factor=2, mode=mode),
          (b.shape[0], *[2 * size for size in b.shape[1:]]))


def shuffle(b):
    from torch import nn

    if spatial(b) != 2:
        return False
    if b.shape[0] % 4 == 0:
        b.add("pixel_shuffle", {"factor": 2}, lambda: nn.PixelShuffle(2),
              (b.shape[0] // 4, 2 * b.shape[1], 2 * b.shape[2]))
    elif b.shape[1] % 2 == 0 and b.shape[2] % 2 == 0:
        b.add("pixel_unshuffle", {"factor": 2}, lambda: nn.PixelUnshuffle(2),
              (b.shape[0] * 4, b.shape[1] // 2, b.shape[2] // 2))
    else:
        return False


def self_attention(b):
    """Heads cut out of the last axis of a sequence, attention of the value with itself."""
    if len(b.shape) != 2 or b.shape[1] % 2 != 0:
        return False
    length, features = b.shape
    causal = b.chance(0.5)
    b.add("reshape", {"shape": ["batch", length, 2, features // 2]},
          lambda: lambda x: x.view(x.shape[0], length, 2, features // 2),
          (length, 2, features // 2), saved_by_producer=True)
    b.add("transpose", {"axes": [0, 2, 1, 3]}, lambda: lambda x: x.transpose(1, 2),
          (2, length, features // 2), saved_by_producer=True)
    b.add("scaled_dot_product_attention", {"causal": causal},
          lambda: lambda q, k, v: functional().scaled_dot_product_attention(q, k, v,
                                                                            is_causal=causal),
          (2, length, features // 2), [b.current] * 3, saved_by_producer=True)


OPERATORS = [convolution, convolution, same_convolution, transposed_convolution, linear, linear,
             pool, pool, adaptive_pool, batch_norm, group_norm, instance_norm, layer_norm, rms_norm,
             local_response_norm, activation, activation, activation, prelu, glu, softmax, dropout,
             drop_path, feature_dropout, arithmetic, arithmetic, join, scale, power, clamp,
             reduction, expand, transpose, reshape, roll, slice_of, pad, upsample, shuffle,
             self_attention]


def random_case(seed):
    """A Case with up to nine operators between its ends."""
    b = Builder(seed)
    rank = b.one_of(0, 1, 1, 2, 2, 2, 3)
    shape = {0: (6,), 1: (4, 8), 2: (4, 9, 8), 3: (2, 5, 4, 6)}[rank]
    b.shapes["x"] = shape
    b.free = set()
    (convolution if rank and b.chance(0.6) else linear)(b)
    for _ in range(b.number(2, 9)):
        b.free = {name for name in b.shapes if not overwritten(b, name)}
        size = 1
        for extent in b.shape:
            size *= extent
        if size > 4000 or len(b.shape) > 4:
            break
        b.one_of(*OPERATORS)(b)
    linear(b)
    inputs = {"x": "[" + ", ".join(["batch", *map(str, shape)]) + "]"}
    return operator_saved.Case(f"random {seed}", inputs,
                               [line(*entry) for entry in b.lines],
                               lambda: network(b.steps), batch=b.one_of(2, 3))


def overwritten(b, name):
    """Whether a layer that works in place has had the value: nobody may read it after that."""
    return any(attributes.get("in_place") and name == attributes["from"]
               for _, attributes in b.lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1, help="of the first network")
    parser.add_argument("--also", type=int, nargs="*", default=[], help="further seeds")
    parser.add_argument("file", type=pathlib.Path)
    options = parser.parse_args()
    fake_cuda.relaunch_with_shim()

    import torch

    import json_format

    torch.set_num_threads(1)
    rows, refused = [], 0
    for seed in [*range(options.seed, options.seed + options.count), *options.also]:
        case = random_case(seed)
        try:
            with fake_cuda.fake_cuda():
                rows.append(operator_saved.record(case))
        except RuntimeError as error:  # what PyTorch itself refuses is no network
            refused += 1
            print(f"{case.name}: {str(error).splitlines()[0]}", flush=True)
        gc.collect()
    json_format.write(options.file, {
        "schema_version": 1,
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "rows": rows})
    print(f"{len(rows)} networks, {refused} that PyTorch refused")


if __name__ == "__main__":
    main()
