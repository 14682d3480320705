"""The reference models: how each is built, what it is fed and how its loss is taken."""

import dataclasses
from typing import Callable

import torch
from torch import nn
import torch.nn.functional as functional


@dataclasses.dataclass(frozen=True)
class Reference:
    """One model. `inputs(batch, seq)` gives (input, target); `loss(model, input, target)` gives
    (output, loss), the two variables that a training script keeps until it overwrites them."""

    source: str
    parameters: int | None
    build: Callable[[int | None], nn.Module]
    inputs: Callable
    loss: Callable
    input_shape: tuple = ()
    seq: int | None = None


def mlp(_seq):
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                         nn.Linear(1024, 10))


def mnist_cnn(_seq):
    """The CNN of the Keras tutorial: three convolutions without padding, two max-pools."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(576, 64), nn.ReLU(), nn.Linear(64, 10))


def torchvision_model(name):
    def build(_seq):
        import torchvision

        return getattr(torchvision.models, name)(weights=None)

    return build


class DoubleConv(nn.Sequential):
    """Twice: 3x3 convolution without bias, batch norm, in-place ReLU."""

    def __init__(self, channels_in, channels_out):
        super().__init__(
            nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels_out), nn.ReLU(inplace=True),
            nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels_out), nn.ReLU(inplace=True))


class Up(nn.Module):
    """Transposed convolution, concatenation (skip first), DoubleConv. Sizes divisible by 16 need
    no padding of the upsampled tensor, so there is none."""

    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.up = nn.ConvTranspose2d(channels_in, channels_in // 2, 2, stride=2)
        self.conv = DoubleConv(channels_in, channels_out)

    def forward(self, x, skip):
        x = self.up(x)
        x = torch.cat([skip, x], dim=1)
        return self.conv(x)


class UNet(nn.Module):
    """The U-Net of Ronneberger et al. as milesial's Pytorch-UNet writes it (bilinear=False)."""

    def __init__(self, channels=3, classes=2):
        super().__init__()
        self.inc = DoubleConv(channels, 64)
        for index, width in enumerate((64, 128, 256, 512), start=1):
            down = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width, 2 * width))
            self.add_module(f"down{index}", down)
        for index, width in enumerate((1024, 512, 256, 128), start=1):
            self.add_module(f"up{index}", Up(width, width // 2))
        self.outc = nn.Conv2d(64, classes, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x5 = self.down4(x4)
        x = self.up1(x5, x4)
        x = self.up2(x, x3)
        x = self.up3(x, x2)
        x = self.up4(x, x1)
        return self.outc(x)


def keras_deep(_seq):
    """26 'same' convolutions of 3x3 with bias and no activations on 16x16x1, four max-pools."""
    widths = [256, 512, *[1024] * 22, 256, 32]
    pooled_after = {1, 2, 24, 26}
    layers, channels = [], 1
    for index, width in enumerate(widths, start=1):
        layers.append(nn.Conv2d(channels, width, 3, padding=1))
        channels = width
        if index in pooled_after:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32, 4), nn.Linear(4, 1))


class WordLanguageModel(nn.Module):
    """pytorch/examples' word_language_model: an LSTM of two layers between an embedding and a
    decoder, not tied, with dropout after the embedding, between the layers and before the decoder.
    The sequence is the first axis. The hidden state starts at zero."""

    def __init__(self, vocabulary=33278, embedding=650, hidden=650, layers=2, dropout=0.5):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(vocabulary, embedding)
        self.rnn = nn.LSTM(embedding, hidden, layers, dropout=dropout)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, tokens):
        output, _ = self.rnn(self.drop(self.encoder(tokens)))
        decoded = self.decoder(self.drop(output))
        return functional.log_softmax(decoded.flatten(0, 1), dim=1)


