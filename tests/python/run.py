#!/usr/bin/env python3
"""The tests of python/stowage. Exit code 77 where this Python has no CUDA wheel of torch.

    python3 tests/python/run.py [-v] [TEST ...]      for example test_slots
"""

from __future__ import annotations

import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).parent
PACKAGE = HERE.parent.parent / "python"
sys.path[:0] = [str(HERE), str(PACKAGE)]
# Programs that tests start find the package, too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))


def main() -> int:
    try:
        import torch
    except ImportError:
        print("skipped: this Python has no torch; STOWAGE_PYTHON names one that has")
        return 77
    if torch.version.cuda is None:
        print(f"skipped: torch {torch.__version__} is no CUDA wheel")
        return 77
    torch.set_num_threads(1)
    return 0 if unittest.main(module=None, argv=arguments(), exit=False).result.wasSuccessful() else 1


def arguments() -> list[str]:
    given = [word for word in sys.argv[1:] if not word.startswith("-")]
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    if given:
        return [sys.argv[0], *options, *given]
    return [sys.argv[0], "discover", *options, "-s", str(HERE), "-t", str(HERE)]


if __name__ == "__main__":
    sys.exit(main())
