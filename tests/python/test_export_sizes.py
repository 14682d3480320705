"""Numbers that differ between traces become sums of symbols, or are refused."""

from __future__ import annotations

import unittest

from stowage.export.blocks import Atom
from stowage.export.sequences import sequence_form
from stowage.export.sizes import size_of

BATCHES = ((2, 0), (3, 0))
BOTH = ((2, 32), (3, 32), (2, 40))


class Sizes(unittest.TestCase):
    def test_batches(self) -> None:
        self.assertEqual(size_of((7, 7), BATCHES), 7)
        self.assertEqual(str(size_of((2, 3), BATCHES)), "batch")
        self.assertEqual(str(size_of((98, 147), BATCHES)), "49 * batch")
        self.assertEqual(str(size_of((3, 4), BATCHES)), "1 + batch")

    def test_batch_and_length(self) -> None:
        self.assertEqual(str(size_of((64, 96, 80), BOTH)), "batch * seq")
        self.assertEqual(str(size_of((33, 33, 41), BOTH)), "1 + seq")
        self.assertEqual(str(size_of((1024, 1024, 1600), BOTH)), "seq * seq")
        self.assertEqual(str(size_of((24, 36, 24), BOTH)), "12 * batch")

    def test_no_sum_of_symbols(self) -> None:
        self.assertIsNone(size_of((7, 11, 8, 9), BOTH + ((4, 32),)))


class Sequences(unittest.TestCase):
    def written(self, *numbers: int | bool | float) -> str:
        rows, write = sequence_form([[Atom(n) for n in numbers]])
        return write(*(str(row[0].value).lower() for row in rows))

    def test_forms(self) -> None:
        self.assertEqual(self.written(3, 3, 3), "3")
        self.assertEqual(self.written(2, 1, 1), "2 if index == 0 else 1")
        self.assertEqual(self.written(True, False, False), "index == 0")
        self.assertEqual(self.written(False, True, False, True), "index % 2 == 1")
        self.assertEqual(self.written(4, 7, 10, 13), "4 + 3 * index")
        self.assertEqual(self.written(1, 1, 5, 5, 2), "1 if index < 2 else 5 if index < 4 else 2")


if __name__ == "__main__":
    unittest.main()
