"""Random layers that change the shape or the format: products, reductions, views, cuts and joins."""

from random_elements import FUNCTIONS


def linear(b):
    from torch import nn

    inputs, features, bias = b.shape[-1], b.number(1, 9), b.chance(0.6)
    b.add("linear", {"features": features, "bias": bias},
          lambda: nn.Linear(inputs, features, bias), (*b.shape[:-1], features))


def matmul(b):
    """With an earlier value, or itself transposed."""
    import torch

    if len(b.shape) < 2:
        return False
    *outer, rows, columns = b.shape
    partners = [(name, shape, flip) for name in b.others(lambda s: len(s) == len(b.shape))
                for shape in [b.shapes[name]] for flip in (False, True)
                if shape[:-2] == tuple(outer) and shape[-1 if flip else -2] == columns]
    partners.append((b.current, b.shape, True))
    other, shape, flip = b.one_of(*partners)
    turned = b.chance(0.3) and (other == b.current or shape[-1 if flip else -2] == rows)
    if turned and other == b.current:
        flip = False  # x^T x
    attributes = {"transpose_a": turned, "transpose_b": flip}

    def product(x, y):
        return torch.matmul(x.transpose(-1, -2) if turned else x,
                            y.transpose(-1, -2) if flip else y)

    result = (*outer, columns if turned else rows, shape[-2 if flip else -1])
    b.add("matmul", attributes, lambda: product, result, [b.current, other])


def reduction(b):
    import torch

    if len(b.shape) < 2:
        return False
    count = 2 if len(b.shape) > 2 and b.chance(0.3) else 1
    axes = sorted(b.random.sample(range(1, len(b.shape) + 1), count))
    keep, name = b.chance(0.5), b.one_of("sum", "mean", "mean")
    shape = [1 if i + 1 in axes else size for i, size in enumerate(b.shape)
             if keep or i + 1 not in axes]
    b.add(name, {"axes": axes, "keep": keep},
          lambda: lambda x: getattr(torch, name)(x, axes, keepdim=keep), shape)


# Views.

def expand(b):
    axes = [i for i, size in enumerate(b.shape) if size == 1]
    if not axes:
        return False
    shape = list(b.shape)
    shape[b.one_of(*axes)] = b.number(2, 4)
    b.add("expand", {"shape": ["batch", *shape]}, lambda: lambda x: x.expand(-1, *shape), shape,
          producer_saves=True)


def transpose(b):
    axes = list(range(1, len(b.shape) + 1))
    b.random.shuffle(axes)
    b.add("transpose", {"axes": [0, *axes]}, lambda: lambda x: x.permute(0, *axes),
          [b.shape[a - 1] for a in axes], producer_saves=True)


def contiguous(b):
    if b.chance(0.7):
        transpose(b)
    b.add("contiguous", {}, lambda: lambda x: x.contiguous(), b.shape, producer_saves=True)


def joined_axes(b):
    """Two neighbouring axes as one."""
    if len(b.shape) < 2:
        return False
    i = b.number(0, len(b.shape) - 2)
    shape = [*b.shape[:i], b.shape[i] * b.shape[i + 1], *b.shape[i + 2:]]
    if b.chance(0.6):
        b.add("reshape", {"shape": ["batch", *shape]},
              lambda: lambda x: x.reshape(x.shape[0], *shape), shape, producer_saves=True)
    else:
        b.add("flatten", {"start": i + 1, "end": i + 2}, lambda: lambda x: x.flatten(i + 1, i + 2),
              shape, producer_saves=True)


