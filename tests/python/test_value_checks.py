"""What is changed in a module that a script imports only while the device is pretended."""

from __future__ import annotations

import importlib
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from stowage.pretend.value_checks import OnImport, without_packed_sequences

MASKS = """
def find_packed_sequence_indices(positions):
    return "searched"


def mask(positions):
    return find_packed_sequence_indices(positions)
"""


class Imported(unittest.TestCase):
    def setUp(self) -> None:
        folder = self.enterContext(tempfile.TemporaryDirectory())
        package = pathlib.Path(folder) / "transformers"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "masking_utils.py").write_text(MASKS)
        others = {name: module for name, module in sys.modules.items()
                  if name.partition(".")[0] != "transformers"}
        self.enterContext(mock.patch.dict(sys.modules, others, clear=True))
        self.enterContext(mock.patch.object(sys, "path", [folder, *sys.path]))

    def test_masks_that_are_imported_meanwhile_are_changed_and_restored(self) -> None:
        with without_packed_sequences():
            masks = importlib.import_module("transformers.masking_utils")
            self.assertIsNone(masks.mask([0, 1]))
        self.assertEqual(masks.mask([0, 1]), "searched")
        with without_packed_sequences():
            self.assertIsNone(masks.mask([0, 1]))
        self.assertEqual(masks.mask([0, 1]), "searched")
        self.assertFalse(any(isinstance(finder, OnImport) for finder in sys.meta_path))

    def test_a_module_that_is_not_there_is_not_found(self) -> None:
        with without_packed_sequences():
            (pathlib.Path(sys.path[0]) / "transformers" / "masking_utils.py").unlink()
            importlib.invalidate_caches()
            with self.assertRaises(ModuleNotFoundError):
                importlib.import_module("transformers.masking_utils")


if __name__ == "__main__":
    unittest.main()
