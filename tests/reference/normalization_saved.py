"""Normalizations: operators/normalization.json (see operator_saved.py)."""

import operator_saved
from operator_saved import IMAGES, Case, between, between_linears


def frozen(module):
    return module.requires_grad_(False)


def evaluated(module):
    """The module as after eval(), whatever the model's mode."""
    module.eval()
    module.train = lambda mode=True: module
    return module


def gpt_oss_norm(features):
    from transformers.models.gpt_oss.modeling_gpt_oss import GptOssRMSNorm

    return GptOssRMSNorm(features)


def llama_norm(features):
    """The root mean square norm of transformers' language models, written out in PyTorch."""
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    return LlamaRMSNorm(features)


def t5_norm(features):
    """That of T5, which in 16 bits multiplies its input, not the float32 copy."""
    from transformers.models.t5.modeling_t5 import T5LayerNorm

    return T5LayerNorm(features)


def images():
    from torch import nn

    for rank in (1, 2, 3):
        batch, instance = (getattr(nn, f"{kind}Norm{rank}d") for kind in ("Batch", "Instance"))
        settings = [("", {}), (", no affine", {"affine": False}),
                    (", no running statistics", {"track_running_stats": False})]
        for words, arguments in settings:
            yaml = "".join(f", {key}: false" for key in arguments).removeprefix(", ")
            layer = f"batch_norm: {{{yaml}}}"
            for mode in ("train", "inference"):
                yield between(f"batch_norm, {rank} axes{words}, {mode}", rank, layer,
                              lambda f=batch, a=arguments: f(6, **a), mode=mode)
        yield between(f"batch_norm, {rank} axes, frozen", rank, "batch_norm: {frozen: true}",
                      lambda f=batch: frozen(f(6)))
        settings = [("", {}), (", affine", {"affine": True}),
                    (", running statistics", {"track_running_stats": True}),
                    (", both", {"affine": True, "track_running_stats": True})]
        for words, arguments in settings:
            yaml = "".join(f", {key}: true" for key in arguments).removeprefix(", ")
            for mode in ("train", "inference"):
                yield between(f"instance_norm, {rank} axes{words}, {mode}", rank,
                              f"instance_norm: {{{yaml}}}",
                              lambda f=instance, a=arguments: f(6, **a), mode=mode)
        yield between(f"instance_norm, {rank} axes, frozen", rank,
                      "instance_norm: {affine: true, frozen: true}",
                      lambda f=instance: frozen(f(6, affine=True)))
        yield between(f"group_norm, {rank} axes", rank, "group_norm: {groups: 3}",
                      lambda: nn.GroupNorm(3, 6))
        yield between(f"group_norm, {rank} axes, no affine", rank,
                      "group_norm: {groups: 2, affine: false}",
                      lambda: nn.GroupNorm(2, 6, affine=False))
        yield between(f"group_norm, {rank} axes, frozen", rank,
                      "group_norm: {groups: 3, frozen: true}", lambda: frozen(nn.GroupNorm(3, 6)))
        yield between(f"group_norm, {rank} axes, inference", rank, "group_norm: {groups: 3}",
                      lambda: nn.GroupNorm(3, 6), mode="inference")
        yield between(f"local_response_norm, {rank} axes", rank, "local_response_norm: {size: 3}",
                      lambda: nn.LocalResponseNorm(3))
        yield between(f"local_response_norm, {rank} axes, even size", rank,
                      "local_response_norm: {size: 4, alpha: 0.1, beta: 0.5, k: 2}",
                      lambda: nn.LocalResponseNorm(4, 0.1, 0.5, 2))
        yield between(f"local_response_norm, {rank} axes, inference", rank,
                      "local_response_norm: {size: 3}", lambda: nn.LocalResponseNorm(3),
                      mode="inference")


def rows():
    from torch import nn

    yield between_linears("batch_norm of features", 8, "batch_norm", lambda: nn.BatchNorm1d(8),
                          "[batch, 4]", batch=6)
    yield between_linears("group_norm of features", 8, "group_norm: {groups: 2}",
                          lambda: nn.GroupNorm(2, 8), "[batch, 4]")
    for mode in ("train", "inference"):
        yield between_linears(f"layer_norm, {mode}", 8, "layer_norm", lambda: nn.LayerNorm(8),
                              mode=mode)
        yield between_linears(f"layer_norm over two axes, {mode}", 8, "layer_norm: {axes: 2}",
                              lambda: nn.LayerNorm((5, 8)), mode=mode)
        yield between_linears(f"layer_norm without bias, {mode}", 8, "layer_norm: {bias: false}",
                              lambda: nn.LayerNorm(8, bias=False), mode=mode)
        yield between_linears(f"layer_norm, no affine, {mode}", 8, "layer_norm: {affine: false}",
                              lambda: nn.LayerNorm(8, elementwise_affine=False), mode=mode)
        yield between_linears(f"rms_norm, {mode}", 8, "rms_norm", lambda: nn.RMSNorm(8), mode=mode)
        yield between_linears(f"rms_norm over two axes, {mode}", 8, "rms_norm: {axes: 2}",
                              lambda: nn.RMSNorm((5, 8)), mode=mode)
        yield between_linears(f"rms_norm, no affine, {mode}", 8, "rms_norm: {affine: false}",
                              lambda: nn.RMSNorm(8, elementwise_affine=False), mode=mode)
        yield between_linears(f"rms_norm, composite, {mode}", 8,
                              "rms_norm: {implementation: composite}", lambda: llama_norm(8),
                              mode=mode)
    yield between_linears("layer_norm, frozen", 8, "layer_norm: {frozen: true}",
                          lambda: frozen(nn.LayerNorm(8)))
    yield between_linears("rms_norm, frozen", 8, "rms_norm: {frozen: true}",
                          lambda: frozen(nn.RMSNorm(8)))
    yield between_linears("rms_norm, composite, frozen", 8,
                          "rms_norm: {implementation: composite, frozen: true}",
                          lambda: frozen(llama_norm(8)))


