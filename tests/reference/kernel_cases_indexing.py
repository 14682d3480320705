"""Kernels that go along axes, take elements by index, compare and select."""

import math

import torch
import torch.nn.functional as functional

from kernel_call import Call, gradients


def statistic(operation, run, shape, axes, keep=False, tie=False, **settings):
    """`run(x, axes, keepdim)`; `tie`: two elements of each line are equal."""
    attributes = {"axes": axes, "operation": operation, **settings}

    def build(draw):
        x = draw.normal(*shape)
        if tie:
            x = torch.cat([x, x], axes[0])
        y, dy, (dx,) = gradients(lambda t: run(t, axes, keep), [x], lambda y: draw.normal(*y.shape))
        return ({"x": x, "y": y, "dy": dy, "dx": dx},
                [Call("statistic_forward", attributes, ["x"], ["y"]),
                 Call("statistic_backward", attributes, ["x", "y", "dy"], ["dx"])])
    more = "".join(f", {key} {value}" for key, value in settings.items())
    return f"{operation} over {axes} of {list(shape)}{more}{', equal ones' if tie else ''}", build


def norm(p, shape, axes, keep=False, tie=False):
    return statistic("norm", lambda t, a, k: torch.linalg.vector_norm(t, p, a, k), shape, axes, keep,
                     tie, p=p)


def counted(shape, axes):
    """The norm of p 0, which has no gradient."""
    def build(draw):
        x = torch.relu(draw.normal(*shape))
        return ({"x": x, "y": torch.linalg.vector_norm(x, 0, axes)},
                [Call("statistic_forward", {"axes": axes, "operation": "norm", "p": 0.0}, ["x"],
                      ["y"])])
    return f"elements that are not 0 over {axes} of {list(shape)}", build


def variance(operation, correction, shape, axes):
    run = torch.var if operation == "variance" else torch.std
    return statistic(operation, lambda t, a, k: run(t, a, correction=correction, keepdim=k), shape,
                     axes, correction=float(correction))


def extremum(operation, function, a, b):
    def build(draw):
        left, right = draw.normal(*a), draw.normal(*b)
        left.view(-1)[0] = right.view(-1)[0]  # equal ones
        whole = torch.broadcast_shapes(a, b)
        y, dy, (da,) = gradients(lambda t: function(t.expand(whole), right),
                                 [left.expand(whole).clone()], draw.normal(*whole))
        return ({"a": left, "b": right, "y": y, "dy": dy, "da": da},
                [Call(operation, {}, ["a", "b"], ["y"]),
                 Call("extremum_backward", {"operation": operation}, ["a", "b", "dy"], ["da"])])
    return f"{operation} of {list(a)} and {list(b)}", build


def place(operation, function, shape, axis):
    def build(draw):
        x = draw.normal(*shape)
        y, indices = function(x, axis)
        return ({"x": x, "y": y, "indices": indices},
                [Call("extreme_place", {"axis": axis, "operation": operation}, ["x"],
                      ["indices", "y"])])
    return f"place of the {operation} along {axis} of {list(shape)}", build


def top(count, shape, axis, largest):
    def build(draw):
        x = draw.normal(*shape)
        y, indices = x.topk(count, axis, largest)
        return ({"x": x, "y": y, "indices": indices},
                [Call("top_places", {"axis": axis, "count": count, "largest": largest}, ["x"],
                      ["y", "indices"])])
    return f"{count} {'largest' if largest else 'smallest'} along {axis} of {list(shape)}", build


def cumulated(shape, axis, reverse=False):
    def build(draw):
        x = draw.normal(*shape)
        y = x.flip(axis).cumsum(axis).flip(axis) if reverse else x.cumsum(axis)
        return ({"x": x, "y": y},
                [Call("cumulate", {"axis": axis, "reverse": reverse}, ["x"], ["y"])])
    return f"sums along {axis} of {list(shape)}{', reversed' if reverse else ''}", build


