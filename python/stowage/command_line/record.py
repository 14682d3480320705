"""Record one training step of a PyTorch network, without a GPU, as a step file.

  python -m stowage record torchvision:resnet50 --batch 32 -o resnet50.json
  python -m stowage record transformers:gpt2 --seq 1024 --optimizer adamw -o gpt2.json
  python -m stowage record net.py:build_model --input 3x224x224 -o net.json
  python -m stowage record train.py --batch 8 -o train.json       (docs/record.md)
  python -m stowage record train.py -o train.json -- --epochs 1   (the script's own options)

then: stowage check resnet50.json --gpu rtx3090
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from stowage.command_line.batch_axes import batch_axes_of
from stowage.command_line.interrupts import INTERRUPTS
from stowage.command_line.numbers import positive
from stowage.command_line.own_code import user_code_error
from stowage.errors import StowageError
from stowage.shown import printable_line
from stowage.whole_file import check_place, descriptor_of

if TYPE_CHECKING:
    import argparse

    from stowage.options import RecordOptions
    from stowage.record import RecordedStep

SUMMARY = "record one step of a PyTorch network as a step file"
DEFAULT_BATCH = 2
STDOUT = 1  # its descriptor
# Options that a script has no use for, with their defaults.
NOT_FOR_SCRIPTS: dict[str, Any] = {"size": None, "input": [], "batch_axes": (), "head": None,
                  "optimizer": "sgd", "implementation": "default", "mode": "train", "accumulation": 1,
                  "keep_gradients": False, "precision": "fp32", "channels_last": False,
                  "checkpoint": False}


def capability_of(text: str) -> tuple[int, int]:
    major, dot, minor = text.partition(".")
    if not (dot and major.isdigit() and minor.isdigit()):
        raise ValueError
    return int(major), int(minor)


capability_of.__name__ = "compute capability"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the step file; -: stdout")
    add_source_options(parser)


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """What is recorded, and how: SOURCE and its options."""
    from stowage.options import IMPLEMENTATIONS, OPTIMIZERS, PRECISIONS

    parser.add_argument("source", metavar="SOURCE",
                        help="torchvision:NAME, timm:NAME, transformers:NAME, FILE.py:FUNCTION, or a "
                             "script FILE.py with @stowage.step")
    parser.add_argument("--batch", type=positive, metavar="N",
                        help=f"samples of a batch (default: the source's own, else {DEFAULT_BATCH})")
    parser.add_argument("--seq", type=positive, metavar="N", help="tokens of a sequence")
    parser.add_argument("--size", type=positive, metavar="N", help="pixels of an image's side")
    parser.add_argument("--input", action="append", default=[], metavar="SHAPE",
                        help="an input of FILE.py:FUNCTION without its batch: 3x224x224, 128:int64")
    parser.add_argument("--batch-axes", type=batch_axes_of, default=(), metavar="AXES",
                        help="the axis of the inputs of FILE.py:FUNCTION that is the batch, where the "
                             "function takes none: 0, or one for each tensor: 0,1,none")
    parser.add_argument("--head", metavar="KIND",
                        help="of transformers: CausalLM, SequenceClassification, ...")
    parser.add_argument("--optimizer", default="sgd", choices=OPTIMIZERS, metavar="NAME",
                        help=f"{', '.join(OPTIMIZERS)} (default sgd)")
    parser.add_argument("--implementation", default="default", choices=IMPLEMENTATIONS,
                        help="of the optimizer")
    parser.add_argument("--precision", default="fp32", choices=PRECISIONS,
                        help="amp-*: autocast (default fp32)")
    parser.add_argument("--mode", default="train", choices=("train", "inference"))
    parser.add_argument("--accumulation", type=positive, default=1, metavar="N",
                        help="micro-batches before an update")
    parser.add_argument("--keep-gradients", action="store_true",
                        help="zero_grad(set_to_none=False)")
    parser.add_argument("--channels-last", action="store_true", help="the model, and images")
    parser.add_argument("--checkpoint", action="store_true",
                        help="gradient checkpointing, where the model offers it")
    parser.add_argument("--compute-capability", type=capability_of, default=(8, 6), metavar="X.Y",
                        help="for which attention and convolutions choose kernels (default 8.6)")


def record_options(options: argparse.Namespace) -> RecordOptions:
    from stowage.options import RecordOptions

    return RecordOptions(
        options.optimizer, options.implementation, options.precision, options.mode,
        options.accumulation, not options.keep_gradients, options.compute_capability, options.seq)


def record_model_source(options: argparse.Namespace) -> RecordedStep:
    """The RecordedStep of a model that a source names."""
    from stowage.record import record_source
    from stowage.sources import SourceOptions, resolve
    from stowage.sources.variations import with_channels_last, with_checkpointing

    source = resolve(options.source, SourceOptions(options.seq, options.size, tuple(options.input),
                                                   options.head, options.batch_axes),
                     options.batch, options.own_arguments)
    if options.channels_last:
        source = with_channels_last(source)
    if options.checkpoint:
        source = with_checkpointing(source)
    return record_source(source, options.batch or source.batch or DEFAULT_BATCH,
                         record_options(options))


def record_script_step(options: argparse.Namespace) -> RecordedStep:
    """The RecordedStep of a script. Raises StowageError for an option that the script decides."""
    from stowage.script import record_script

    for name, usual in NOT_FOR_SCRIPTS.items():
        if getattr(options, name) != usual:
            word = name.replace("_", "-")
            raise StowageError(f"--{word}: {options.source} is a script, which says so itself")
    return record_script(options.source, options.batch, record_options(options),
                         options.own_arguments)


def recorded_step(options: argparse.Namespace) -> RecordedStep:
    """The step of what the options of add_source_options name. Raises StowageError."""
    from stowage.sources import is_script
    from stowage.sources.source import import_library

    import_library("torch")
    try:
        record = record_script_step if is_script(options.source) else record_model_source
        return record(options)
    except StowageError:
        raise
    except Exception as error:
        raise user_code_error(error, options.source) from error


def print_warnings(recorded: RecordedStep) -> None:
    for warning in recorded.warnings_with_hints():
        print(f"warning: {warning['message']}", file=sys.stderr)
        if warning.get("hint"):
            print(f"  {warning['hint']}", file=sys.stderr)


def run(options: argparse.Namespace) -> int:
    started = time.monotonic()
    output = "/dev/stdout" if options.output == "-" else options.output
    check_place(output)
    recorded = recorded_step(options)
    INTERRUPTS.check()
    recorded.save(output)
    document = recorded.document
    print_warnings(recorded)
    is_stdout = descriptor_of(output) == STDOUT
    print(f"{printable_line(options.output)}: {document['model']} at batch {document['batch']}, "
          f"{len(document['step']['nodes'])} kernels, {time.monotonic() - started:.1f} s",
          file=sys.stderr if is_stdout else sys.stdout)
    return 0
