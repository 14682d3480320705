"""Measured jobs, put to the program: as it ships, and with the CUDA context that was measured."""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import measured
import stowage
from measured import Row
from stowage import Prediction, Refusal


class Usage(Exception):
    """A mistake in the command line or in what it names."""


@dataclass(frozen=True)
class Compared:
    """One job: measured, and predicted as shipped and with the measured context (None: not known)."""

    row: Row
    untold: tuple[str, ...]
    shipped: Prediction | Refusal
    in_context: Prediction | Refusal | None

    def refusal(self) -> Refusal | None:
        for answer in (self.shipped, self.in_context):
            if isinstance(answer, Refusal):
                return answer
        return None

    def judged(self) -> bool:
        return isinstance(self.shipped, Prediction) and not self.untold


def compared(program: stowage.Program, row: Row, in_context: bool) -> Compared:
    shipped = program.check(row.job)
    again = in_context and row.context_bytes is not None and isinstance(shipped, Prediction)
    return Compared(row, program.question(row.job).untold, shipped,
                    program.check(row.job, row.context_bytes) if again else None)


def compare_all(program: stowage.Program, rows, in_context: bool = True) -> list[Compared]:
    """In the order of the rows; those that ended as `ok` or `oom`, since only they say something.

    `in_context`: ask again with each job's measured context.
    """
    telling = [row for row in rows if row.status in ("ok", "oom")]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(lambda row: compared(program, row, in_context), telling))


def refused(rows: list[Compared]) -> list[dict]:
    return [{"key": row.row.job.key(), "said": refusal.said} for row in rows
            if (refusal := row.refusal())]


def add_asking(to: argparse.ArgumentParser) -> None:
    """The options of how the program is asked, which every command that asks it has."""
    to.add_argument("measured", metavar="MEASURED", help="what measure.py wrote")
    to.add_argument("--stowage", metavar="PATH",
                    help="the program [$STOWAGE, else build/stowage, else the one on the PATH]")
    to.add_argument("--gpu", help="the card's name or file, for --gpu [the measured card's name]")


def opened(options, dry: bool = False) -> tuple[measured.Measured, stowage.Program, str]:
    """(file, program, card). Usage for what the options name wrongly. `dry`: figures are not needed."""
    try:
        source = measured.load(options.measured)
        if not source.measurement and not dry:
            raise Usage(f"{options.measured} is a dry run: there are no figures in it")
        gpu = options.gpu or source.card
        if not gpu:
            raise Usage(f"{options.measured} names no card: give --gpu")
        program = stowage.Program(stowage.find_program(options.stowage), gpu, source.alloc_conf(),
                                  source.software.get("torch"))
    except (measured.Malformed, stowage.NoProgram, OSError) as error:
        raise Usage(str(error)) from error
    return source, program, gpu
