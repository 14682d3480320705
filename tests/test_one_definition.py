"""What one_definition.py finds, and what it lets be."""

from __future__ import annotations

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import one_definition


class OneDefinition(unittest.TestCase):
    def found(self, **files: str) -> tuple[int, list[str]]:
        """Exit code and the places of second definitions. `planner__a` is planner/a.hpp."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, *name.split("__")).with_suffix(".hpp")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            out = io.StringIO()
            with mock.patch.object(sys, "argv", ["", folder]), contextlib.redirect_stdout(out):
                code = one_definition.main()
            return code, [line for line in out.getvalue().splitlines() if " is defined in " in line]

    def test_a_type_and_a_constant_of_two_libraries(self):
        code, lines = self.found(
            planner__row="namespace stowage {\nstruct Row { int line = 0; };\n}",
            answers__row="namespace stowage { class Row final : public Base { void f() { } }; }",
            planner__most="namespace stowage { inline constexpr int most = 3; }",
            cli__most="namespace stowage { inline constexpr std::array<int, 2> most{1, 2}; }")
        self.assertEqual(code, 1)
        self.assertEqual(lines, ["answers/row.hpp:1: stowage::Row is defined in planner/row.hpp:2 too",
                                 "cli/most.hpp:1: stowage::most is defined in planner/most.hpp:1 too"])

    def test_what_is_a_files_own_or_another_name(self):
        code, lines = self.found(
            planner__a="namespace stowage { namespace { struct Row {}; } struct A { struct Row {}; }; }",
            planner__b="namespace stowage { namespace { struct Row {}; } struct Row; Row f(Row row) { return row; } }",
            answers__c="namespace stowage::inner { struct Row {}; } // struct Row {};\n"
                       'inline const char* text() { return "struct Row {"; }',
            answers__d="namespace stowage { template <> struct Row<int> {}; struct Row {}; }")
        self.assertEqual((code, lines), (0, []))

    def test_the_tests_of_one_program_and_of_two(self):
        of = "namespace stowage { struct Fixture {}; }"
        self.assertEqual(self.found(tests__planner__a=of, tests__answers__b=of)[0], 0)
        self.assertEqual(self.found(tests__planner__a=of, tests__planner__b=of)[0], 1)
        self.assertEqual(self.found(tests__planner__a=of, tests__support__b=of)[0], 1)
        self.assertEqual(self.found(tests__planner__a=of, estimator__b=of)[0], 1)

    def test_no_type_at_all_is_no_pass(self):
        self.assertEqual(self.found(planner__a="int x;")[0], 1)


if __name__ == "__main__":
    unittest.main()
