"""What the cases of kernels.py are made of: drawn tensors, kernel calls, gradients."""

import dataclasses

import torch


@dataclasses.dataclass(frozen=True)
class Call:
    """`reads` and `writes` name tensors, in the order of docs/kernels.md."""

    kernel: str
    attributes: dict
    reads: list
    writes: list

    def described(self):
        return dataclasses.asdict(self)


class Draw:
    """Float32 numbers of two decimals, held as float64."""

    def __init__(self, generator):
        self.generator = generator

    @staticmethod
    def rounded(values):
        return torch.round(values, decimals=2).to(torch.float32).to(torch.float64)

    def normal(self, *shape):
        return self.rounded(torch.randn(shape, generator=self.generator))

    def uniform(self, low, high, *shape):
        return self.rounded(low + (high - low) * torch.rand(shape, generator=self.generator))


def given(values):
    return torch.tensor(values, dtype=torch.float32).to(torch.float64)


def room(shape, dtype="float32"):
    """A result that PyTorch has not."""
    return {"shape": list(shape), "dtype": dtype}


def gradients(run, inputs, seed):
    """The result of `run(*inputs)` and the gradient of each input for the result's `seed`, which
    may be a function of the result."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    y = run(*leaves)
    dy = seed(y) if callable(seed) else seed
    return y.detach(), dy, list(torch.autograd.grad(y, leaves, dy))


def one_input(forward, backward, attributes, x, run, reads="x", extra=None):
    """A pair of kernels of one tensor: forward x -> y, backward `reads` and dy -> dx. `reads` is
    a string of names parted by blanks; `extra` more results of the forward kernel."""
    def build(draw):
        value = x(draw) if callable(x) else draw.normal(*x)
        y, dy, (dx,) = gradients(run, [value], lambda y: draw.normal(*y.shape))
        tensors = {"x": value, "y": y, "dy": dy, "dx": dx}
        more = extra(value) if extra else {}
        tensors.update(more)
        return tensors, [Call(forward, attributes, ["x"], ["y", *more]),
                         Call(backward, attributes, [*reads.split(), "dy"], ["dx"])]
    return build
