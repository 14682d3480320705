"""Writes convolution_backends.json: which kernels PyTorch itself takes for a convolution on CUDA.

torch._C._select_conv_backend is what aten::convolution asks; fake_cuda.py lets it answer without a
GPU, as on an A100. A case is one line:
[x, w, stride, padding, dilation, transposed, groups, dtype, layout, backend].
"""

import fake_cuda

fake_cuda.relaunch_with_shim()

import itertools
import json
import pathlib
import random

import torch

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16,
          "fp64": torch.float64}
LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": None}


def backend(x, w, stride, padding, dilation, transposed, groups, dtype, layout):
    inputs = torch.empty(x, dtype=DTYPES[dtype], device="cuda")
    weight = torch.empty(w, dtype=DTYPES[dtype], device="cuda")
    if layout == "channels_last":
        inputs = inputs.to(memory_format=torch.channels_last if len(x) == 4
                           else torch.channels_last_3d)
    chosen = torch._C._select_conv_backend(inputs, weight, None, stride, padding, dilation,
                                           transposed, [0] * len(stride), groups)
    return chosen.name


def depthwise(batch, channels, size, window, stride, dilation=1, multiplier=1, axes=2,
              height=None, other_stride=None, transposed=False):
    x = [batch, channels] + [size] * axes
    w = [channels * multiplier, 1] + [window] * axes
    strides = [stride] * axes
    if height is not None:
        x[2], w[2] = height, min(height, window)
    if other_stride is not None:
        strides[0] = other_stride
    return (x, w, strides, [0 if n == 1 else dilation * (n // 2) for n in w[2:]],
            [dilation] * axes, transposed, channels)


def calls():
    yield [8, 64, 56, 56], [64, 64, 3, 3], [1, 1], [1, 1], [1, 1], False, 1
    yield [8, 64, 56, 56], [64, 64, 3, 3], [1, 1], [2, 2], [2, 2], False, 1
    yield [8, 64, 56, 56], [64, 16, 3, 3], [2, 2], [1, 1], [1, 1], False, 4
    yield [8, 64, 56, 56], [64, 32, 2, 2], [2, 2], [0, 0], [1, 1], True, 1
    yield [8, 16, 8, 24, 24], [32, 16, 3, 3, 3], [1] * 3, [1] * 3, [1] * 3, False, 1
    yield [8, 16, 8, 24, 24], [16, 8, 2, 2, 2], [2] * 3, [0] * 3, [1] * 3, True, 1
    yield depthwise(8, 64, 28, 3, 1, transposed=True)
    yield depthwise(8, 64, 12, 3, 1, axes=3)
    yield depthwise(8, 64, 28, 3, 1, dilation=2)
    yield depthwise(8, 64, 28, 3, 1, multiplier=2)
    yield depthwise(8, 64, 28, 3, 1, other_stride=2)
    yield depthwise(8, 64, 28, 3, 1, height=1)
    yield depthwise(8, 64, 28, 7, 1, height=1)
    yield depthwise(8, 64, 28, 7, 2, height=1)
    yield depthwise(8, 24, 28, 3, 1, height=1)
    grid = list(itertools.product([1, 2, 8, 16, 17, 32, 64], [16, 31, 32, 64, 128, 256, 512, 960],
                                  [5, 6, 7, 8, 14, 28, 29, 56, 112], [1, 2, 3, 5, 7], [1, 2, 3]))
    for case in random.Random(1).sample(grid, 220):
        yield depthwise(*case)


def rows():
    for call in calls():
        for dtype, layout in itertools.product(DTYPES, LAYOUTS):
            # The dtypes and layouts that leave cuDNN out do so by rule; fp16 is where sizes count.
            if call[6] > 1 and call[1][0] != 64 and (dtype != "fp16" or layout != "contiguous"):
                continue
            yield [*call, dtype, layout, backend(*call, dtype, layout)]


def main():
    with fake_cuda.fake_cuda(), fake_cuda.backward_possible():
        lines = [json.dumps(row, separators=(",", ":")) for row in rows()]
    text = ('{"torch": "%s",\n "cases": [\n%s\n]}\n' % (torch.__version__, ",\n".join(lines)))
    pathlib.Path(__file__).with_name("convolution_backends.json").write_text(text)


if __name__ == "__main__":
    main()