def dcgan_generator(_seq, noise=100, width=64, channels=3):
    """The generator of pytorch/examples' dcgan: noise [n, 100, 1, 1] to images of 64x64."""
    layers, previous = [], noise
    for index, factor in enumerate((8, 4, 2, 1)):
        step = dict(stride=1, padding=0) if index == 0 else dict(stride=2, padding=1)
        layers += [nn.ConvTranspose2d(previous, factor * width, 4, bias=False, **step),
                   nn.BatchNorm2d(factor * width), nn.ReLU(True)]
        previous = factor * width
    return nn.Sequential(*layers, nn.ConvTranspose2d(previous, channels, 4, 2, 1, bias=False),
                         nn.Tanh())


def dcgan_discriminator(_seq, width=64, channels=3):
    """The discriminator of pytorch/examples' dcgan: images of 64x64 to one probability each."""
    layers = [nn.Conv2d(channels, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
    for factor in (2, 4, 8):
        layers += [nn.Conv2d(factor * width // 2, factor * width, 4, 2, 1, bias=False),
                   nn.BatchNorm2d(factor * width), nn.LeakyReLU(0.2, inplace=True)]
    return nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
                         nn.Flatten(0))


def gpt2(dropout):
    def build(_seq):
        import transformers

        rates = {} if dropout else dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
        config = transformers.GPT2Config(**rates)
        config._attn_implementation = "sdpa"
        return transformers.GPT2LMHeadModel(config)

    return build


def images(classes):
    def make(reference, batch, _seq):
        return torch.rand(batch, *reference.input_shape), torch.zeros(batch, dtype=torch.int64)

    return make


def pixels(reference, batch, _seq):
    size = reference.input_shape[1:]
    return torch.rand(batch, *reference.input_shape), torch.zeros(batch, *size, dtype=torch.int64)


def numbers(reference, batch, _seq):
    return torch.rand(batch, *reference.input_shape), torch.rand(batch, 1)


def tokens(_reference, batch, seq):
    ids = torch.zeros(batch, seq, dtype=torch.int64)
    return ids, torch.zeros(batch, seq, dtype=torch.int64)


def cross_entropy(model, inputs, target):
    output = model(inputs)
    return output, functional.cross_entropy(output, target)


def mean_squared_error(model, inputs, target):
    output = model(inputs)
    return output, functional.mse_loss(output, target)


def language_model(model, inputs, target):
    output = model(input_ids=inputs, labels=target, use_cache=False)
    return output, output.loss


def vision(source, parameters, build, shape):
    return Reference(source, parameters, build, images(1000), cross_entropy, shape)


def transformer(dropout):
    return Reference("transformers.GPT2LMHeadModel(GPT2Config()), sdpa, use_cache=False"
                     + ("" if dropout else ", all dropouts 0"),
                     124_439_808, gpt2(dropout), tokens, language_model, seq=128)


MODELS = {
    "mlp": vision("tests/reference/models.py: mlp", 1_863_690, mlp, (784,)),
    "mnist-cnn": vision("tests/reference/models.py: mnist_cnn", 93_322, mnist_cnn, (1, 28, 28)),
    "vgg16": vision("torchvision.models.vgg16", 138_357_544, torchvision_model("vgg16"),
                    (3, 224, 224)),
    "resnet18": vision("torchvision.models.resnet18", 11_689_512, torchvision_model("resnet18"),
                       (3, 224, 224)),
    "resnet50": vision("torchvision.models.resnet50", 25_557_032, torchvision_model("resnet50"),
                       (3, 224, 224)),
    "unet": Reference("tests/reference/models.py: UNet", 31_037_698, lambda _: UNet(), pixels,
                      cross_entropy, (3, 64, 64)),
    "gpt2": transformer(dropout=True),
    "gpt2-nodropout": transformer(dropout=False),
    "keras-deep-16x16": Reference("tests/reference/models.py: keras_deep", 206_538_153,
                                  keras_deep, numbers, mean_squared_error, (1, 16, 16)),
}
