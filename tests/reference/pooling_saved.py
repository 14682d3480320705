"""Pooling of every rank: operators/pooling.json (see operator_saved.py)."""

import operator_saved
from operator_saved import between


def cases():
    from torch import nn

    for rank in (1, 2, 3):
        largest = getattr(nn, f"MaxPool{rank}d")
        average = getattr(nn, f"AvgPool{rank}d")
        adaptive = getattr(nn, f"AdaptiveAvgPool{rank}d")
        adaptive_largest = getattr(nn, f"AdaptiveMaxPool{rank}d")
        yield between(f"max_pool{rank}d", rank, f"max_pool{rank}d: {{kernel: 2}}",
                      lambda f=largest: f(2))
        yield between(f"max_pool{rank}d, all settings", rank,
                      f"max_pool{rank}d: {{kernel: 3, stride: 2, padding: 1, dilation: 2, "
                      "ceil_mode: true}",
                      lambda f=largest: f(3, 2, 1, 2, ceil_mode=True))
        yield between(f"max_pool{rank}d, inference", rank, f"max_pool{rank}d: {{kernel: 2}}",
                      lambda f=largest: f(2), mode="inference")
        yield between(f"avg_pool{rank}d", rank, f"avg_pool{rank}d: {{kernel: 3}}",
                      lambda f=average: f(3))
        yield between(f"avg_pool{rank}d, all settings", rank,
                      f"avg_pool{rank}d: {{kernel: 3, stride: 2, padding: 1, ceil_mode: true, "
                      "count_include_pad: false}",
                      lambda f=average: f(3, 2, 1, True, False))
        yield between(f"avg_pool{rank}d, inference", rank, f"avg_pool{rank}d: {{kernel: 3}}",
                      lambda f=average: f(3), mode="inference")
        for size in (1, 3):
            yield between(f"adaptive_avg_pool{rank}d to {size}", rank,
                          f"adaptive_avg_pool{rank}d: {{size: {size}}}",
                          lambda f=adaptive, size=size: f(size))
            yield between(f"adaptive_max_pool{rank}d to {size}", rank,
                          f"adaptive_max_pool{rank}d: {{size: {size}}}",
                          lambda f=adaptive_largest, size=size: f(size))
        yield between(f"adaptive_avg_pool{rank}d, inference", rank,
                      f"adaptive_avg_pool{rank}d: {{size: 3}}",
                      lambda f=adaptive: f(3), mode="inference")
        yield between(f"adaptive_max_pool{rank}d, inference", rank,
                      f"adaptive_max_pool{rank}d: {{size: 3}}",
                      lambda f=adaptive_largest: f(3), mode="inference")
    yield between("adaptive_avg_pool2d to a row", 2, "adaptive_avg_pool2d: {size: [1, 4]}",
                  lambda: nn.AdaptiveAvgPool2d((1, 4)))


if __name__ == "__main__":
    operator_saved.main("pooling", cases)
