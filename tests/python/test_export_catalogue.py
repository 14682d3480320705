"""What the exporter writes is in the program's catalogue, with its defaults."""

import json
import subprocess
import unittest

from exported import program
from stowage.export.catalogue import OPERATORS, defaults_of


@unittest.skipUnless(program(), "no stowage program")
class Catalogue(unittest.TestCase):
    maxDiff = None

    def rows(self):
        done = subprocess.run([program(), "ops", "--format", "json"], capture_output=True,
                              text=True, check=True)
        return json.loads(done.stdout)["ops"]

    def test_names(self):
        """A name that the program lacks would make a description that it cannot read."""
        self.assertEqual(sorted(OPERATORS - {row["name"] for row in self.rows()}), [])

    def test_defaults(self):
        """What the exporter leaves out is what the catalogue then takes."""
        for row in self.rows():
            ours = defaults_of(row["name"])
            for attribute in row["attributes"]:
                if row["name"] not in OPERATORS or attribute["name"] not in ours:
                    continue
                with self.subTest(operator=row["name"], attribute=attribute["name"]):
                    theirs = set(attribute["default"].strip("[]").split(", "))
                    mine = {str(ours[attribute["name"]]).strip("[]").lower().replace("e-0", "e-")}
                    self.assertEqual(mine, {word.replace("e-0", "e-") for word in theirs})


if __name__ == "__main__":
    unittest.main()
