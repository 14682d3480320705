"""`stowage COMMAND ...` and `python -m stowage COMMAND ...`: the Python part's own commands, and the
program's.

A command of this part is a module with `SUMMARY` (one line), `add_options(parser)` (argparse) and
`run(options)`, which returns an exit code. It is imported only when it is called or when help is
asked for. A StowageError, which the user can correct, is printed, and the exit code is 2. Every other
command line is the program's, which takes this process's place.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import re
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from stowage.command_line.interrupts import INTERRUPTS
from stowage.command_line.program import stowage_program
from stowage.errors import StowageError
from stowage.shown import printable_text
from stowage.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

COMMANDS = {
    "record": "stowage.command_line.record",
    "fit": "stowage.command_line.fit",
    "export": "stowage.export.command",
}


# What `export` takes here; a model or a plan in another form (`--to`) is the program's.
PYTORCH_SOURCE = re.compile(r"(torchvision|timm|transformers):|.*\.py(:|$)")


def is_own(words: Sequence[str]) -> bool:
    """Whether a command line is one of the Python part's."""
    if not words or words[0] not in COMMANDS:
        return False
    if words[0] != "export":
        return True
    return (not any(word == "--to" or word.startswith("--to=") for word in words)
            and any(PYTORCH_SOURCE.match(word) for word in words[1:]))


def become_program(words: Sequence[str]) -> NoReturn:
    """Has the program take this process's place, so that its signals and its exit code are its own. Ends
    the process in any case."""
    try:
        program = stowage_program()
        os.execv(program, [program, *words])
    except StowageError as error:
        sys.exit(shown_error(error))
    except OSError as error:
        sys.exit(shown_error(StowageError(f"{program}: {error.strerror}",
                                          "STOWAGE_PROGRAM=FILE says where the program is")))


def shown_error(error: StowageError) -> int:
    """Prints it; the exit code."""
    print(f"error: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  {error.hint}", file=sys.stderr)
    return 2


def command_modules() -> Iterator[tuple[str, ModuleType]]:
    """(name, module) of every command that this installation has."""
    for name, module in COMMANDS.items():
        try:
            yield name, importlib.import_module(module)
        except ModuleNotFoundError as missing:
            if not module.startswith(str(missing.name)):
                raise


class Parser(argparse.ArgumentParser):
    """Quotes words of the command line with escapes for what a terminal would act upon."""

    def error(self, message: str) -> NoReturn:
        super().error(printable_text(message))


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="stowage" if os.path.basename(sys.argv[0]) == "stowage" else "python -m stowage",
        description="What PyTorch knows of a network, for stowage: its step, or its layers.")
    parser.add_argument("--version", action="version", version=f"stowage {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in command_modules():
        options = commands.add_parser(name, help=module.SUMMARY, description=module.__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
        module.add_options(options)
        options.set_defaults(run=module.run)
    return parser


def parted(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the words before the first "--", those after it). Versions of argparse differ in what they make
    of "--", so that it never sees one."""
    end = list(words).index("--") if "--" in words else len(words)
    return list(words[:end]), list(words[end + 1:])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line (by default the process's own); returns the exit code: 0, 2 for an error
    that the user can correct, 130 if interrupted. Words behind a "--" are those of the file that the
    command runs: the option `own_arguments`."""
    own, after = parted(sys.argv[1:] if arguments is None else arguments)
    try:
        with INTERRUPTS.noted():
            options = make_parser().parse_args(own)
            options.own_arguments = after
            return options.run(options) or 0
    except StowageError as error:
        if INTERRUPTS.came:  # a library's word for it: a module that it did not import
            return shown_interrupt()
        return shown_error(error)
    except KeyboardInterrupt:
        return shown_interrupt()


def shown_interrupt() -> int:
    """Prints it; the exit code."""
    print("interrupted: nothing was written", file=sys.stderr)
    return 130


def command() -> NoReturn:
    """The program `stowage` that pip installs, and `python -m stowage`."""
    for stream in (sys.stdout, sys.stderr):  # of an encoding that lacks some names' characters
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if not is_own(sys.argv[1:]):
        become_program(sys.argv[1:])
    code = main()
    if INTERRUPTS.came:  # a second Ctrl-C would find Python at its end, which prints a traceback
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


if __name__ == "__main__":
    command()
