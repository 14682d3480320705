"""Random layers that keep the shape: activations, norms, dropout, arithmetic."""

import operator


def activation(b):
    import torch
    from torch import nn

    in_place = b.may_overwrite()
    kinds = {"relu": lambda: nn.ReLU(in_place), "relu6": lambda: nn.ReLU6(in_place),
             "leaky_relu": lambda: nn.LeakyReLU(inplace=in_place),
             "elu": lambda: nn.ELU(inplace=in_place), "silu": lambda: nn.SiLU(in_place),
             "mish": lambda: nn.Mish(in_place), "hardswish": lambda: nn.Hardswish(in_place),
             "hardsigmoid": lambda: nn.Hardsigmoid(in_place),
             "sigmoid": lambda: torch.sigmoid_ if in_place else torch.sigmoid,
             "tanh": lambda: torch.tanh_ if in_place else torch.tanh}
    plain = {"softplus": nn.Softplus, "gelu": nn.GELU, "exp": lambda: torch.exp,
             "log": lambda: torch.log, "sqrt": lambda: torch.sqrt}
    name = b.one_of(*kinds, *plain)
    b.add(name, {"in_place": in_place} if name in kinds else {}, kinds.get(name) or plain[name],
          b.shape, producer_saves=True)


def tanh_gelu(b):
    from torch import nn

    b.add("gelu", {"approximate": "tanh"}, lambda: nn.GELU("tanh"), b.shape)


def prelu(b):
    from torch import nn

    parameters = b.one_of(1, b.shape[0])
    b.add("prelu", {"parameters": parameters}, lambda: nn.PReLU(parameters), b.shape)


def gated(b):
    """glu and swiglu of one tensor's halves."""
    import torch.nn.functional as functional

    axes = [i for i, size in enumerate(b.shape) if size % 2 == 0]
    if not axes:
        return False
    axis = b.one_of(*axes)
    shape = list(b.shape)
    shape[axis] //= 2

    def swiglu(x):
        gate, up = x.chunk(2, axis + 1)
        return functional.silu(gate) * up

    name = b.one_of("glu", "swiglu")
    b.add(name, {"axis": axis + 1},
          lambda: swiglu if name == "swiglu" else lambda x: functional.glu(x, axis + 1), shape)


def swiglu(b):
    """Of two tensors, as LlamaMLP has it: no variable holds the gate while it is multiplied."""
    import torch.nn.functional as functional

    others = b.others(lambda shape: shape == b.shape)
    if not others:
        return False
    gate = b.current
    name = b.add("swiglu", {}, lambda: operator.mul, b.shape, [gate, b.one_of(*others)])
    _, make, (_, up) = b.steps.pop()
    b.steps.append((f"{name}.silu", lambda: functional.silu, [gate]))
    b.steps.append((name, make, [f"{name}.silu", up]))


def softmax(b):
    import torch.nn.functional as functional

    axis, name = b.number(1, len(b.shape)), b.one_of("softmax", "softmax", "log_softmax")
    b.add(name, {"axis": axis}, lambda: lambda x: getattr(functional, name)(x, axis), b.shape,
          producer_saves=True)


# Norms.

def batch_norm(b):
    from torch import nn

    if len(b.shape) > 4:
        return False
    channels, settings = b.shape[0], {"affine": b.chance(0.8)}
    if b.chance(0.15):
        settings["track_running_stats"] = False
    kind = [nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d][len(b.shape) - 1]
    b.add("batch_norm", settings, lambda: kind(channels, **settings), b.shape)


def group_norm(b):
    from torch import nn

    channels, affine = b.shape[0], b.chance(0.8)
    groups = b.one_of(*[g for g in (1, 2, 3, channels) if channels % g == 0])
    b.add("group_norm", {"groups": groups, "affine": affine},
          lambda: nn.GroupNorm(groups, channels, affine=affine), b.shape)


def instance_norm(b):
    from torch import nn

    rank = len(b.shape) - 1
    if rank not in (1, 2, 3) or all(size == 1 for size in b.shape[1:]):
        return False
    channels = b.shape[0]
    settings = {"affine": b.chance(0.5), "track_running_stats": b.chance(0.2)}
    kind = [nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d][rank - 1]
    b.add("instance_norm", settings, lambda: kind(channels, **settings), b.shape)


def layer_norm(b):
    from torch import nn

    axes, affine, bias = b.number(1, len(b.shape)), b.chance(0.8), b.chance(0.8)
    shape = b.shape[len(b.shape) - axes:]
    b.add("layer_norm", {"axes": axes, "affine": affine, "bias": bias},
          lambda: nn.LayerNorm(shape, elementwise_affine=affine, bias=bias), b.shape)


def rms_norm(b):
    from torch import nn

    axes, affine = b.number(1, len(b.shape)), b.chance(0.8)
    shape = b.shape[len(b.shape) - axes:]
    b.add("rms_norm", {"axes": axes, "affine": affine},
          lambda: nn.RMSNorm(shape, elementwise_affine=affine, eps=1e-6), b.shape)


def composite_rms_norm(b):
    def make():
        from transformers.models.llama.modeling_llama import LlamaRMSNorm

        return LlamaRMSNorm(features)

    features = b.shape[-1]
    b.add("rms_norm", {"implementation": "composite"}, make, b.shape)


def local_response_norm(b):
    from torch import nn

    if len(b.shape) not in (2, 3, 4):
        return False
    size = b.number(2, 5)
    b.add("local_response_norm", {"size": size}, lambda: nn.LocalResponseNorm(size), b.shape)


# Dropout.

