"""Networks, their random batches and their losses. Random weights throughout: nothing is downloaded.

`build(job)` gives the network on the CPU in fp32; `batch` makes one random batch on the device;
`loss` runs the forward pass. What surrounds them (precision, optimizer, order) is in `training.py`.
"""

from __future__ import annotations

import importlib.util

import torch
from torch import nn
from torch.nn import functional

import catalogue
from matrix import Job


class PackageMissing(Exception):
    """The package that builds this model is not installed."""


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                         nn.Linear(1024, 10))


def _mnist_cnn() -> nn.Module:
    """Three unpadded 3x3 convolutions of 32, 64, 64; a 2x2 pool after the first two; dense 64, 10."""
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(),
                         nn.Linear(576, 64), nn.ReLU(), nn.Linear(64, 10))


def _keras_deep() -> nn.Module:
    """26 padded 3x3 convolutions, a 2x2 pool after the 1st, 2nd, 24th and 26th; one output.

    No activation between them, as its user had it and configs/models describes it.
    """
    layers, channels = [], 1
    for index, width in enumerate([256, 512] + [1024] * 22 + [256, 32], start=1):
        layers += [nn.Conv2d(channels, width, 3, padding="same")]
        layers += [nn.MaxPool2d(2)] if index in (1, 2, 24, 26) else []
        channels = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32, 4), nn.Linear(4, 1))


class _UNet(nn.Module):
    """The U-Net of milesial/Pytorch-UNet: 3 channels in, 2 classes out, transposed convolutions."""

    def __init__(self):
        super().__init__()
        widths = [64, 128, 256, 512, 1024]
        self.first = self._pair(3, widths[0])
        self.down = nn.ModuleList(nn.Sequential(nn.MaxPool2d(2), self._pair(narrow, wide))
                                  for narrow, wide in zip(widths, widths[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(wide, narrow, 2, stride=2)
                                for narrow, wide in zip(widths[-2::-1], widths[:0:-1]))
        self.merge = nn.ModuleList(self._pair(2 * width, width) for width in widths[-2::-1])
        self.last = nn.Conv2d(widths[0], 2, 1)

    @staticmethod
    def _pair(channels: int, width: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
            nn.ReLU(inplace=True))

    def forward(self, image):
        skips = [self.first(image)]
        for down in self.down:
            skips.append(down(skips[-1]))
        result = skips.pop()
        for up, merge in zip(self.up, self.merge):
            grown, skip = up(result), skips.pop()
            rows, columns = skip.shape[2] - grown.shape[2], skip.shape[3] - grown.shape[3]
            grown = functional.pad(grown, [columns // 2, columns - columns // 2,
                                           rows // 2, rows - rows // 2])
            result = merge(torch.cat([skip, grown], dim=1))
        return self.last(result)


_OWN = {"mlp": _mlp, "mnist-cnn": _mnist_cnn, "keras-deep-16x16": _keras_deep, "unet": _UNet}


def _torchvision(name: str) -> nn.Module:
    import torchvision
    # Inception's own initialisation takes minutes on the CPU and changes no size.
    options = {"init_weights": False} if name == "inception_v3" else {}
    return torchvision.models.get_model(name, weights=None, **options)


def _timm(name: str) -> nn.Module:
    import timm
    return timm.create_model(name, pretrained=False)


def _transformer(job: Job) -> nn.Module:
    """From the library's default configuration, which is that of gpt2 and of bert-base-uncased."""
    import transformers
    if job.model.startswith("gpt2"):
        sizes = dict(n_embd=1024, n_layer=24, n_head=16) if job.model == "gpt2-medium" else {}
        config = transformers.GPT2Config(n_positions=max(1024, job.seq), use_cache=False, **sizes)
        return transformers.GPT2LMHeadModel(config)
    config = transformers.BertConfig(max_position_embeddings=max(512, job.seq))
    if job.model == "bert-base-mlm":
        return transformers.BertForMaskedLM(config)
    return transformers.BertForSequenceClassification(config)


def build(job: Job) -> nn.Module:
    """The network of the job, on the default device, fp32. PackageMissing if its package is absent."""
    row = catalogue.find(job.model)
    if importlib.util.find_spec(row.package) is None:
        raise PackageMissing(row.package)
    if row.package == "torch":
        return _OWN[job.model]()
    if row.package == "transformers":
        return _transformer(job)
    name = job.model.rpartition("/")[2]
    return _timm(name) if row.package == "timm" else _torchvision(name)


def batch(job: Job, device: str, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """One random batch (input, target) made on the device itself, without a temporary copy."""
    row = catalogue.find(job.model)
    if row.kind == "tokens":
        # Both vocabularies have at least 30,000 entries.
        tokens = torch.randint(0, 30_000, (job.batch, job.seq), device=device)
        if job.model == "bert-base":
            return tokens, torch.randint(0, 2, (job.batch,), device=device)
        return tokens, tokens
    if row.kind == "features":
        sample = torch.empty(job.batch, 784, device=device, dtype=dtype)
    else:
        layout = torch.channels_last if job.channels_last else torch.contiguous_format
        sample = torch.empty(job.batch, row.channels, job.image_size, job.image_size, device=device,
                             dtype=dtype, memory_format=layout)
    return sample.normal_(), _target(job, device, dtype)


def _target(job: Job, device: str, dtype: torch.dtype) -> torch.Tensor:
    if job.model == "keras-deep-16x16":
        return torch.empty(job.batch, 1, device=device, dtype=dtype).normal_()
    if job.model == "unet":
        return torch.randint(0, 2, (job.batch, job.image_size, job.image_size), device=device)
    classes = 10 if job.model in ("mlp", "mnist-cnn") else 1000
    return torch.randint(0, classes, (job.batch,), device=device)


def loss(job: Job, network: nn.Module, sample: torch.Tensor, target: torch.Tensor):
    """(loss, output): the forward pass. The caller decides how long `output` lives."""
    row = catalogue.find(job.model)
    if row.package == "transformers":
        output = network(input_ids=sample, labels=target)
        return output.loss, output
    output = network(sample)
    if job.model == "keras-deep-16x16":
        return functional.mse_loss(output, target), output
    if row.package == "torchvision" and isinstance(output, tuple):  # Inception: logits, auxiliary
        main, auxiliary = output
        return (functional.cross_entropy(main, target)
                + 0.4 * functional.cross_entropy(auxiliary, target)), output
    return functional.cross_entropy(output, target), output
