"""Convolutions of every rank: operators/convolution.json (see operator_saved.py)."""

import operator_saved
from operator_saved import IMAGES, Case


def cases():
    from torch import nn

    convolutions = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
    transposed = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}

    def between(*arguments, **settings):
        return operator_saved.between(*arguments, channels=8, **settings)

    for rank in (1, 2, 3):
        conv, back = convolutions[rank], transposed[rank]
        yield between(f"conv{rank}d", rank, f"conv{rank}d: {{channels: 8, kernel: 3}}",
                      lambda conv=conv: conv(6, 8, 3))
        yield between(f"conv{rank}d without bias, stride 2, dilation 2, groups 2", rank,
                      f"conv{rank}d: {{channels: 8, kernel: 3, stride: 2, padding: 2, dilation: 2, "
                      "groups: 2, bias: false}",
                      lambda conv=conv: conv(6, 8, 3, 2, 2, 2, 2, bias=False))
        yield between(f"conv{rank}d same, odd", rank,
                      f"conv{rank}d: {{channels: 8, kernel: 3, padding: same, dilation: 2}}",
                      lambda conv=conv: conv(6, 8, 3, padding="same", dilation=2))
        yield between(f"conv{rank}d same, even", rank,
                      f"conv{rank}d: {{channels: 8, kernel: 4, padding: same}}",
                      lambda conv=conv: conv(6, 8, 4, padding="same"))
        yield between(f"conv{rank}d valid", rank,
                      f"conv{rank}d: {{channels: 8, kernel: 3, padding: valid}}",
                      lambda conv=conv: conv(6, 8, 3, padding="valid"))
        yield between(f"conv_transpose{rank}d", rank,
                      f"conv_transpose{rank}d: {{channels: 8, kernel: 2, stride: 2}}",
                      lambda back=back: back(6, 8, 2, 2))
        yield between(f"conv_transpose{rank}d, all settings", rank,
                      f"conv_transpose{rank}d: {{channels: 8, kernel: 3, stride: 3, padding: 1, "
                      "output_padding: 2, groups: 2, dilation: 2, bias: false}",
                      lambda back=back: back(6, 8, 3, 3, 1, 2, 2, False, 2))
        yield between(f"conv{rank}d, inference", rank, f"conv{rank}d: {{channels: 8, kernel: 3}}",
                      lambda conv=conv: conv(6, 8, 3), mode="inference")
        yield between(f"conv{rank}d, frozen", rank,
                      f"conv{rank}d: {{channels: 8, kernel: 3, frozen: true}}",
                      lambda conv=conv: conv(6, 8, 3).requires_grad_(False))
        yield between(f"conv_transpose{rank}d, frozen", rank,
                      f"conv_transpose{rank}d: {{channels: 8, kernel: 3, frozen: true}}",
                      lambda back=back: back(6, 8, 3).requires_grad_(False))
        yield Case(f"conv{rank}d first, same, even", {"x": IMAGES[rank]},
                   [f"conv{rank}d: {{channels: 8, kernel: 4, padding: same}}", "relu"],
                   lambda conv=conv: nn.Sequential(conv(4, 8, 4, padding="same"), nn.ReLU()))
        yield Case(f"conv{rank}d first, frozen", {"x": IMAGES[rank]},
                   [f"conv{rank}d: {{channels: 8, kernel: 3, frozen: true}}",
                    f"conv{rank}d: {{channels: 2, kernel: 1}}"],
                   lambda conv=conv: nn.Sequential(conv(4, 8, 3).requires_grad_(False),
                                                   conv(8, 2, 1)))
    yield between("conv2d, padding before and after", 2,
                  "conv2d: {channels: 8, kernel: 4, stride: 2, padding: [1, 2, 1, 1]}",
                  lambda: nn.Sequential(nn.ConstantPad2d((0, 0, 0, 1), 0.0),
                                        nn.Conv2d(6, 8, 4, 2, 1)))


if __name__ == "__main__":
    operator_saved.main("convolution", cases)
