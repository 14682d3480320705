"""Recurrent networks and position embeddings."""

import torch

from kernel_call import Call, gradients, room

MODULES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "tanh": torch.nn.RNN, "relu": torch.nn.RNN}
KEPT = {"lstm": 5, "gru": 4, "tanh": 0, "relu": 0}
WORD = (1 << 64) - 1


def mixed(counter):
    """gpu_probe/kernels/rows/mask_draw.hpp."""
    z = counter * 0x9e3779b97f4a7c15 & WORD
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & WORD
    z = (z ^ z >> 27) * 0x94d049bb133111eb & WORD
    return z ^ z >> 31


def mask(p, seed, first, shape):
    """0 or 1 / (1 - p) for the elements from number `first` on."""
    stream, count = mixed(seed + 1), torch.Size(shape).numel()
    kept = [mixed(stream + first + i & WORD) >> 11 >= int(p * 2 ** 53) for i in range(count)]
    return torch.tensor(kept, dtype=torch.float64).reshape(shape) / (1 - p)


def weight_shapes(gates, features, hidden, layers, directions, bias):
    for layer in range(layers):
        for _ in range(directions):
            yield (gates * hidden, features if layer == 0 else directions * hidden)
            yield (gates * hidden, hidden)
            if bias:
                yield (gates * hidden,)
                yield (gates * hidden,)


def rnn(cell, name, sizes=(3, 2, 3, 2), layers=1, bidirectional=False, bias=True,
        batch_first=False, dropout=0.0, seed=0, last_gradients=True):
    """`sizes`: seq, batch, features, hidden. Each layer is a module of its own, so that the masks
    between layers can be ours."""
    seq, batch, features, hidden = sizes
    directions = 2 if bidirectional else 1
    gates = {"lstm": 4, "gru": 3}.get(cell, 1)
    attributes = {"cell": cell, "layers": layers, "bidirectional": bidirectional,
                  "batch_first": batch_first, "dropout": dropout, "seed": seed}
    states = ["h", "c"] if cell == "lstm" else ["h"]
    shapes = list(weight_shapes(gates, features, hidden, layers, directions, bias))
    per_layer = len(shapes) // layers

    def run(x, *rest):
        first, weights = rest[:len(states)], rest[len(states):]
        more = {"nonlinearity": cell} if cell in ("tanh", "relu") else {}
        last = []
        for layer in range(layers):
            if layer > 0 and dropout > 0:
                size = seq * batch * directions * hidden
                drawn = mask(dropout, seed, (layer - 1) * size, (seq, batch, directions * hidden))
                x = x * (drawn.transpose(0, 1) if batch_first else drawn)
            module = MODULES[cell](x.shape[2], hidden, bias=bias, batch_first=batch_first,
                                   bidirectional=bidirectional, **more).double()
            own = dict(zip(dict(module.named_parameters()),
                           weights[layer * per_layer:(layer + 1) * per_layer]))
            begin = [s[layer * directions:(layer + 1) * directions] for s in first]
            state = tuple(begin) if cell == "lstm" else begin[0]
            x, end = torch.func.functional_call(module, own, (x, state))
            last.append(end if cell == "lstm" else (end,))
        return [x, *(torch.cat([end[i] for end in last]) for i in range(len(states)))]

    def build(draw):
        x = draw.normal(*((batch, seq) if batch_first else (seq, batch)), features)
        first = [draw.normal(layers * directions, batch, hidden) for _ in states]
        weights = [draw.uniform(-0.7, 0.7, *shape) for shape in shapes]
        leaves = [t.clone().requires_grad_() for t in [x, *first, *weights]]
        y, *last = run(*leaves)
        seeds = [draw.normal(*t.shape) for t in [y, *last]]
        used = 1 + len(states) if last_gradients else 1
        found = torch.autograd.grad([y, *last][:used], leaves, seeds[:used])
        reads = ["x", *(f"{s}0" for s in states), *(f"w{i}" for i in range(len(shapes)))]
        ends, end_gradients = [f"{s}n" for s in states], [f"d{s}n" for s in states]
        values = 4 * seq * batch * hidden * directions * (layers * KEPT[cell] + layers - 1)
        tensors = {**dict(zip(reads, [x, *first, *weights])), **dict(zip(["y", *ends], [y, *last])),
                   "reserve": room([values], "uint8"),
                   **dict(zip(["dy", *end_gradients], seeds[:used])),
                   **dict(zip([f"d_{name}" for name in reads], found))}
        return tensors, [
            Call("rnn_forward", attributes, reads, ["y", *ends, "reserve"]),
            Call("rnn_backward", attributes,
                 [*reads, "y", "reserve", "dy", *(end_gradients if last_gradients else [])],
                 [f"d_{name}" for name in reads])]
    return f"{cell} {name}", build


def rotate(x, layout):
    if layout == "halves":
        a, b = x.chunk(2, -1)
        return torch.cat([-b, a], -1)
    return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)


def rotary(name, shape, table, layout):
    def build(draw):
        x, cos, sin = draw.normal(*shape), draw.uniform(-1, 1, *table), draw.uniform(-1, 1, *table)
        y, dy, (dx,) = gradients(lambda t: t * cos + rotate(t, layout) * sin, [x],
                                 draw.normal(*shape))
        return ({"x": x, "cos": cos, "sin": sin, "y": y, "dy": dy, "dx": dx},
                [Call("rotary_forward", {"layout": layout}, ["x", "cos", "sin"], ["y"]),
                 Call("rotary_backward", {"layout": layout}, ["dy", "cos", "sin"], ["dx"])])
    return f"rotary {name}", build


POSITIONS = [
    rotary("halves", (1, 2, 3, 4), (3, 4), "halves"),
    rotary("pairs", (2, 3, 4), (3, 4), "pairs"),
    rotary("halves, a table for each sequence", (2, 2, 2, 4), (2, 1, 2, 4), "halves"),
]

CASES = [
    *(rnn(cell, "one layer") for cell in MODULES),
    *(rnn(cell, "two layers", layers=2, last_gradients=False) for cell in MODULES),
    *(rnn(cell, "both directions", bidirectional=True) for cell in MODULES),
    *(rnn(cell, "everything", (3, 2, 2, 2), layers=3, bidirectional=True, batch_first=True,
          dropout=0.5, seed=7) for cell in MODULES),
    rnn("lstm", "no bias, batch first", bias=False, batch_first=True),
    rnn("gru", "no bias", (4, 1, 2, 3), bias=False, last_gradients=False),
    rnn("lstm", "one position", (1, 3, 2, 2)),
]
