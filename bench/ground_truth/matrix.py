"""A job, its key, and which jobs a run consists of. No torch here."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from itertools import product, zip_longest

import catalogue

OPTIMIZERS = ("sgd", "sgd-momentum", "adam", "adamw", "adagrad", "rmsprop")
IMPLEMENTATIONS = ("for-loop", "foreach", "fused")
PRECISIONS = ("fp32", "amp-fp16", "amp-bf16", "bf16")
TF32 = ("default", "on", "off")
OUTPUTS = ("step", "drop", "next")


@dataclass(frozen=True)
class Job:
    """One training set-up. Every field but the counts of steps is part of what is measured."""

    model: str
    batch: int
    image_size: int | None = None  # pixels a side; None for networks that take no image
    seq: int | None = None  # tokens; None for networks that take none
    optimizer: str = "adam"  # a name of OPTIMIZERS, or NAME:IMPLEMENTATION to force one
    precision: str = "fp32"
    tf32: str = "default"  # default: as PyTorch ships (cuDNN on, matrix products off)
    channels_last: bool = False
    cudnn_benchmark: bool = False
    outputs: str = "step"  # how long the loop holds the network's output; see README.md
    cap_bytes: int | None = None  # run with the device capped at this many bytes
    cap_allocator_bytes: int | None = None  # or with the caching allocator alone capped; not both

    def key(self) -> str:
        """`field=value,...` in the order of the fields, fields that are None left out."""
        pairs = ((name, value) for name, value in asdict(self).items() if value is not None)
        return ",".join(f"{name}={_text(value)}" for name, value in pairs)

    def family(self) -> str:
        return catalogue.find(self.model).family

    def is_capped(self) -> bool:
        return self.cap_bytes is not None or self.cap_allocator_bytes is not None

    @staticmethod
    def from_key(key: str) -> Job:
        """The inverse of `key`; absent fields take their defaults. ValueError if malformed."""
        kinds = {field.name: field.type for field in fields(Job)}
        values = {}
        for pair in key.split(","):
            name, equals, text = pair.strip().partition("=")
            if not equals or name not in kinds:
                raise ValueError(f"'{pair}' in the job key '{key}' is not one of {', '.join(kinds)}")
            values[name] = _parse(kinds[name], text)
        if "model" not in values or "batch" not in values:
            raise ValueError(f"the job key '{key}' needs model= and batch=")
        return complete(Job(**values))


def _text(value) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _parse(kind: str, text: str):
    if kind.startswith("bool"):
        return bool(int(text))
    return int(text) if kind.startswith("int") else text


def complete(job: Job) -> Job:
    """The job with its model's default size filled in. ValueError or KeyError if it is nonsense."""
    row = catalogue.find(job.model)
    name, _, implementation = job.optimizer.partition(":")
    if name not in OPTIMIZERS or (implementation and implementation not in IMPLEMENTATIONS):
        raise ValueError(f"unknown optimizer '{job.optimizer}'; known: {', '.join(OPTIMIZERS)}, "
                         f"each with :{', :'.join(IMPLEMENTATIONS)} if wanted")
    for value, known in ((job.precision, PRECISIONS), (job.tf32, TF32), (job.outputs, OUTPUTS)):
        if value not in known:
            raise ValueError(f"'{value}' is none of {', '.join(known)}")
    if job.batch < 1:
        raise ValueError(f"batch {job.batch} is not positive")
    if job.cap_bytes is not None and job.cap_allocator_bytes is not None:
        raise ValueError("cap_bytes and cap_allocator_bytes exclude each other")
    return replace(job, image_size=(job.image_size or row.image_size) if row.image_size else None,
                   seq=(job.seq or row.seq) if row.seq else None,
                   channels_last=job.channels_last and row.kind == "image")


def expand(models, batches, optimizers, precisions, **options) -> list[Job]:
    """Every combination, the model changing slowest; `options` are further fields of Job.

    An empty `batches` means each model's own default.
    """
    jobs = []
    for model in models:
        own = batches or [catalogue.find(model).default_batch]
        for batch, optimizer, precision in product(own, optimizers, precisions):
            job = Job(model, batch, optimizer=optimizer, precision=precision, **options)
            jobs.append(complete(job))
    return list(dict.fromkeys(jobs))


def quick() -> list[Job]:
    """One or two jobs of every family, and one network with each setting turned: 38 jobs."""
    base = [("mlp", 128), ("mlp", 4096), ("mnist-cnn", 128), ("vgg16", 32), ("vgg16", 128),
            ("resnet18", 128), ("resnet50", 32), ("resnet50", 128), ("resnet152", 64),
            ("densenet121", 64), ("mobilenet_v2", 128), ("efficientnet_b0", 128),
            ("inception_v3", 64), ("vit_b_16", 64), ("swin_t", 64), ("convnext_tiny", 64),
            ("unet", 8), ("keras-deep-16x16", 32), ("keras-deep-16x16", 256),
            ("timm/resnet50", 128), ("timm/vit_base_patch16_224", 64), ("timm/mobilenetv2_100", 128),
            ("gpt2", 4), ("gpt2-medium", 2), ("bert-base", 8), ("bert-base-mlm", 8)]
    turned = [dict(optimizer="sgd"), dict(optimizer="sgd-momentum"), dict(optimizer="adam:fused"),
              dict(precision="amp-fp16"), dict(precision="amp-bf16"), dict(precision="bf16"),
              dict(precision="amp-bf16", channels_last=True), dict(cudnn_benchmark=True)]
    tokens = [Job("gpt2", 4, precision="amp-bf16"), Job("gpt2", 4, outputs="drop"),
              Job("vit_b_16", 64, precision="amp-bf16"), Job("vgg16", 128, optimizer="sgd-momentum")]
    jobs = [Job(model, batch) for model, batch in base]
    jobs += [Job("resnet50", 128, **change) for change in turned] + tokens
    return list(dict.fromkeys(complete(job) for job in jobs))


def full() -> list[Job]:
    """Every model: five batches, then at its default batch each setting turned on its own.

    A model after the other, so that a run that is stopped has something of each.
    """
    turned = [dict(optimizer=name) for name in OPTIMIZERS]
    turned += [dict(optimizer=f"adam:{name}") for name in IMPLEMENTATIONS]
    turned += [dict(precision=name) for name in PRECISIONS]
    turned += [dict(tf32="on"), dict(tf32="off"), dict(outputs="next"), dict(cudnn_benchmark=True),
               dict(channels_last=True), dict(channels_last=True, precision="amp-bf16")]
    by_model = []
    for name, row in catalogue.MODELS.items():
        around = [max(1, row.default_batch * factor // 4) for factor in (1, 2, 4, 8, 16)]
        jobs = [complete(Job(name, batch)) for batch in around]
        jobs += [complete(Job(name, row.default_batch, **change)) for change in turned]
        by_model.append(list(dict.fromkeys(jobs)))
    rounds = zip_longest(*by_model)
    return list(dict.fromkeys(job for jobs in rounds for job in jobs if job is not None))


PRESETS = {"quick": quick, "full": full}
