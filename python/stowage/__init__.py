"""Stowage's Python part: a PyTorch step, recorded without a GPU, for `stowage check` to weigh."""

from stowage.errors import StowageError
from stowage.version import VERSION as __version__

__all__ = ["StowageError", "__version__"]