def taken(shape, axis, *indices):
    """x[:, ..., indices]"""
    def build(draw):
        x = draw.normal(*shape)
        given = [torch.tensor(index) for index in indices]
        names = [f"i{k}" for k in range(len(given))]
        y, dy, (dx,) = gradients(lambda t: t[(slice(None),) * axis + tuple(given)], [x],
                                 lambda y: draw.normal(*y.shape))
        return ({"x": x, **dict(zip(names, given)), "y": y, "dy": dy, "dx": dx},
                [Call("take_forward", {"axis": axis}, ["x", *names], ["y"]),
                 Call("take_backward", {"axis": axis}, [*names, "dy"], ["dx"])])
    return f"{len(indices)} indices from axis {axis} of {list(shape)}", build


def gathered(shape, axis, index):
    def build(draw):
        x, indices = draw.normal(*shape), torch.tensor(index)
        y, dy, (dx,) = gradients(lambda t: t.gather(axis, indices), [x],
                                 lambda y: draw.normal(*y.shape))
        return ({"x": x, "i": indices, "y": y, "dy": dy, "dx": dx},
                [Call("gather_forward", {"axis": axis}, ["x", "i"], ["y"]),
                 Call("gather_backward", {"axis": axis}, ["i", "dy"], ["dx"])])
    return f"gather along {axis} of {list(shape)}", build


def added(kernel, shape, axis, index):
    def build(draw):
        x, indices = draw.normal(*shape), torch.tensor(index)
        source_shape = list(indices.shape)
        if kernel == "index_add":
            source_shape = [*shape[:axis], len(index), *shape[axis + 1:]]
        source = draw.normal(*source_shape)
        return ({"x": x, "i": indices, "source": source,
                 "y": getattr(x, kernel)(axis, indices, source)},
                [Call(kernel, {"axis": axis}, ["x", "i", "source"], ["y"])])
    return f"{kernel} along {axis} of {list(shape)}", build


def put(shape, axis, index):
    """No place is named twice."""
    def build(draw):
        x, indices = draw.normal(*shape), torch.tensor(index)
        source = draw.normal(*indices.shape)
        return ({"x": x, "i": indices, "source": source, "y": x.scatter(axis, indices, source)},
                [Call("scatter_add", {"axis": axis, "replace": True}, ["x", "i", "source"], ["y"])])
    return f"scatter along {axis} of {list(shape)}", build


def compared(operation, a, b=None, value=None):
    def build(draw):
        left = draw.normal(*a)
        if b is None:
            y = getattr(torch, operation)(left, value)
            return ({"a": left, "y": y},
                    [Call("compare", {"operation": operation, "value": value}, ["a"], ["y"])])
        right = draw.normal(*b)
        right.view(-1)[0] = left.view(-1)[0]
        return ({"a": left, "b": right, "y": getattr(torch, operation)(left, right)},
                [Call("compare", {"operation": operation}, ["a", "b"], ["y"])])
    return f"{operation} of {list(a)} and {list(b) if b else value}", build


def logical(operation, a, b=None):
    def build(draw):
        left = draw.normal(*a) > 0
        right = [] if b is None else [draw.normal(*b) > 0]
        y = getattr(torch, f"logical_{operation}")(left, *right)
        return ({"a": left, **({"b": right[0]} if right else {}), "y": y},
                [Call("logical", {"operation": operation}, ["a", "b"][:1 + len(right)], ["y"])])
    return f"logical {operation} of {list(a)}", build


def selected(condition, a, b):
    def build(draw):
        mask, left, right = draw.normal(*condition) > 0, draw.normal(*a), draw.normal(*b)
        return ({"m": mask, "a": left, "b": right, "y": torch.where(mask, left, right)},
                [Call("select", {}, ["m", "a", "b"], ["y"])])
    return f"{list(a)} or {list(b)} where {list(condition)}", build


def triangle(function, shape, diagonal):
    def build(draw):
        x = draw.normal(*shape)
        return ({"x": x, "y": getattr(torch, function)(x, diagonal)},
                [Call("triangle", {"diagonal": diagonal, "upper": function == "triu"}, ["x"],
                      ["y"])])
    return f"{function} {diagonal} of {list(shape)}", build


def one_hot(indices, classes):
    def build(_draw):
        given = torch.tensor(indices)
        return ({"i": given, "y": functional.one_hot(given, classes)},
                [Call("one_hot", {}, ["i"], ["y"])])
    return f"one_hot of {classes}", build


