"""What the exporter writes is in the program's catalogue, with its defaults."""

from __future__ import annotations

import unittest

from exported import program
from operator_table import TABLE, table_of
from stowage.export.catalogue import ALWAYS_WRITTEN, OPERATORS, defaults_of, shortened
from stowage.export.catalogue import TABLE as ATTRIBUTES


class Catalogue(unittest.TestCase):
    maxDiff = None

    @unittest.skipUnless(program(), "no stowage program")
    def test_the_package_has_the_programs_table(self) -> None:
        """A name that the program lacks would make a description that it cannot read; what the
        exporter leaves out is what the catalogue then takes."""
        self.assertEqual(TABLE.read_text(encoding="utf-8"), table_of(str(program())))

    def test_defaults_have_the_types_of_values(self) -> None:
        defaults = defaults_of("conv2d")
        self.assertEqual((defaults["stride"], defaults["bias"]), (1, True))
        self.assertEqual(defaults_of("batch_norm")["eps"], 1e-5)
        self.assertEqual(defaults_of("pad")["before"], [0])
        self.assertEqual(defaults_of("gelu")["approximate"], "none")
        self.assertIs(defaults_of("linear")["frozen"], False)
        self.assertNotIn("kernel", defaults)

    def test_lists_of_equal_numbers_are_one_number_where_their_length_is_fixed(self) -> None:
        self.assertEqual(shortened("conv2d", "padding", [1, 1]), 1)
        self.assertEqual(shortened("conv2d", "padding", [1, 2]), [1, 2])
        self.assertEqual(shortened("upsample", "size", [7, 7]), 7)
        self.assertEqual(shortened("transpose", "axes", [0, 0]), [0, 0])

    def test_what_is_always_written_has_a_default(self) -> None:
        for operator, names in ALWAYS_WRITTEN.items():
            for name in names:
                with self.subTest(operator=operator, attribute=name):
                    self.assertIn(operator, OPERATORS)
                    self.assertIsNotNone(ATTRIBUTES[operator][name].default)
                    self.assertNotIn(name, defaults_of(operator))


if __name__ == "__main__":
    unittest.main()
