"""Convolutions with a filter that is computed, normalisation with a computed weight, einsum, and
attention over five axes: operators/product.json (see operator_saved.py)."""

import operator_saved
from operator_saved import Case

IMAGE = "[batch, 4, 6, 5]"


def cases():
    import torch
    import torch.nn.functional as functional
    from torch import nn

    class Standardised(nn.Conv2d):
        """timm's StdConv2d."""

        def forward(self, x):
            weight = functional.batch_norm(
                self.weight.reshape(1, self.out_channels, -1), None, None, training=True,
                momentum=0., eps=1e-6).reshape_as(self.weight)
            return functional.conv2d(x, weight, self.bias, self.stride, self.padding,
                                     self.dilation, self.groups)

    class Scaled(nn.Conv2d):
        """timm's ScaledStdConv2d."""

        def __init__(self, *arguments, **settings):
            super().__init__(*arguments, **settings)
            self.gain = nn.Parameter(torch.ones(self.out_channels, 1, 1, 1))
            self.scale = self.weight[0].numel() ** -0.5

        def forward(self, x):
            weight = functional.batch_norm(
                self.weight.reshape(1, self.out_channels, -1), None, None,
                weight=(self.gain * self.scale).view(-1), training=True, momentum=0.,
                eps=1e-6).reshape_as(self.weight)
            return functional.conv2d(x, weight, self.bias, self.stride, self.padding,
                                     self.dilation, self.groups)

    # timm registers the bias behind the weight, which standardisation does not touch.
    standardised = ["parameter: {name: w, shape: [8, 8, 3, 3]}", "reshape: {shape: [1, 8, 72]}",
                    "batch_norm: {affine: false, track_running_stats: false, eps: 1.0e-6}",
                    "reshape: {name: made, shape: [8, 8, 3, 3]}"]
    scaled = ["parameter: {name: w, shape: [8, 8, 3, 3]}",
              "reshape: {name: flat, shape: [1, 8, 72]}",
              "parameter: {name: gain, shape: [8, 1, 1, 1]}", "scale: {factor: 0.1178511302}",
              "reshape: {name: factor, shape: [8]}",
              "batch_norm: {from: [flat, factor], affine: false, track_running_stats: false, "
              "eps: 1.0e-6}", "reshape: {name: made, shape: [8, 8, 3, 3]}"]

    for word, layers, build in (("standardised", standardised, Standardised),
                                ("scaled", scaled, Scaled)):
        for mode in ("train", "inference"):
            yield Case(f"{word} convolution, {mode}", {"x": IMAGE}, [
                "conv2d: {name: first, channels: 8, kernel: 1}", *layers,
                "conv2d: {from: [first, made], channels: 8, kernel: 3, padding: 1}",
                "conv2d: {channels: 2, kernel: 1}"],
                lambda b=build: nn.Sequential(nn.Conv2d(4, 8, 1), b(8, 8, 3, padding=1),
                                              nn.Conv2d(8, 2, 1)), mode=mode)
        yield Case(f"{word} convolution of an input", {"x": "[batch, 8, 6, 5]"}, [
            *layers, "conv2d: {from: [x, made], channels: 8, kernel: 3, bias: false}",
            "conv2d: {channels: 2, kernel: 1}"],
            lambda b=build: nn.Sequential(b(8, 8, 3, bias=False), nn.Conv2d(8, 2, 1)))
        yield Case(f"{word} convolution, padded on one side", {"x": IMAGE}, [
            "conv2d: {name: first, channels: 8, kernel: 1}",
            "pad: {name: wide, from: first, before: [0, 0], after: [1, 1]}", *layers,
            "conv2d: {from: [wide, made], channels: 8, kernel: 3, stride: 2}",
            "conv2d: {channels: 2, kernel: 1}"],
            lambda b=build: nn.Sequential(nn.Conv2d(4, 8, 1), nn.ZeroPad2d((0, 1, 0, 1)),
                                          b(8, 8, 3, stride=2), nn.Conv2d(8, 2, 1)))
        yield Case(f"{word} convolution, amp-bf16", {"x": IMAGE}, [
            "conv2d: {name: first, channels: 8, kernel: 1}", *layers,
            "conv2d: {from: [first, made], channels: 8, kernel: 3, padding: 1}",
            "conv2d: {channels: 2, kernel: 1}"],
            lambda b=build: nn.Sequential(nn.Conv2d(4, 8, 1), b(8, 8, 3, padding=1),
                                          nn.Conv2d(8, 2, 1)), precision="amp-bf16")

    class Dynamic(nn.Module):
        """A filter and its bias from linear layers, the same for all samples."""

        def __init__(self):
            super().__init__()
            self.make, self.shift = nn.Linear(5, 72), nn.Linear(5, 1)
            self.last = nn.Conv1d(3, 2, 1)

        def forward(self, x, code):
            return self.last(functional.conv1d(x, self.make(code).reshape(3, 8, 9),
                                               self.shift(code).reshape(3)))

    yield Case("a filter and a bias from linear layers", {"x": "[batch, 8, 12]", "code": "[3, 5]"}, [
        "linear: {name: make, from: code, features: 72}",
        "reshape: {name: w, shape: [3, 8, 9]}",
        "linear: {name: shift, from: code, features: 1}", "reshape: {name: b, shape: [3]}",
        "conv1d: {from: [x, w, b], channels: 3, kernel: 9, bias: false}",
        "conv1d: {channels: 2, kernel: 1}"],
        Dynamic)

    class Einsum(nn.Module):
        def __init__(self, equation, features, last):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(4, f) for f in features)
            self.equation, self.last = equation, nn.Linear(last, 3)

        def forward(self, *inputs):
            return self.last(torch.einsum(self.equation, *[
                layer(x) for layer, x in zip(self.layers, inputs)]))

    def einsum(name, equation, shapes, features, last, **settings):
        names = "xyz"[:len(shapes)]
        inputs = {n: s for n, s in zip(names, shapes)}
        layers = [f"linear: {{name: {n}_, from: {n}, features: {f}}}"
                  for n, f in zip(names, features)]
        made = ", ".join(f"{n}_" for n in names)
        return Case(name, inputs, [*layers, f'einsum: {{from: [{made}], equation: "{equation}"}}',
                                   "linear: {features: 3}"],
                    lambda: Einsum(equation, features, last), **settings)

    one, two = "[batch, 5, 4]", "[batch, 3, 5, 4]"
    yield einsum("einsum: scores", "bid,bjd->bij", [one, one], [6, 6], 5)
    yield einsum("einsum: scores of heads", "bhid,bhjd->bhij", [two, two], [6, 6], 5)
    yield einsum("einsum: values of heads", "bhij,bhjd->bhid", [two, two], [5, 6], 6)
    yield einsum("einsum: the last axis of a table", "bid,kd->bik", [one, "[7, 4]"], [6, 6], 7)
    yield einsum("einsum: a permutation", "bij->bji", [one], [6], 5)
    yield einsum("einsum: a sum", "bijk->bik", [two], [6], 6)
    yield einsum("einsum: relative positions", "bhwc,hkc->bhwk", ["[batch, 3, 5, 4]", "[3, 7, 4]"],
                 [6, 6], 7)
    yield einsum("einsum: an outer product", "bi,bj->bij", ["[batch, 4]", "[batch, 4]"], [3, 5], 5)
    yield einsum("einsum: of three", "bij,bjk,bkl->bil", [one, one, "[batch, 6, 4]"],
                 [5, 6, 7], 7)
    yield einsum("einsum: element by element", "bij,bij->bij", [one, one], [6, 6], 6)
    yield einsum("einsum: an ellipsis", "...ij,...jk->...ik", [two, "[batch, 3, 6, 4]"], [6, 6], 6)
    yield einsum("einsum: an ellipsis that one operand lacks", "...i,ij->...j", [two, "[6, 4]"],
                 [6, 7], 7)
    yield einsum("einsum: an ellipsis that is summed", "b...i,ij->bj", [two, "[6, 4]"], [6, 7], 7)
    yield einsum("einsum: an ellipsis of axes of one", "b...i,b...i->b...i",
                 [two, "[batch, 1, 5, 4]"], [6, 6], 6)
    yield einsum("einsum: a contracted axis of one", "bij,kj->bik", [one, "[7, 4]"], [6, 1], 7)
    yield einsum("einsum: a diagonal", "bhii->bhi", [two], [5], 5)
    yield einsum("einsum: a trace", "bhii->bh", [two], [5], 3)
    yield einsum("einsum: a diagonal of three", "biii->bi", ["[batch, 5, 5, 4]"], [5], 5)
    yield einsum("einsum: a diagonal in a product", "bij,jkj->bik", [one, "[6, 7, 4]"], [6, 6], 7)
    yield einsum("einsum: a diagonal times a diagonal", "bii,bii->bi", [one, one], [5, 5], 5)
    yield einsum("einsum: a diagonal, inference", "bij,jkj->bik", [one, "[6, 7, 4]"], [6, 6], 7,
                 mode="inference")
    yield einsum("einsum: an implied result", "bij,jk", [one, "[6, 4]"], [6, 7], 7)
    yield einsum("einsum: scores, inference", "bid,bjd->bij", [one, one], [6, 6], 5,
                 mode="inference")
    yield einsum("einsum: scores under amp-bf16", "bid,bjd->bij", [one, one], [6, 6], 5,
                 precision="amp-bf16")

    class Windowed(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.last = nn.Linear(8, 24), nn.Linear(8, 3)

        def forward(self, x):
            q, k, v = (t.reshape(-1, 3, 2, 5, 8) for t in self.qkv(x).chunk(3, -1))
            return self.last(functional.scaled_dot_product_attention(q, k, v))

    class WindowedDirectly(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.last = nn.Linear(8, 24), nn.Linear(8, 3)

        def attended(self, x):
            return functional.scaled_dot_product_attention(*self.qkv(x).chunk(3, -1))

        def forward(self, x):
            return self.last(self.attended(x))

    class Nest(nn.Module):
        """timm's Attention over blocks of an image."""

        def __init__(self):
            super().__init__()
            self.qkv, self.last = nn.Linear(8, 24), nn.Linear(8, 3)

        def attended(self, x):
            batch, blocks, length, width = x.shape
            q, k, v = self.qkv(x).reshape(batch, blocks, length, 3, 2, 4).permute(
                3, 0, 4, 1, 2, 5).unbind(0)
            return functional.scaled_dot_product_attention(q, k, v).permute(
                0, 2, 3, 4, 1).reshape(batch, blocks, length, width)

        def forward(self, x):
            return self.last(self.attended(x))

    # PyTorch takes five axes by its composite alone.
    windows = {"x": "[batch, 3, 2, 5, 8]"}
    for precision in ("fp32", "bf16", "amp-bf16"):
        for mode in ("train", "inference"):
            yield Case(f"attention over windows, {mode}, {precision}", windows, [
                "linear: {features: 24}", "split: {name: s, parts: 3, axis: -1}",
                "scaled_dot_product_attention: {from: [s.0, s.1, s.2]}", "linear: {features: 3}"],
                lambda: WindowedDirectly(), mode=mode, precision=precision)
    yield Case("attention over windows as nest has it", {"x": "[batch, 3, 5, 8]"}, [
        "linear: {features: 24}", "reshape: {shape: [batch, 3, 5, 3, 2, 4]}",
        "transpose: {axes: [3, 0, 4, 1, 2, 5]}", "split: {name: s, parts: 3, axis: 0}",
        *[f"reshape: {{name: {n}, from: s.{i}, shape: [batch, 2, 3, 5, 4]}}"
          for i, n in enumerate("qkv")],
        "scaled_dot_product_attention: {from: [q, k, v]}", "transpose: {axes: [0, 2, 3, 4, 1]}",
        "reshape: {shape: [batch, 3, 5, 8]}", "linear: {features: 3}"], lambda: Nest())
    class Headless(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first, self.last = nn.Linear(8, 3 * width), nn.Linear(width, 3)

        def forward(self, x):
            return self.last(functional.scaled_dot_product_attention(
                *self.first(x).chunk(3, -1)))

    # PyTorch takes [N, length, features] for one sample of N heads.
    for width, precision, mode in ((8, "fp32", "train"), (8, "fp32", "inference"),
                                   (8, "bf16", "train"), (8, "amp-bf16", "train"),
                                   (6, "fp32", "train"), (6, "bf16", "train")):
        yield Case(f"attention without heads, {width} features, {mode}, {precision}",
                   {"x": "[batch, 5, 8]"}, [
            f"linear: {{features: {3 * width}}}", "split: {name: s, parts: 3, axis: -1}",
            "scaled_dot_product_attention: {from: [s.0, s.1, s.2]}", "linear: {features: 3}"],
            lambda width=width: Headless(width), mode=mode, precision=precision)
    # The description merges the first two axes.
    for mode in ("train", "inference"):
        yield Case(f"attention over five axes, {mode}", {"x": "[batch, 3, 2, 5, 8]"}, [
            "linear: {features: 24}", "split: {name: s, parts: 3, axis: -1}",
            *[f"reshape: {{name: {n}, from: s.{i}, shape: [3 * batch, 2, 5, 8]}}"
              for i, n in enumerate("qkv")],
            "scaled_dot_product_attention: {from: [q, k, v], implementation: math}",
            "reshape: {shape: [batch, 3, 2, 5, 8]}", "linear: {features: 3}"],
            lambda: Windowed(), mode=mode)


if __name__ == "__main__":
    operator_saved.main("product", cases)