def unfolded(shape, kernel, **settings):
    attributes = {"kernel": kernel, **settings}

    def build(draw):
        x = draw.normal(*shape)
        y, dy, (dx,) = gradients(lambda t: functional.unfold(t, kernel, **settings), [x],
                                 lambda y: draw.normal(*y.shape))
        return ({"x": x, "y": y, "dy": dy, "dx": dx},
                [Call("unfold", attributes, ["x"], ["y"]),
                 Call("fold", attributes, ["dy"], ["dx"])])
    return f"unfold {list(shape)} {attributes}", build


STATISTICS = [
    statistic("maximum", torch.amax, (2, 5, 3), [1]),
    statistic("maximum", torch.amax, (2, 5, 3), [1], tie=True),
    statistic("minimum", torch.amin, (2, 3, 40), [2], keep=True),
    statistic("minimum", torch.amin, (4, 3), [0, 1]),
    variance("variance", 1, (2, 5, 3), [1]), variance("variance", 0, (2, 3, 40), [1, 2]),
    variance("deviation", 1, (3, 4, 2), [0, 2]), variance("deviation", 0, (3, 50), [1]),
    norm(2, (2, 5, 3), [1]), norm(1, (2, 5, 3), [2], keep=True), norm(3, (2, 40), [1]),
    norm(1.5, (2, 5, 3), [0, 1]), norm(0.5, (3, 4), [1]),
    norm(-1, (2, 5, 3), [1]), norm(-2.5, (3, 40), [1]), counted((2, 5, 3), [1]),
    extremum("maximum", torch.maximum, (2, 3), (2, 3)),
    extremum("minimum", torch.minimum, (2, 3), (3,)),
    extremum("maximum", torch.maximum, (1, 3), (2, 3)),
    place("maximum", torch.max, (2, 5, 3), 1), place("minimum", torch.min, (4, 6), 1),
    top(3, (2, 5, 3), 1, True), top(2, (3, 7), 1, False), top(4, (4,), 0, True),
    cumulated((2, 5, 3), 1), cumulated((2, 5), 1, True),
]

INDEXING = [
    taken((2, 5, 3), 1, [3, 0, 3, -1]), taken((4, 3), 0, [[1, 1], [2, 0]]),
    taken((2, 3, 4), 1, [0, 2, 2], [3, 1, 1]), taken((3, 4), 0, [[0], [2]], [1, 1, 3]),
    gathered((2, 4, 3), 1, [[[0, 1, 2], [3, 3, 0]], [[1, 1, 1], [1, 0, 2]]]),
    gathered((3, 4), 0, [[2, 0]]),
    added("index_add", (4, 3), 0, [1, 1, 3]), added("index_add", (2, 3, 2), 1, [2, 0, 2, 2]),
    added("scatter_add", (3, 4), 1, [[0, 0, 3], [1, 2, 1]]),
    put((3, 4), 1, [[0, 3], [1, 2]]), put((4, 3), 0, [[3, 1, 1]]),
    compared("eq", (2, 3), (2, 3)), compared("ne", (2, 3), (3,)), compared("lt", (2, 3), (2, 3)),
    compared("le", (2, 3), (2, 1)), compared("gt", (5,), None, 0.25), compared("ge", (5,), (5,)),
    logical("and", (2, 3), (3,)), logical("or", (2, 3), (2, 3)), logical("xor", (2, 3), (2, 1)),
    logical("not", (2, 3)),
    selected((2, 3), (2, 3), (2, 3)), selected((2, 1), (3,), ()), selected((3,), (2, 3), (1,)),
    triangle("tril", (2, 3, 4), 0), triangle("triu", (4, 3), 1), triangle("tril", (3, 5), -1),
    one_hot([[0, 2], [1, 2]], 3),
    unfolded((2, 3, 4, 5), [2, 3]), unfolded((1, 2, 5, 5), [3, 3], padding=[1, 1], stride=[2, 1]),
    unfolded((1, 2, 6, 5), [2, 2], dilation=[2, 1], padding=[0, 1]),
]