def formats():
    """Statistics have formats of their own."""
    from torch import nn

    for precision in ("fp32", "bf16", "fp16", "fp64", "amp-bf16"):
        yield between(f"batch_norm, {precision}", 2, "batch_norm", lambda: nn.BatchNorm2d(6),
                      precision=precision)
        yield between(f"batch_norm, frozen, {precision}", 2, "batch_norm: {frozen: true}",
                      lambda: frozen(nn.BatchNorm2d(6)), precision=precision)
        yield Case(f"batch_norm last, frozen, {precision}", {"x": IMAGES[2]},
                   ["conv2d: {channels: 6, kernel: 3}", "batch_norm: {frozen: true}"],
                   lambda: nn.Sequential(nn.Conv2d(4, 6, 3), frozen(nn.BatchNorm2d(6))),
                   precision=precision)
        yield between(f"instance_norm, {precision}", 2,
                      "instance_norm: {affine: true, track_running_stats: true}",
                      lambda: nn.InstanceNorm2d(6, affine=True, track_running_stats=True),
                      precision=precision)
        yield between(f"group_norm, {precision}", 2, "group_norm: {groups: 3}",
                      lambda: nn.GroupNorm(3, 6), precision=precision)
        yield between(f"local_response_norm, {precision}", 2, "local_response_norm: {size: 3}",
                      lambda: nn.LocalResponseNorm(3), precision=precision)
        yield between_linears(f"layer_norm, {precision}", 8, "layer_norm", lambda: nn.LayerNorm(8),
                              precision=precision)
        yield between_linears(f"rms_norm, {precision}", 8, "rms_norm", lambda: nn.RMSNorm(8),
                              precision=precision)
        for mode in ("train", "inference"):
            yield between_linears(f"rms_norm, composite, {precision}, {mode}", 8,
                                  "rms_norm: {implementation: composite}", lambda: llama_norm(8),
                                  precision=precision, mode=mode)
            if precision != "fp64":  # language models have no such weights
                yield between_linears(f"rms_norm, gpt-oss', {precision}, {mode}", 8,
                                      "rms_norm_wide", lambda: gpt_oss_norm(8),
                                      precision=precision, mode=mode)
            yield between_linears(f"rms_norm, T5's, {precision}, {mode}", 8,
                                  "rms_norm: {implementation: composite_t5}", lambda: t5_norm(8),
                                  precision=precision, mode=mode)
        if precision != "fp64":
            yield between_linears(f"rms_norm, gpt-oss', frozen, {precision}", 8,
                                  "rms_norm_wide: {frozen: true}",
                                  lambda: frozen(gpt_oss_norm(8)), precision=precision)
        yield between_linears(f"rms_norm, T5's, frozen, {precision}", 8,
                              "rms_norm: {implementation: composite_t5, frozen: true}",
                              lambda: frozen(t5_norm(8)), precision=precision)
        yield between_linears(f"rms_norm, composite, frozen, {precision}", 8,
                              "rms_norm: {implementation: composite, frozen: true}",
                              lambda: frozen(llama_norm(8)), precision=precision)


def by_running_statistics():
    from torch import nn

    for words, arguments in [("", {}), (", no affine", {"affine": False})]:
        for precision in ("fp32", "bf16"):
            yaml = "".join(f", {key}: false" for key in arguments)
            yield between(f"batch_norm, not training{words}, {precision}", 2,
                          f"batch_norm: {{training: false{yaml}}}",
                          lambda a=arguments: evaluated(nn.BatchNorm2d(6, **a)),
                          precision=precision)
            yield Case(f"batch_norm last, not training{words}, {precision}", {"x": IMAGES[2]},
                       ["conv2d: {channels: 6, kernel: 3}",
                        f"batch_norm: {{training: false{yaml}}}"],
                       lambda a=arguments: nn.Sequential(nn.Conv2d(4, 6, 3),
                                                         evaluated(nn.BatchNorm2d(6, **a))),
                       precision=precision)
    for precision in ("fp32", "bf16"):
        yield Case(f"batch_norm last, not training, frozen, {precision}", {"x": IMAGES[2]},
                   ["conv2d: {channels: 6, kernel: 3}",
                    "batch_norm: {training: false, frozen: true}"],
                   lambda: nn.Sequential(nn.Conv2d(4, 6, 3), evaluated(frozen(nn.BatchNorm2d(6)))),
                   precision=precision)


def cases():
    yield from images()
    yield from by_running_statistics()
    yield from rows()
    yield from formats()


if __name__ == "__main__":
    operator_saved.main("normalization", cases)
