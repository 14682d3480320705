"""Padding, upsampling and pixel shuffling: operators/resampling.json (see operator_saved.py)."""

import operator_saved
from operator_saved import IMAGES, Case, between, module_of


def cases():
    from torch import nn
    import torch.nn.functional as functional

    def pad(name, rank, before, after, how="constant", **settings):
        pairs = [n for pair in zip(reversed(before), reversed(after)) for n in pair]
        words = "" if how == "constant" else f", mode: {how}"
        return between(f"pad, {name}", rank, f"pad: {{before: {before}, after: {after}{words}}}",
                       lambda: module_of(lambda x: functional.pad(x, pairs, how)), **settings)

    for rank in (1, 2, 3):
        for how in ("constant", "reflect", "replicate", "circular"):
            for mode in ("train", "inference"):
                yield pad(f"{rank} axes, {how}, {mode}", rank, [1, 2, 1][:rank], [2, 1, 2][:rank],
                          how, mode=mode)
    yield pad("one side", 2, [0, 0], [1, 1])
    yield pad("circular, one side", 2, [0, 0], [1, 1], "circular")
    yield pad("circular, one axis", 2, [0, 2], [0, 2], "circular")
    yield pad("nothing", 2, [0, 0], [0, 0])
    yield pad("cropped", 2, [-1, 0], [0, -2])
    yield pad("cropped and padded", 2, [-1, 1], [2, -2])
    yield pad("channels", 2, [1, 0, 0], [2, 0, 0], channels=9)
    modes = {1: ["nearest", "linear"], 2: ["nearest", "bilinear", "bicubic"],
             3: ["nearest", "trilinear"]}
    for rank, names in modes.items():
        for mode in names:
            yield between(f"upsample, {rank} axes, {mode}", rank,
                          f"upsample: {{scale: 2, mode: {mode}}}",
                          lambda mode=mode: nn.Upsample(scale_factor=2, mode=mode))
            if mode != "nearest":
                yield between(f"upsample, {rank} axes, {mode}, align_corners", rank,
                              f"upsample: {{scale: 1.5, mode: {mode}, align_corners: true}}",
                              lambda mode=mode: nn.Upsample(scale_factor=1.5, mode=mode,
                                                            align_corners=True))
        yield between(f"upsample, {rank} axes, to a size", rank, "upsample: {size: 7}",
                      lambda: nn.Upsample(7))
        yield between(f"upsample, {rank} axes, inference", rank, "upsample: {scale: 2}",
                      lambda: nn.Upsample(scale_factor=2), mode="inference")
    yield Case("pixel_shuffle", {"x": IMAGES[2]},
               ["conv2d: {channels: 12, kernel: 3, padding: 1}", "pixel_shuffle: {factor: 2}",
                "conv2d: {channels: 2, kernel: 1}"],
               lambda: nn.Sequential(nn.Conv2d(4, 12, 3, padding=1), nn.PixelShuffle(2),
                                     nn.Conv2d(3, 2, 1)))
    yield between("pixel_unshuffle", 2, "pixel_unshuffle: {factor: 2}",
                  lambda: nn.PixelUnshuffle(2), channels=24)
    yield Case("pixel_shuffle at the end", {"x": IMAGES[2]},
               ["conv2d: {channels: 12, kernel: 3, padding: 1}", "pixel_shuffle: {factor: 2}"],
               lambda: nn.Sequential(nn.Conv2d(4, 12, 3, padding=1), nn.PixelShuffle(2)))


if __name__ == "__main__":
    operator_saved.main("resampling", cases)
