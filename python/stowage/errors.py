"""The exception for what a user can cause: a message, and what to do about it."""

from __future__ import annotations

from stowage.shown import printable_text


class StowageError(Exception):
    """An error that the user can correct. `message` says what happened and where, `hint` what to do.
    The command line prints both and ends with exit code 2. What they quote of others is escaped."""

    def __init__(self, message: str, hint: str = "") -> None:
        message, hint = printable_text(message), printable_text(hint)
        super().__init__(message if not hint else f"{message}\n  {hint}")
        self.message = message
        self.hint = hint


class PlanWarning(UserWarning):
    """A plan for PyTorch is not carried out as it stands; values are as without it."""
