"""Writes a model's layers as a description for `stowage check`: readable YAML, with the modules as
blocks. The model is traced by torch.export, without weights and without a GPU.

    python -m stowage export torchvision:resnet50 -o resnet50.yaml
    python -m stowage export transformers:gpt2 --seq 1024 -o gpt2.yaml
    python -m stowage export path/net.py:build_model --input 3x224x224 -o net.yaml

SOURCE is torchvision:NAME, timm:NAME, transformers:NAME or FILE.py:FUNCTION. Operators that the
catalogue of layers lacks are all named at once, with their modules; `record` takes any.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from stowage.command_line.batch_axes import batch_axes_of
from stowage.command_line.interrupts import INTERRUPTS
from stowage.command_line.numbers import positive
from stowage.command_line.own_code import user_code_error
from stowage.errors import StowageError
from stowage.sources import SourceOptions, resolve
from stowage.sources.source import import_library
from stowage.whole_file import check_place, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from stowage.sources.source import Source

SUMMARY = "write a model's layers as a description"
LOSSES = ("cross_entropy", "mse", "l1", "bce", "bce_with_logits")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE")
    parser.add_argument("-o", "--output", required=True, metavar="FILE",
                        help="the description; '-' for standard output")
    parser.add_argument("--seq", type=positive, metavar="N", help="tokens; open in what is written")
    parser.add_argument("--size", type=positive, metavar="N", help="pixels of an image's side")
    parser.add_argument("--input", action="append", default=[], metavar="SHAPE",
                        help="an input without the batch: 3x224x224, 128:int64")
    parser.add_argument("--batch-axes", type=batch_axes_of, default=(), metavar="AXES",
                        help="the axis of a function's inputs that is the batch: 0, or 0,1,none")
    parser.add_argument("--head", metavar="NAME", help="transformers: CausalLM, MaskedLM, ...")
    parser.add_argument("--loss", choices=LOSSES,
                        help="the loss of the output [the source's own, cross_entropy]")


def loss_function(name: str) -> Callable[..., Any]:
    """(output, target) -> the loss. Without a target, one of the output's shape is an input."""
    import torch
    import torch.nn.functional as functional

    from stowage.sources.source import class_loss, first_tensor

    if name == "cross_entropy":
        return class_loss
    function: Callable[..., Any] = {
        "mse": functional.mse_loss, "l1": functional.l1_loss,
        "bce": functional.binary_cross_entropy,
        "bce_with_logits": functional.binary_cross_entropy_with_logits}[name]

    def loss(output: Any, target: Any) -> Any:
        found = first_tensor(output)
        return function(found, torch.zeros_like(found) if target is None else target)

    return loss


def with_loss(source: Source, loss: Callable[..., Any]) -> Source:
    """The source with that loss, also where its batches have one of their own."""
    import dataclasses

    return dataclasses.replace(
        source, loss=loss, example=lambda batch: dataclasses.replace(source.example(batch), loss=None))


def run(options: argparse.Namespace) -> int:
    if options.output != "-":
        check_place(options.output)
    import_library("torch")
    try:
        text = text_of(options)
    except StowageError:
        raise
    except Exception as error:
        raise user_code_error(error, options.source) from error
    INTERRUPTS.check()
    if options.output == "-":
        sys.stdout.write(text)
    else:
        write_whole(options.output, text)
    return 0


def text_of(options: argparse.Namespace) -> str:
    """The description's text."""
    import dataclasses

    from . import export

    settings = SourceOptions(seq=options.seq, size=options.size, inputs=tuple(options.input),
                             head=options.head, batch_axes=options.batch_axes)
    source = resolve(options.source, settings, arguments=options.own_arguments)
    if options.loss:
        source = with_loss(source, loss_function(options.loss))
    other = None
    if source.seq:
        other_seq = source.seq + 8 if source.seq < 16 else source.seq - 5
        again = resolve(options.source, dataclasses.replace(settings, seq=other_seq),
                        arguments=options.own_arguments)
        other = (other_seq, again.example)
    return export(source, other)
