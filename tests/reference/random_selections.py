"""Random layers of elements chosen by index or mask, of extrema and norms along axes, and of further
functions of one, two or three tensors."""

import math


def function(b):
    """Of each element by itself."""
    import torch
    import torch.nn.functional as functional

    plain = {"rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "abs": torch.abs,
             "sin": torch.sin, "cos": torch.cos, "erf": torch.erf, "log1p": torch.log1p,
             "expm1": torch.expm1, "log_sigmoid": functional.logsigmoid}
    kinds = {"selu": functional.selu, "celu": functional.celu, "hardtanh": functional.hardtanh}
    name = b.one_of(*plain, *kinds)
    if name in plain:
        b.add(name, {}, lambda: plain[name], b.shape, producer_saves=True)
        return
    in_place = b.may_overwrite()
    b.add(name, {"in_place": in_place},
          lambda: lambda x: kinds[name](x, inplace=in_place), b.shape, producer_saves=True)


def bounded(b):
    side = b.one_of("minimum", "maximum")
    word = {"minimum": "min", "maximum": "max"}[side]
    b.add("clamp", {side: 0.5}, lambda: lambda x: x.clamp(**{word: 0.5}), b.shape)


def of_three(b):
    """A product or quotient of two, added to a third."""
    import torch

    others = b.others(lambda shape: shape == b.shape)
    if not others:
        return False
    name, value = b.one_of("addcmul", "addcdiv"), b.one_of(1, 0.5)
    inputs = [b.current, b.one_of(*others), b.one_of(*others)]
    b.random.shuffle(inputs)
    b.add(name, {} if value == 1 else {"value": value},
          lambda: lambda x, y, z: getattr(torch, name)(x, y, z, value=value), b.shape, inputs)


# Along axes.

def reduced(shape, axes, keep):
    return [1 if i + 1 in axes else size for i, size in enumerate(shape)
            if keep or i + 1 not in axes]


def statistic(b):
    import torch

    if len(b.shape) < 2:
        return False
    count = 2 if len(b.shape) > 2 and b.chance(0.3) else 1
    axes = sorted(b.random.sample(range(1, len(b.shape) + 1), count))
    keep, name, more = b.chance(0.5), b.one_of("amax", "amin", "var", "std", "norm"), {}
    if name in ("var", "std"):
        more = {"correction": b.one_of(0, 1)}
    if name == "norm":
        more = {"p": b.one_of(1, 2, 3, 1.5, 0.5, ".inf")}

    def statistic(x):
        if name == "norm":
            p = math.inf if more["p"] == ".inf" else more["p"]
            return torch.linalg.vector_norm(x, p, axes, keep)
        if more:
            return getattr(torch, name)(x, axes, correction=more["correction"], keepdim=keep)
        return getattr(torch, name)(x, axes, keepdim=keep)

    b.add(name, {"axes": axes, "keep": keep, **more}, lambda: statistic,
          reduced(b.shape, axes, keep), producer_saves=True)


def extremum(b):
    """The values alone of a maximum, of which PyTorch returns two tensors."""
    import torch

    if len(b.shape) < 2:
        return False
    axis, keep, name = b.number(1, len(b.shape)), b.chance(0.5), b.one_of("max", "min")
    shape = reduced(b.shape, [axis], keep)
    values, places = b.add_several(
        name, {"axis": axis, "keep": keep},
        lambda: lambda x: tuple(getattr(torch, name)(x, axis, keepdim=keep)), [shape, shape])
    b.shapes[places] = None
    b.current = values


def largest(b):
    axis = b.number(1, len(b.shape))
    count, largest = b.number(1, b.shape[axis - 1]), b.chance(0.7)
    shape = list(b.shape)
    shape[axis - 1] = count
    values, places = b.add_several(
        "topk", {"count": count, "axis": axis, "largest": largest},
        lambda: lambda x: tuple(x.topk(count, axis, largest=largest)), [shape, shape])
    b.shapes[places] = None
    b.current = values


def running_sum(b):
    axis = b.number(1, len(b.shape))
    b.add("cumsum", {"axis": axis}, lambda: lambda x: x.cumsum(axis), b.shape)


def place_of_extremum(b):
    """Integers, by which a table is read."""
    import torch
    from torch import nn

    if len(b.shape) < 2:
        return False
    axis, name = b.number(1, len(b.shape)), b.one_of("argmax", "argmin")
    rows, features = b.shape[axis - 1], b.number(2, 5)
    shape = reduced(b.shape, [axis], False)
    places = b.add(name, {"axis": axis}, lambda: lambda x: getattr(torch, name)(x, axis), shape)
    b.shapes[places] = None
    b.add("embedding", {"count": rows, "features": features},
          lambda: nn.Embedding(rows, features), [*shape, features])


# By index and mask.

def integers(b, sizes):
    return b.add_input(f"i{len(b.inputs)}", sizes, "int64")


def mask(b, shape):
    return b.add_input(f"m{len(b.inputs)}", ["batch", *shape], "bool")


