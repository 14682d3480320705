"""A step that is the user's own function: forward, backward, update, as it is written."""

import contextlib
import collections

import torch
from torch.utils._pytree import tree_map


class FunctionStep:
    """Calls `function(*arguments, **keywords)`. `example` gives them for a batch; `place` puts a
    tensor on the device. As `loss = step(...)` in a loop, the result is kept until the next."""

    def __init__(self, function, example, place, optimizers):
        self.function, self.example, self.place = function, example, place
        self.optimizers = list(optimizers)
        self.result = self.batch = None

    def load(self, batch):
        def on_device(value):
            return self.place(value) if isinstance(value, torch.Tensor) else value

        made = self.example(batch)
        self.batch = (tree_map(on_device, made.arguments), tree_map(on_device, made.keywords), None)
        return self.batch

    def run(self, _on_micro_batch=None):
        arguments, keywords, _ = self.batch
        self.result = self.function(*arguments, **keywords)


@contextlib.contextmanager
def over_fakes(optimizers, fakes):
    """While active, the optimizers update the fake parameters and have no state."""
    before = []
    for optimizer in optimizers:
        before.append((optimizer, [list(group["params"]) for group in optimizer.param_groups],
                       optimizer.state))
        if fakes:
            optimizer.state = collections.defaultdict(dict)
        for group in optimizer.param_groups:
            group["params"] = [fakes.get(id(parameter), parameter) for parameter in group["params"]]
    try:
        yield
    finally:
        for optimizer, groups, state in before:
            optimizer.state = state
            for group, parameters in zip(optimizer.param_groups, groups):
                group["params"] = parameters
