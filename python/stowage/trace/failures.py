"""Errors for what cannot be traced. They name the operator and the user's line, which PyTorch's own
exceptions do not."""

from __future__ import annotations

from stowage.errors import StowageError
from stowage.trace.places import place, place_of_traceback

NEEDS_VALUES = ("DataDependentOutputException", "DynamicOutputShapeException",
                "GuardOnDataDependentSymNode")
HAS_NO_SHAPES = ("UnsupportedOperatorException", "UnsupportedFakeTensorException",
                 "MissingOpProfile")


def untraceable_script(error: Exception) -> StowageError | None:
    """As `untraceable`, for what a script did before its step."""
    words = str(error).split()
    return untraceable(words[-1] if words else "an operator", error, "",
                       place_of_traceback(error.__traceback__))


def untraceable(operator: object, error: Exception, layer: str,
                where: str | None = None) -> StowageError | None:
    """The StowageError for an exception of FakeTensorMode; None for any other exception."""
    kind = type(error).__name__
    where = where or place() or "the step"
    inside = f" (in {layer})" if layer else ""
    if kind in NEEDS_VALUES:
        what = "reads a tensor's values" if kind == NEEDS_VALUES[0] else (
            "makes a tensor whose size depends on values")
        return StowageError(
            f"{where}: {operator}{inside} {what}, and recorded tensors have none",
            "take .item(), bool(tensor), masks as indices and the like out of what is recorded")
    no_meta = isinstance(error, NotImplementedError) and "meta" in str(error).lower()
    if kind in HAS_NO_SHAPES or no_meta:
        return StowageError(
            f"{where}: {operator}{inside} has no rule for the shapes of its results",
            "register one: torch.library.register_fake(\"" + str(operator).partition(".")[0]
            + "::...\")")
    return None
