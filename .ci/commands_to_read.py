#!/usr/bin/env python3
"""Prints the compile commands of the sources that changes since a commit can break.

    .ci/commands_to_read.py COMMIT    or "all" for every source

One command a line, to be run in build/alone, where this configures the preset release. A source is printed if
it changed, if it includes a changed file, directly or through others, or if its command is not the one that it
had at COMMIT. What is not printed is compiled from the same text by the same command as at COMMIT.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict

_INCLUDE = re.compile(r'\s*#\s*include\s*[<"](?:\.\.?/)*([^>"]+)[>"]')
_CONFIGURES = re.compile(r"(^|/)(CMakeLists\.txt|CMakePresets\.json)$|\.cmake$|^cmake/")


def git(*arguments: str) -> list[str]:
    """The lines that git prints."""
    done = subprocess.run(["git", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def changed_files(since: str) -> list[str]:
    """Committed or not, new and deleted ones too."""
    return [*git("diff", "--name-only", "--no-renames", since),
            *git("ls-files", "--others", "--exclude-standard")]


def ends_of(path: str) -> list[str]:
    """"a/b/c.hpp", "b/c.hpp", "c.hpp": every text that an #include of this file may have."""
    parts = path.split("/")
    return ["/".join(parts[first:]) for first in range(len(parts))]


def including_files(files: list[str]) -> set[str]:
    """These files and all that include one of them, directly or through others.

    An #include counts for every file whose path ends in its text, so that it does not matter in which folders
    the compiler looks.
    """
    including = defaultdict(set)
    found = subprocess.run(["git", "grep", "--untracked", "-E", r"^\s*#\s*include\s*[<\"]"],
                           capture_output=True, text=True, errors="replace", check=True)
    for line in found.stdout.splitlines():
        path, _, text = line.partition(":")
        include = _INCLUDE.match(text)
        if include:
            including[include[1]].add(path)
    reached, waiting = set(files), list(files)
    while waiting:
        for end in ends_of(waiting.pop()):
            new = including.pop(end, set()) - reached
            reached |= new
            waiting += new
    return reached


def commands_of(folder: str, build: str) -> dict[str, list[str]]:
    """The commands of `folder`'s sources by path, configured in `build`; without sources that a build writes."""
    os.makedirs(build, exist_ok=True)
    done = subprocess.run(["cmake", "--preset", "release", "-B", build], cwd=folder,
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"cannot configure {folder}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    commands = defaultdict(list)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            if not entry["file"].startswith(build + "/"):
                commands[os.path.relpath(entry["file"], folder)].append(entry["command"])
    if not commands:
        raise SystemExit(f"{folder} has no sources")
    return commands


def earlier_commands(since: str, folder: str, build: str) -> dict[str, list[str]]:
    """The commands at that commit, as if its files lay in `folder`; none if it cannot be configured."""
    old = tempfile.mkdtemp(prefix="alone-since-", dir=os.path.join(folder, "build"))
    files = subprocess.run(["git", "archive", since], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(files)) as archive:
        archive.extractall(old)
    try:
        found = commands_of(old, os.path.join(old, "build"))
    except SystemExit as error:
        print(f"every source is read, since {since} cannot be compared: {error}", file=sys.stderr)
        return {}
    finally:
        shutil.rmtree(old)
    here = {os.path.join(old, "build"): build, old: folder}
    for place, name in here.items():
        found = {path: [command.replace(place, name) for command in commands]
                 for path, commands in found.items()}
    return found


def main(since: str) -> None:
    folder = os.getcwd()
    build = os.path.join(folder, "build", "alone")
    now = commands_of(folder, build)
    chosen = set(now)
    if since != "all":
        changed = changed_files(since)
        chosen = including_files(changed)
        if any(map(_CONFIGURES.search, changed)):
            before = earlier_commands(since, folder, build)
            chosen |= {path for path in now if now[path] != before.get(path)}
    for path in sorted(chosen & set(now)):
        print(*now[path], sep="\n")
    read, every = (sum(map(len, part)) for part in (
        [now[path] for path in chosen & set(now)], now.values()))
    print(f"{read} of {every} sources to read", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