def parted_axis(b):
    """One axis as two."""
    axes = [i for i, size in enumerate(b.shape) if size > 2 and size % 2 == 0]
    if not axes or len(b.shape) > 3:
        return False
    i = b.one_of(*axes)
    shape = [*b.shape[:i], 2, b.shape[i] // 2, *b.shape[i + 1:]]
    b.add("reshape", {"shape": ["batch", *shape]},
          lambda: lambda x: x.reshape(x.shape[0], *shape), shape, producer_saves=True)


def part(b):
    """A part of an axis, perhaps with a step."""
    axis = b.number(1, len(b.shape))
    size = b.shape[axis - 1]
    if size < 3:
        return False
    start, step = b.number(0, 1), b.one_of(1, 1, 2)
    length = b.number(1, size - start)
    shape = list(b.shape)
    shape[axis - 1] = -(-length // step)
    cut = (slice(None),) * axis + (slice(start, start + length, step),)

    def narrow(x):
        return x.narrow(axis, start, length) if step == 1 else x[cut]

    b.add("slice", {"axis": axis, "start": start, "length": length, "step": step},
          lambda: narrow, shape, producer_saves=True)


def split(b):
    """Parts of an axis, of which one goes on, or two are put together again."""
    import torch

    axis = b.number(1, len(b.shape))
    size = b.shape[axis - 1]
    if size < 2:
        return False
    if size % 2 == 0 and b.chance(0.6):
        attributes, sizes = {"parts": 2, "axis": axis}, [size // 2] * 2
        function = lambda x: tuple(x.chunk(2, axis))
    else:
        first = b.number(1, size - 1)
        sizes = [first, size - first]
        attributes, function = {"sizes": sizes, "axis": axis}, lambda x: x.split(sizes, axis)
    shapes = [(*b.shape[:axis - 1], s, *b.shape[axis:]) for s in sizes]
    parts = b.add_several("split", attributes, lambda: function, shapes)
    b.current = b.one_of(*parts)
    if b.chance(0.6):
        if shapes[0] == shapes[1] and b.chance(0.5):
            name = b.one_of(*FUNCTIONS)
            b.add(name, {}, lambda: FUNCTIONS[name], shapes[0], parts)
        else:
            b.add("concat", {"axis": axis}, lambda: lambda x, y: torch.cat([x, y], axis),
                  (*b.shape[:axis - 1], size, *b.shape[axis:]), parts[::-1])


def identity(b):
    from torch import nn

    b.add("identity", {}, nn.Identity, b.shape, producer_saves=True)


# Copies.

def join(b):
    """With an earlier value: along an axis where they may differ, or along a new one."""
    import torch

    def differing(shape):
        return [i for i, (x, y) in enumerate(zip(shape, b.shape)) if x != y]

    others = b.others(lambda s: len(s) == len(b.shape) and len(differing(s)) < 2)
    if not others:
        return False
    other = b.one_of(*others)
    differ = differing(b.shapes[other])
    if differ or b.chance(0.6) or len(b.shape) > 3:
        axis = differ[0] + 1 if differ else b.number(1, len(b.shape))
        shape = list(b.shape)
        shape[axis - 1] += b.shapes[other][axis - 1]
        b.add("concat", {"axis": axis}, lambda: lambda x, y: torch.cat([x, y], axis), shape,
              [b.current, other])
    else:
        axis = b.number(1, len(b.shape))
        shape = [*b.shape[:axis - 1], 2, *b.shape[axis - 1:]]
        b.add("stack", {"axis": axis}, lambda: lambda x, y: torch.stack([x, y], axis), shape,
              [b.current, other])


def roll(b):
    import torch

    axis, shift = b.number(1, len(b.shape)), b.number(-2, 2)
    b.add("roll", {"shifts": [shift], "axes": [axis]},
          lambda: lambda x: torch.roll(x, (shift,), (axis,)), b.shape)


def cast(b):
    """To another format, a function there, and back."""
    import torch
    import torch.nn.functional as functional

    own = {"bf16": "bfloat16", "fp16": "float16"}.get(b.precision, "float32")
    other = b.one_of(*{"float32", "float16", "bfloat16", "float64"} - {own}
                     if not b.autocast else ("float16", "bfloat16"))

    def to(name):
        return b.add("cast", {"dtype": name}, lambda: lambda x: x.to(getattr(torch, name)), b.shape)

    name = b.one_of("relu", "silu", "gelu")
    between = [to(other), b.add(name, {}, lambda: getattr(functional, name), b.shape)]
    to(own)
    for value in between:
        b.shapes[value] = None  # later layers read no such format


DRAWN = [linear, linear, linear, matmul, reduction, reduction, expand, expand, transpose, transpose,
         contiguous, joined_axes, joined_axes, parted_axis, part, part, split, identity, join, join,
         roll, cast]
