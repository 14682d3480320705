#!/usr/bin/env python3
"""Each type and each constant has one definition: two of one name in two files are one to the linker.

    one_definition.py FOLDER      exit code 1, and both places, where a name has two

Two libraries that both define stowage::TableRow compile, and each sees its own; what the compiler makes
of templates over it (std::vector<TableRow>) exists once in the program, and works on the other's layout.
What is within functions, classes and unnamed namespaces is its file's own. The tests' sources are read too,
as they are linked with the libraries; of two test programs, which are not linked with each other, neither
is held against the other.
"""

from __future__ import annotations

import collections
import pathlib
import re
import sys

LIBRARIES = ("estimator", "planner", "gpu_probe", "answers", "cli")
# Literals and comments first, so that no brace within them counts.
TOKEN = re.compile(
    r'R"(?P<raw>[^()\s\\]{0,16})\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    r"|//[^\n]*|/\*.*?\*/|\#(?:[^\n\\]|\\.)*|(?<![\w'])\d[\w']*|[A-Za-z_]\w*|::|[^\s\w]", re.S)
NOT_CODE = ('"', "//", "/*", "#", "R\"", "'")


def tokens_of(text: str) -> list[tuple[str, int]]:
    """(token, line), without comments, literals and the preprocessor's lines."""
    found, line, at = [], 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        token = match.group()
        if not token.startswith(NOT_CODE):
            found.append((token, line))
    return found


def opened_by(words: list[str]) -> tuple[str, str]:
    """What a brace opens, by the words since the last ; { or }: ("namespace", name), ("type", name) or
    ("other", "")."""
    if "namespace" in words:
        return "namespace", "".join(words[words.index("namespace") + 1:])
    if words and words[0] == "template":  # its parameters are no types of ours
        depth, end = 0, len(words)
        for i, word in enumerate(words[1:], 1):
            depth += {"<": 1, ">": -1}.get(word, 0)
            if depth == 0:
                end = i + 1
                break
        words = words[end:]
    if not words or words[0] not in ("struct", "class", "enum", "union"):
        return "other", ""
    rest = [word for word in words[1:] if word not in ("class", "struct")]
    name = ""
    for word in rest:
        if word in (":", "final") or word == "<":
            break
        name += word if word.isidentifier() or word == "::" else ""
    specialized = "<" in rest[:rest.index(":")] if ":" in rest else "<" in rest
    return ("other", "") if specialized or not name else ("type", name)


def constant_of(words: list[str]) -> str:
    """The name of an inline variable, by the words before its value; "": they say something else."""
    if words[:1] != ["inline"] or "operator" in words or "(" in words or not words[-1].isidentifier():
        return ""
    return words[-1] if len(words) > 2 else ""


def definitions_in(text: str) -> list[tuple[str, int]]:
    """(full name, line) of each type and inline variable that is defined in a named namespace."""
    found, scopes, words = [], [], []
    parentheses = 0

    def define(name: str, line: int) -> None:
        if all(scope == "namespace" and inner for scope, inner in scopes):
            found.append(("::".join([inner for _, inner in scopes] + [name]), line))

    for token, line in tokens_of(text):
        if token == "(":
            parentheses += 1
        elif token == ")":
            parentheses -= 1
        if token == "{" and parentheses == 0:
            if constant := constant_of(words):
                define(constant, line)
            kind, name = opened_by(words)
            if kind == "type":
                define(name, line)
            scopes.append((kind, name))
            words = []
        elif token == "}" and parentheses == 0:
            if scopes:
                scopes.pop()
            words = []
        elif token in (";", "=") and parentheses == 0:
            if constant := constant_of([word for word in words if word not in "[]"]):
                define(constant, line)
            words = []
        else:
            words.append(token)
    return found


def program_of(path: pathlib.PurePath) -> str:
    """"": linked into every program; else the test program that it belongs to."""
    if path.parts[0] != "tests":
        return ""
    return "" if path.parts[1] == "support" else path.parts[1]


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    places: dict[str, list[tuple[str, str, int]]] = collections.defaultdict(list)
    files = 0
    for folder in (*LIBRARIES, "tests"):
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            relative = path.relative_to(root)
            files += 1
            for name, line in definitions_in(path.read_text(encoding="utf-8")):
                places[name].append((program_of(relative), str(relative), line))
    mistakes = 0
    for name, found in sorted(places.items()):
        for i, (program, path, line) in enumerate(found):
            # Twice in one file: under conditions of the preprocessor.
            others = [other for other in found[:i] if path != other[1] and
                      ("" in (program, other[0]) or program == other[0])]
            if others:
                mistakes += 1
                print(f"{path}:{line}: {name} is defined in {others[0][1]}:{others[0][2]} too")
    print(f"{files} files, {len(places)} types and constants, {mistakes} defined twice")
    if not places:
        print("none was found: what finds them is broken")
    return 1 if mistakes or not places else 0


if __name__ == "__main__":
    sys.exit(main())
