"""Exceptions of the user's own code, as StowageErrors that name the line that raised them."""

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

from stowage.errors import StowageError
from stowage.shown import printable_text

if TYPE_CHECKING:
    from collections.abc import Iterator

TRAINING_FOLDER = os.sep + os.path.join("stowage", "training") + os.sep


def user_code_error(error: Exception, fallback: str) -> StowageError:
    """The StowageError for an exception of another type. `fallback` is the place that it names where
    the traceback has no line of the user's."""
    from stowage.trace.failures import NEEDS_VALUES
    from stowage.trace.places import place_of_traceback

    if os.environ.get("STOWAGE_TRACEBACK"):
        print(printable_text("".join(traceback.format_exception(error))), file=sys.stderr, end="")
    where = place_of_traceback(error.__traceback__) or fallback
    if any(type(cause).__name__ in NEEDS_VALUES for cause in causes(error)):
        return StowageError(
            f"{where}: values of a tensor decide what runs or how large a result is, and traced "
            "tensors have none",
            "take .item(), bool(tensor), masks as indices and the like out of the model")
    message = str(error).strip().split("\n")[0]
    hint = "STOWAGE_TRACEBACK=1 shows where from"
    if any(TRAINING_FOLDER in frame.filename for frame in traceback.extract_tb(error.__traceback__)):
        hint = f"raised while the step ran on tensors without values; {hint}"
    return StowageError(f"{where}: {type(error).__name__}: {message}", hint)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception, the one that it was raised from, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
