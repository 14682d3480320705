#!/usr/bin/env python3
"""The package's imports: no modules that import each other, and no torch where help is asked for.

Needs neither torch nor an installed package.
"""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys
import unittest
from collections.abc import Iterator

PACKAGE = pathlib.Path(__file__).parent.parent.parent / "python" / "stowage"


def modules() -> dict[str, pathlib.Path]:
    """{module's name: its file}."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run, those within functions too: without those for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        else:
            yield from statements(child)


def imported(name: str, file: pathlib.Path, known: set[str]) -> set[str]:
    """The modules of `known` that the module's file imports. `from package import module` is an
    import of the module."""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    names = set()
    for statement in statements(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            names.update(alias.name for alias in statement.names)
            continue
        level = statement.level
        base = package[:len(package) - level + 1] if level else []
        origin = ".".join([*base, *([statement.module] if statement.module else [])])
        for alias in statement.names:
            member = f"{origin}.{alias.name}"
            names.add(member if member in known else origin)
    return names & known


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Names of which each imports the next, and the last is the first; empty: there are none."""
    done: set[str] = set()

    def search(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name):], name]
        if name in done:
            return []
        for other in sorted(graph[name]):
            if found := search(other, [*path, name]):
                return found
        done.add(name)
        return []

    for name in sorted(graph):
        if found := search(name, []):
            return found
    return []


class Imports(unittest.TestCase):
    def test_no_modules_import_each_other(self) -> None:
        files = modules()
        graph = {name: imported(name, file, set(files)) for name, file in files.items()}
        self.assertIn("stowage.errors", graph["stowage.record"])
        self.assertIn("stowage.export.layers", graph["stowage.export.operators.shapes"])
        self.assertEqual(" -> ".join(circle(graph)), "")

    def test_a_circle_is_found(self) -> None:
        self.assertEqual(circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}), ["b", "c", "b"])
        self.assertEqual(circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}), [])

    def test_the_commands_help_needs_no_torch(self) -> None:
        """Nor does what a process imports before it forks or chooses a device."""
        code = ("import sys, stowage\n"
                "from stowage.__main__ import make_parser\n"
                "make_parser().format_help()\n"
                "print([name for name in ('torch', 'torchvision', 'timm', 'transformers')"
                " if name in sys.modules])")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              check=True, cwd=PACKAGE.parent)
        self.assertEqual(done.stdout, "[]\n")


if __name__ == "__main__":
    unittest.main()
