"""The script that `python -m stowage record` runs, while it runs one.

stowage/script.py sets `active`; `stowage.record` and `@stowage.step` read it, so that none of them
has to import another.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stowage.options import RecordOptions
    from stowage.pretend.session import Session
    from stowage.record import RecordedStep


@dataclasses.dataclass(frozen=True)
class ActiveScript:
    """What the command knows of the script's step before it is called. `batch` replaces that of the
    arguments, None: theirs counts; `name` is the model's in the step file."""

    session: Session
    batch: int | None
    name: str
    options: RecordOptions


class ScriptIsRecorded(BaseException):
    """Ends the script once its step is recorded. Derived from BaseException, so that no `except
    Exception` of the script catches it."""

    def __init__(self, recorded: RecordedStep) -> None:
        super().__init__()
        self.recorded = recorded


active: ActiveScript | None = None  # None: no script is being recorded