def dropout(b):
    from torch import nn

    p, in_place = b.one_of(0.1, 0.5), b.may_overwrite() and b.chance(0.5)
    b.add("dropout", {"p": p, "in_place": in_place}, lambda: nn.Dropout(p, in_place), b.shape)


def drop_path(b):
    def transformers(x):
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        noise = torch.empty(shape, dtype=x.dtype, device=x.device)
        return x.div(0.8) * noise

    import torch

    kind = b.one_of("torchvision", "timm", "transformers")
    if kind == "transformers" and b.mode == "inference":
        return False

    def make():
        if kind == "transformers":
            return transformers
        if kind == "timm":
            from timm.layers import DropPath

            return DropPath(0.2)
        from torchvision.ops import StochasticDepth

        return StochasticDepth(0.2, "row")

    b.add("drop_path", {"p": 0.2, "as": kind}, make, b.shape)


def feature_dropout(b):
    from torch import nn

    if len(b.shape) != 3:
        return False
    in_place = b.may_overwrite() and b.chance(0.5)
    b.add("feature_dropout", {"p": 0.3, "in_place": in_place},
          lambda: nn.Dropout2d(0.3, in_place), b.shape)


# Arithmetic.

FUNCTIONS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul,
             "div": operator.truediv}
OVERWRITING = {"add": operator.iadd, "sub": operator.isub, "mul": operator.imul,
               "div": operator.itruediv}


def broadcast(x, y):
    """The shape of the two together, or None."""
    if len(x) != len(y) or any(a != b and 1 not in (a, b) for a, b in zip(x, y)):
        return None
    return tuple(max(a, b) for a, b in zip(x, y))


def combine(b, name, other):
    """The current value and another, in either order."""
    shape = broadcast(b.shape, b.shapes[other])
    if shape == b.shape and b.may_overwrite() and b.chance(0.5):
        b.add(name, {"in_place": True}, lambda: OVERWRITING[name], shape, [b.current, other],
              producer_saves=name in ("mul", "div"))
        return
    inputs = [b.current, other]
    if b.chance(0.4):
        inputs.reverse()
    b.add(name, {}, lambda: FUNCTIONS[name], shape, inputs, producer_saves=name == "div")


def arithmetic(b):
    """With an earlier value."""
    others = b.others(lambda shape: broadcast(b.shape, shape))
    if not others:
        return False
    combine(b, b.one_of(*FUNCTIONS), b.one_of(*others))


def arithmetic_with_input(b):
    inputs = [name for name in b.inputs if name in b.free and broadcast(b.shape, b.shapes[name])]
    if not inputs:
        return False
    combine(b, b.one_of(*FUNCTIONS), b.one_of(*inputs))


def twice(b):
    """One tensor with itself."""
    name = b.one_of(*FUNCTIONS)
    b.add(name, {}, lambda: FUNCTIONS[name], b.shape, [b.current] * 2,
          producer_saves=name == "div")


def other_tensor(b):
    """With a parameter or a constant."""
    import torch
    from torch import nn

    value, current = b.current, b.shape
    shape = [size if b.chance(0.6) else 1 for size in current]
    kind = b.one_of("parameter", "constant", "buffer")

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            if kind == "parameter":
                self.value = nn.Parameter(torch.zeros(1, *shape))
            else:
                self.register_buffer("value", torch.ones(1, *shape))

        def forward(self):
            return self.value

    def constant():
        dtype = torch.get_default_dtype()
        return lambda: torch.full((1, *shape), 2.0, dtype=dtype, device="cuda")

    if kind == "parameter":
        b.add("parameter", {"shape": [1, *shape]}, Holder, shape, [], producer_saves=True)
    else:
        b.add("constant", {"shape": [1, *shape], "value": 2, "buffer": kind == "buffer"},
              Holder if kind == "buffer" else constant, shape, [], producer_saves=True)
    b.add(name := b.one_of(*FUNCTIONS), {}, lambda: FUNCTIONS[name], current, [value, b.current])


def scale(b):
    import torch

    in_place = b.may_overwrite()
    kind = b.one_of("factor", "offset", "from", "learned")
    if kind == "factor":
        factor = b.one_of(0.5, 2.0, -1.5)
        b.add("scale", {"factor": factor, "in_place": in_place},
              lambda: lambda x: x.mul_(factor) if in_place else x * factor, b.shape)
    elif kind == "offset":
        b.add("scale", {"offset": 1, "in_place": in_place},
              lambda: lambda x: x.add_(1) if in_place else x + 1, b.shape)
    elif kind == "from":
        b.add("scale", {"factor": -1, "offset": 1}, lambda: lambda x: 1 - x, b.shape)
    else:
        shape = [b.shape[0], *[1] * (len(b.shape) - 1)]

        class Scale(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(shape))

            def forward(self, x):
                return self.weight * x

        b.add("scale", {"learned": True, "shape": shape}, Scale, b.shape)


def power(b):
    exponent = b.one_of(2.0, 3.0, 0.5)
    b.add("pow", {"exponent": exponent}, lambda: lambda x: x ** exponent, b.shape)


def clamp(b):
    b.add("clamp", {"minimum": -1.0, "maximum": 1.0}, lambda: lambda x: x.clamp(-1.0, 1.0), b.shape)


NORMS = [batch_norm, batch_norm, group_norm, instance_norm, layer_norm, rms_norm,
         composite_rms_norm, local_response_norm]
DRAWN = [*NORMS, activation, activation, activation, activation, tanh_gelu, prelu, gated, swiglu,
         softmax, dropout, drop_path, feature_dropout, arithmetic, arithmetic, arithmetic,
         arithmetic_with_input, twice, other_tensor, scale, scale, power, clamp]
