"""`python -m stowage COMMAND ...`: a table of sub-commands.

A command is a module with `SUMMARY` (one line), `add_options(parser)` (argparse) and
`run(options)`, which returns an exit code. It is imported only when it is called or when help is
asked for. A StowageError, which the user can correct, is printed, and the exit code is 2.
"""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from typing import TYPE_CHECKING, NoReturn

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
        prog="python -m stowage",
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
    options = make_parser().parse_args(own)
    options.own_arguments = after
    try:
        return options.run(options) or 0
    except StowageError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return 130


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):  # of an encoding that lacks some names' characters
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main())
