"""Random layers of operators that came later: attention over four and five axes, einsum with
ellipses, diagonals and axes of one, functions whose gradient is 0, norms of other powers, elements
and parts that are put in the place of others."""

import math


def attention(b):
    """Of the tensor itself."""
    import torch.nn.functional as functional

    if len(b.shape) not in (3, 4):
        return False
    causal, scale = b.chance(0.3), b.one_of(0, 0.5)
    settings = {"causal": causal, **({"scale": scale} if scale else {})}
    start, names = b.current, []
    for _ in range(b.one_of(0, 0, 2)):  # another query, key or value than the tensor
        others = b.others(lambda shape: shape == b.shape)
        if others:
            names.append(b.one_of(*others))
    inputs = [start, *names] + [start] * (2 - len(names))
    b.random.shuffle(inputs)
    b.add("scaled_dot_product_attention", settings,
          lambda: lambda q, k, v: functional.scaled_dot_product_attention(
              q, k, v, is_causal=causal, scale=scale or None), b.shape, inputs,
          producer_saves=True)


def step(b):
    """A function that is constant between its steps, of what still has a gradient otherwise."""
    import torch

    name = b.one_of("sign", "floor", "ceil", "round", "trunc")
    start = b.current
    b.add(name, {}, lambda: getattr(torch, name), b.shape)
    if b.chance(0.7):
        inputs = [start, b.current]
        b.random.shuffle(inputs)
        b.add("add", {}, lambda: lambda x, y: x + y, b.shape, inputs)


def norm(b):
    import torch

    if len(b.shape) < 2:
        return False
    axis, keep = b.number(1, len(b.shape)), b.chance(0.5)
    written = b.one_of(-1, -2, -0.5, -3, "-.inf", ".inf", 0)
    p = {"-.inf": -math.inf, ".inf": math.inf}.get(written, written)
    shape = [1 if i + 1 == axis else size for i, size in enumerate(b.shape)
             if keep or i + 1 != axis]
    start, before = b.current, b.shape
    b.add("norm", {"p": written, "axes": [axis], "keep": keep},
          lambda: lambda x: torch.linalg.vector_norm(x, p, axis, keep), shape, producer_saves=True)
    if p == 0 and not keep:
        b.current = start  # nothing behind it would have a gradient
    elif p == 0:
        b.add("mul", {}, lambda: lambda x, y: x * y, before, [start, b.current],
              producer_saves=True)


def table_of(b, shape):
    from torch import nn
    import torch

    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.value = nn.Parameter(torch.zeros(*shape))

        def forward(self):
            return self.value

    current = b.current
    name = b.add("parameter", {"shape": list(shape)}, Table, shape, [])
    b.shapes[name] = None
    b.current = current
    return name


def einsum(b):
    """Of the tensor and perhaps a table, of which an axis may have one element."""
    import torch

    if not b.shape:
        return False
    *front, last = b.shape
    n, k = b.number(2, 4), b.number(2, 3)
    forms = [("...i,ij->...j", (last, n), (*front, n)), ("...i,ji", (n, last), (*front, n)),
             ("...i,...i->...i", (1, last), b.shape), ("...i,...i->...i", (last,), b.shape),
             ("...i,ik->k...", None, None), ("...i->...", None, tuple(front)),
             ("...i,i->...", (last,), tuple(front)), ("...i,ii->...i", (last, last), b.shape),
             ("...i,kii->...k", (k, last, last), (*front, k)),
             ("...i,jij->...j", (n, last, n), (*front, n)),
             ("...i,ijj->...i", (last, n, n), b.shape), ("...i,ij->...j", (1, n), (*front, n)),
             ("b...i,...ij->b...j", (*[1] * len(front), last, n), (*front, n)),
             ("...,...->...", (last,), b.shape)]
    if len(front) == 1:
        forms += [("bij,kj->bik", (n, 1), (front[0], n)), ("bij,ij->bij", (1, last), b.shape),
                  ("b...,...->b...", (1, last), b.shape),
                  ("bij,jkj->bki", (last, n, last), (n, front[0]))]
    if len(front) == 1 and front[0] == last:
        forms += [("bii->bi", None, (last,))] * 3
    if len(front) > 1 and front[0] == front[-1]:
        forms += [("bi...i->bi", None, (front[0],))]
    equation, table, shape = b.one_of(*[form for form in forms if form[2]])
    inputs = [b.current]
    if table:
        inputs.append(table_of(b, table))
    b.add("einsum", {"equation": f'"{equation}"'},
          lambda: lambda *tensors: torch.einsum(equation, *tensors), shape, inputs,
          producer_saves=True)


def put(b):
    """Elements, or a number, in the places that an index says."""
    axis, count = b.number(1, len(b.shape)), b.number(1, 3)
    shape = list(b.shape)
    count = min(count, shape[axis - 1])
    places = [*shape]
    places[axis - 1] = count
    indices = b.add_input(f"i{len(b.inputs)}", ["batch", *places], "int64")
    if b.chance(0.4):
        value = b.one_of(0, 0.5)
        b.add("scatter", {"axis": axis, "value": value},
              lambda: lambda x, i: x.scatter(axis, i, value), shape, [b.current, indices])
        return
    others = b.others(lambda other: list(other) == places)
    source = b.one_of(*others) if others else None
    if source is None:
        start = b.current
        source = b.add("slice", {"axis": axis, "length": count},
                       lambda: lambda x: x.narrow(axis, 0, count), places)
        b.current = start
    b.add("scatter", {"axis": axis}, lambda: lambda x, i, y: x.scatter(axis, i, y), shape,
          [b.current, indices, source])


def part(b):
    """A part of the tensor, or another one, written over a part of it."""
    axis = b.number(1, len(b.shape))
    size = b.shape[axis - 1]
    length = b.number(1, size)
    starts = [0] * (len(b.shape) + 1)
    starts[axis] = b.number(0, size - length)
    shape = list(b.shape)
    shape[axis - 1] = length
    start, in_place = b.current, b.may_overwrite()
    others = b.others(lambda other: list(other) == shape)
    if others and b.chance(0.7):
        source = b.one_of(*others)
    else:
        source = b.add("scale", {"factor": 0.5}, lambda: lambda x: x * 0.5, b.shape)
        if length < size:
            source = b.add("slice", {"axis": axis, "length": length},
                           lambda: lambda x: x.narrow(axis, 0, length), shape)
        b.current = start
    first = starts[axis]

    def written(x, y):
        x = x if in_place else x.clone()
        x[(*[slice(None)] * axis, slice(first, first + length))] = y
        return x

    b.add("slice_scatter", {"start": starts, "in_place": in_place}, lambda: written, b.shape,
          [start, source], producer_saves=True)


DRAWN = [attention, step, norm, norm, einsum, einsum, einsum, put, put, part, part]
