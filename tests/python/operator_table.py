#!/usr/bin/env python3
"""Holds the package's copy of the operator table against `stowage ops --format json`.

    operator_table.py PROGRAM            exit code 1 where python/stowage/export/operators.json differs
    operator_table.py PROGRAM --write    writes that file anew, after a change of the catalogue

Needs neither torch nor the package.
"""

from __future__ import annotations

import difflib
import json
import pathlib
import subprocess
import sys

TABLE = pathlib.Path(__file__).parent.parent.parent / "python/stowage/export/operators.json"
MEMBERS = ("name", "type", "default")  # of an attribute, that the exporter reads


def table_of(program: str) -> str:
    """The file's text: an operator a line, with its attributes' members that the exporter reads."""
    done = subprocess.run([program, "ops", "--format", "json"], capture_output=True, text=True,
                          check=True)
    lines = [json.dumps({
        "name": row["name"],
        "attributes": [{member: attribute[member] for member in MEMBERS}
                       for attribute in row["attributes"]]}) for row in json.loads(done.stdout)["ops"]]
    return '{"ops": [\n' + ",\n".join(lines) + "\n]}\n"


def main() -> int:
    """Run the command line; returns the exit code."""
    program, *options = sys.argv[1:]
    wanted = table_of(program)
    if options == ["--write"]:
        TABLE.write_text(wanted, encoding="utf-8")
        return 0
    found = TABLE.read_text(encoding="utf-8")
    sys.stdout.writelines(difflib.unified_diff(
        found.splitlines(keepends=True), wanted.splitlines(keepends=True),
        "export/operators.json", "stowage ops --format json", n=0))
    if found != wanted:
        print(f"write it anew: python3 {pathlib.Path(__file__).name} PROGRAM --write")
    return int(found != wanted)


if __name__ == "__main__":
    sys.exit(main())
