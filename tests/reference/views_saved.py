"""Operators of tensors that do not lie contiguously in memory: operators/views.json (see
operator_saved.py). Most save what they are given, whole storage and all, though their kernels work
on a copy; the copies that kernels make within themselves are not seen here."""

import operator_saved
from operator_saved import Case, module_of

# Each from [batch, 4, 6, 8], as layers and as a function; all give [batch, 4, 6, 6] or [batch, 4, 8, 6].
VIEWS = {
    "a part of the last axis": (["slice: {axis: 3, start: 1, length: 6}"],
                                lambda x: x[..., 1:7], 6),
    "every other element": (["slice: {axis: 3, length: 8, step: 2}"], lambda x: x[..., ::2], 4),
    "exchanged axes": (["transpose: {axes: [0, 1, 3, 2]}"], lambda x: x.transpose(2, 3), 6),
    "channels last": (["reshape: {shape: [batch, 6, 8, 4]}", "transpose: {axes: [0, 3, 1, 2]}"],
                      lambda x: x.view(-1, 6, 8, 4).permute(0, 3, 1, 2), 8),
    "repeated channels": (["slice: {axis: 1, length: 1}", "expand: {shape: [batch, 4, 6, 8]}"],
                          lambda x: x[:, :1].expand(-1, 4, -1, -1), 8),
}


def cases():
    import torch
    import torch.nn.functional as functional
    from torch import nn

    def operators(width):
        """Name -> layer, what builds it, the last axis of its result."""
        return {
            "conv2d": ("conv2d: {channels: 4, kernel: 3, padding: 1}",
                       lambda: nn.Conv2d(4, 4, 3, padding=1), width),
            "conv_transpose2d": ("conv_transpose2d: {channels: 4, kernel: 1}",
                                 lambda: nn.ConvTranspose2d(4, 4, 1), width),
            "linear": ("linear: {features: 6}", lambda: nn.Linear(width, 6), 6),
            "linear without bias": ("linear: {features: 6, bias: false}",
                                    lambda: nn.Linear(width, 6, bias=False), 6),
            "max_pool2d": ("max_pool2d: {kernel: 2}", lambda: nn.MaxPool2d(2), width // 2),
            "avg_pool2d": ("avg_pool2d: {kernel: 2}", lambda: nn.AvgPool2d(2), width // 2),
            "batch_norm": ("batch_norm", lambda: nn.BatchNorm2d(4), width),
            "group_norm": ("group_norm: {groups: 2}", lambda: nn.GroupNorm(2, 4), width),
            "rms_norm": ("rms_norm", lambda: nn.RMSNorm(width, eps=1e-6), width),
            "softmax": ("softmax", lambda: nn.Softmax(-1), width),
            "log_softmax": ("log_softmax", lambda: nn.LogSoftmax(-1), width),
            "glu": ("glu: {axis: 1}", lambda: nn.GLU(1), width),
            "upsample": ("upsample: {scale: 2, mode: bilinear}",
                         lambda: nn.Upsample(scale_factor=2, mode="bilinear"), 2 * width),
        }

    for view, (layers, function, width) in VIEWS.items():
        for name, (layer, build, result) in operators(width).items():
            yield Case(f"{name} of {view}", {"x": "[batch, 4, 6, 8]"},
                       ["conv2d: {channels: 4, kernel: 1}", *layers, layer,
                        "linear: {features: 3}"],
                       lambda f=function, b=build, n=result: nn.Sequential(
                           nn.Conv2d(4, 4, 1), module_of(f), b(), nn.Linear(n, 3)))

    class SumAndNorm(nn.Module):
        """A value and its norm written in operators: three gradients meet in the value."""

        def __init__(self):
            super().__init__()
            from transformers.models.llama.modeling_llama import LlamaRMSNorm

            self.first, self.norm, self.last = nn.Linear(8, 8), LlamaRMSNorm(8), nn.Linear(8, 3)

        def forward(self, x):
            x = self.first(x)
            return self.last(x * self.norm(x))

    yield Case("a value times its norm", {"x": "[batch, 5, 8]"}, [
        "linear: {name: first, features: 8}",
        "rms_norm: {name: norm, implementation: composite}", "mul: {from: [first, norm]}",
        "linear: {features: 3}"], SumAndNorm)
    for precision in ("amp-bf16", "amp-fp16"):
        for layer, function in (("sum: {axes: [2]}", lambda x: x.sum(2)),
                                ("log_softmax", lambda x: functional.log_softmax(x, -1)),
                                ("softmax", lambda x: functional.softmax(x, -1)),
                                ("exp", torch.exp)):
            yield Case(f"{layer.split(':')[0]} under {precision}", {"x": "[batch, 4, 6, 8]"},
                       ["conv2d: {channels: 4, kernel: 1}", layer, "linear: {features: 3}"],
                       lambda f=function, s=layer.startswith("sum"): nn.Sequential(
                           nn.Conv2d(4, 4, 1), module_of(f), nn.Linear(8, 3)),
                       precision=precision)


if __name__ == "__main__":
    operator_saved.main("views", cases)
