"""Make a training script fit a GPU: record its step, plan it for PyTorch, and say the lines to add.

  python -m stowage fit train.py --gpu rtx3060
  python -m stowage fit train.py --gpu "gtx 1060 6gb" --batch 16 -o plan.yaml -- --epochs 1

Nothing is computed and no GPU is needed. The plan is carried out by `stowage.apply` (docs/apply.md).
"""

from __future__ import annotations

import pathlib
import sys
from typing import TYPE_CHECKING

from stowage.command_line.interrupts import INTERRUPTS
from stowage.command_line.program import compute_capability_of, run_stowage
from stowage.command_line.record import add_source_options, print_warnings, recorded_step
from stowage.document.write import checked_text
from stowage.errors import StowageError
from stowage.shown import printable_line
from stowage.whole_file import check_place

if TYPE_CHECKING:
    import argparse

SUMMARY = "record a training script, plan it for a GPU, and say the lines to add"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_source_options(parser)
    parser.add_argument("--gpu", metavar="NAME", help="the card; stowage gpus lists the names")
    parser.add_argument("--gpu-memory", metavar="SIZE", help="a card of that size, as 12GiB")
    parser.add_argument("--choose", metavar="NAME", help="which of the proposed plans to write")
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="the plan's file (default: SOURCE's name with .plan.yaml)")


def plan_place(options: argparse.Namespace) -> str:
    """Where the plan is written."""
    if options.output is not None:
        return str(options.output)
    name = pathlib.Path(options.source.partition(":")[0]).stem
    return f"{name}.plan.yaml"


def run(options: argparse.Namespace) -> int:
    """0: the plan is written; 1: nothing fits; 2: what was asked cannot be read."""
    if (options.gpu is None) == (options.gpu_memory is None):
        raise StowageError("a plan is for one card: --gpu NAME or --gpu-memory SIZE",
                           "stowage gpus lists the names")
    place = plan_place(options)
    check_place(place)
    if options.gpu is not None:
        options.compute_capability = compute_capability_of(options.gpu)
    recorded = recorded_step(options)
    print_warnings(recorded)
    document = recorded.document
    print(f"recorded {printable_line(document['model'])} at batch {document['batch']}: "
          f"{len(document['step']['nodes'])} kernels", file=sys.stderr)
    card = ["--gpu", options.gpu] if options.gpu is not None else ["--gpu-memory", options.gpu_memory]
    words = ["plan", "--for", "pytorch", *card, "-o", place]
    if options.batch is not None:
        words += ["--batch", str(options.batch)]
    if options.choose is not None:
        words += ["--choose", options.choose]
    INTERRUPTS.check()
    return run_stowage([*words, "-"], checked_text(document, "the step"))
