"""A random network under construction: the lines of its description, and what PyTorch runs.

Each layer is added twice in one call: as a line of the description, and as what makes a module or
function of the inputs' values. Nothing of ours is asked for a shape: the drawing operator says it.
"""

import math
import random

# Operators with parameters, which may be frozen.
FREEZABLE = ("conv", "linear", "batch_norm", "layer_norm", "group_norm", "rms_norm", "prelu")


class Builder:
    """`shapes`: of each value, without the batch; None of integers. `current`: the value that the
    next layer reads. `producer_saves`: the current value is saved by the layer that made it, or is
    a view, so that it is not overwritten. `free`: the values that a later layer may still read."""

    def __init__(self, seed, precision="fp32", mode="train"):
        self.random = random.Random(seed)
        self.precision, self.mode = precision, mode
        self.inputs = {}
        self.layers, self.steps = [], []
        self.shapes = {}
        self.current = None
        self.producer_saves = True

    # Choices.
    def one_of(self, *values):
        return self.random.choice(values)

    def number(self, low, high):
        return self.random.randint(low, high)

    def chance(self, probability):
        return self.random.random() < probability

    # What stands.
    @property
    def shape(self):
        return self.shapes[self.current]

    @property
    def autocast(self):
        return self.precision.startswith("amp-")

    @property
    def free(self):
        """Values that no layer has overwritten; integers are none."""
        overwritten = {attributes["from"] if isinstance(attributes["from"], str)
                       else attributes["from"][0]
                       for _, attributes in self.layers if attributes.get("in_place")}
        return [name for name, shape in self.shapes.items()
                if shape is not None and name not in overwritten]

    def others(self, suits):
        """Earlier values, inputs aside, of shapes that suit."""
        return [name for name in self.free
                if name != self.current and name not in self.inputs and suits(self.shapes[name])]

    def may_overwrite(self):
        """Whether the next layer shall overwrite its input, as autograd allows."""
        return not self.producer_saves and self.chance(0.4)

    # What is added.
    def add_input(self, name, sizes, dtype="float32", value_shape=None):
        """`sizes`: as the description has them."""
        written = "[" + ", ".join(map(str, sizes)) + "]"
        self.inputs[name] = written if dtype == "float32" else (written, dtype)
        self.shapes[name] = value_shape
        return name

    def add(self, operator, attributes, make, shape, inputs=None, producer_saves=False):
        """A layer of one output; returns its name. `make()` gives a module or function."""
        inputs = [self.current] if inputs is None else inputs
        if operator.startswith(FREEZABLE) and self.layers and self.chance(0.05):
            attributes, make = {**attributes, "frozen": True}, frozen(make)
        name = self.layer(operator, attributes, make, inputs)
        self.shapes[name] = tuple(shape)
        self.current, self.producer_saves = name, producer_saves
        return name

    def add_several(self, operator, attributes, make, shapes, inputs=None):
        """A layer of several outputs, whose function returns a tuple; returns their names."""
        name = self.layer(operator, attributes, make,
                          [self.current] if inputs is None else inputs)
        names = [f"{name}.{i}" for i in range(len(shapes))]
        self.shapes.update(zip(names, map(tuple, shapes)))
        self.producer_saves = True
        return names

    def layer(self, operator, attributes, make, inputs):
        name = f"l{len(self.layers)}"
        written = {"name": name}
        if inputs:
            written["from"] = inputs if len(inputs) > 1 else inputs[0]
        self.layers.append((operator, {**written, **attributes}))
        self.steps.append((name, make, inputs))
        return name

    # What becomes of it.
    def lines(self):
        return [f"{operator}: {{" + ", ".join(f"{k}: {text(v)}" for k, v in attributes.items()) +
                "}" for operator, attributes in self.layers]

    def network(self):
        return network(list(self.inputs), self.steps, self.current)


def elements(shape):
    return math.prod(shape)


def frozen(make):
    return lambda: make().requires_grad_(False)


def text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text(item) for item in value) + "]"
    return str(value)


def network(inputs, steps, result):
    import torch

    class Network(torch.nn.Module):
        """Runs the steps in order and lets go of each value with its last use."""

        def __init__(self):
            super().__init__()
            self.steps = []
            self.last_use = {result: len(steps)}
            for number, (name, make, arguments) in enumerate(steps):
                made = make()
                if isinstance(made, torch.nn.Module):
                    self.add_module(name, made)
                self.steps.append((name, made, arguments))
                for value in arguments:
                    self.last_use.setdefault(value, number)
                    self.last_use[value] = max(self.last_use[value], number)

        def forward(self, *tensors):
            values = dict(zip(inputs, tensors))
            del tensors
            for number, (name, function, names) in enumerate(self.steps):
                arguments = [values[value] for value in names]
                for value in set(names):
                    if self.last_use[value] == number:
                        del values[value]
                returned = function(*arguments)
                del arguments
                if isinstance(returned, tuple):
                    values.update((f"{name}.{i}", part) for i, part in enumerate(returned)
                                  if f"{name}.{i}" in self.last_use)
                elif name in self.last_use:  # what nobody reads is gone at once
                    values[name] = returned
                del returned
            return values[result]

    return Network()