def chosen(b):
    """Positions of one axis."""
    axis, count = b.number(1, len(b.shape)), b.number(1, 5)
    places, shape = integers(b, [count]), list(b.shape)
    shape[axis - 1] = count
    name = b.one_of("index", "index_select")
    cut = (slice(None),) * axis

    def select(x, i):
        return x[(*cut, i)] if name == "index" else x.index_select(axis, i)

    b.add(name, {"axis": axis}, lambda: select, shape, [b.current, places])


def gathered(b):
    axis = b.number(1, len(b.shape))
    shape = list(b.shape)
    shape[axis - 1] = b.number(1, 5)
    places = integers(b, ["batch", *shape])
    b.add("gather", {"axis": axis}, lambda: lambda x, i: x.gather(axis, i), shape,
          [b.current, places])


def added_at(b):
    """Another tensor of the shape, its elements added where an index says."""
    others = b.others(lambda shape: shape == b.shape)
    if not others:
        return False
    axis, name = b.number(1, len(b.shape)), b.one_of("index_add", "scatter_add")
    places = integers(b, [b.shape[axis - 1]] if name == "index_add" else ["batch", *b.shape])
    b.add(name, {"axis": axis}, lambda: lambda x, i, y: getattr(x, name)(axis, i, y), b.shape,
          [b.current, places, b.one_of(*others)])


def broadcast_mask(b):
    return mask(b, [size if b.chance(0.7) else 1 for size in b.shape])


def filled(b):
    value = b.one_of(0, "-.inf", 1.5)
    number = -math.inf if value == "-.inf" else value
    b.add("masked_fill", {"value": value}, lambda: lambda x, m: x.masked_fill(m, number), b.shape,
          [b.current, broadcast_mask(b)])


def where(b):
    import torch

    others = b.others(lambda shape: shape == b.shape)
    if not others:
        return False
    inputs = [broadcast_mask(b), b.current, b.one_of(*others)]
    b.add("where", {}, lambda: torch.where, b.shape, inputs)


def compared(b):
    """A mask by a comparison, for what it was made from."""
    start = b.current
    operation, value = b.one_of("gt", "lt", "ge"), 0.5
    m = b.add("compare", {"operation": operation, "value": value},
              lambda: lambda x: getattr(x, operation)(value), b.shape)
    b.shapes[m] = None
    b.add("masked_fill", {"value": 0}, lambda: lambda x, m: x.masked_fill(m, 0), b.shapes[start],
          [start, m])


def triangle(b):
    import torch

    if len(b.shape) < 2:
        return False
    name, diagonal = b.one_of("tril", "triu"), b.number(-1, 1)
    b.add(name, {"diagonal": diagonal}, lambda: lambda x: getattr(torch, name)(x, diagonal),
          b.shape)


# Repetition and windows.

def repeated(b):
    repeats = [b.one_of(1, 1, 2, 3) for _ in b.shape]
    b.add("tile", {"repeats": [1, *repeats]}, lambda: lambda x: x.repeat(1, *repeats),
          [size * r for size, r in zip(b.shape, repeats)])


def interleaved(b):
    axis, repeats = b.number(1, len(b.shape)), b.number(2, 3)
    shape = list(b.shape)
    shape[axis - 1] *= repeats
    b.add("repeat_interleave", {"repeats": repeats, "axis": axis},
          lambda: lambda x: x.repeat_interleave(repeats, axis), shape)


def columns(b):
    import torch.nn.functional as functional

    if len(b.shape) != 3 or min(b.shape[1:]) < 2:
        return False
    kernel, stride, padding = b.number(1, 2), b.number(1, 2), b.number(0, 1)
    channels, *sizes = b.shape
    windows = math.prod((size + 2 * padding - kernel) // stride + 1 for size in sizes)
    b.add("unfold", {"kernel": kernel, "stride": stride, "padding": padding},
          lambda: lambda x: functional.unfold(x, kernel, padding=padding, stride=stride),
          (channels * kernel ** 2, windows))


def product(b):
    """An einsum with a parameter or of the tensor alone."""
    import torch
    from torch import nn

    if len(b.shape) != 2:
        return False
    rows, columns = b.shape
    size = b.number(2, 6)

    class Table(nn.Module):
        def __init__(self, *shape):
            super().__init__()
            self.value = nn.Parameter(torch.zeros(*shape))

        def forward(self):
            return self.value

    equation, table, shape = b.one_of(
        ("bij->bji", None, (columns, rows)), ("bij->bi", None, (rows,)),
        ("bij,kj->bik", (size, columns), (rows, size)),
        ("bij,jk->bik", (columns, size), (rows, size)),
        ("bij,ikj->bik", (rows, size, columns), (rows, size)),
        ("bij,ij->bij", (rows, columns), (rows, columns)))
    inputs = [b.current]
    if table:
        inputs.append(b.add("parameter", {"shape": list(table)}, lambda: Table(*table), table, []))
        b.shapes[inputs[1]] = None
    b.add("einsum", {"equation": f'"{equation}"'},
          lambda: lambda *tensors: torch.einsum(equation, *tensors), shape, inputs,
          producer_saves=True)


DRAWN = [function, function, function, bounded, of_three, statistic, statistic, extremum, largest,
         running_sum, place_of_extremum, chosen, chosen, gathered, added_at, filled, where,
         compared, triangle, repeated, interleaved, columns, product]
