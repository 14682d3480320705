"""How far predictions are from measurements, and how often they are too low. As bench/accuracy's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    measured: int
    predicted: int

    @property
    def error(self) -> float:
        """Signed, relative to the measurement: below 0 is too low."""
        return (self.predicted - self.measured) / self.measured


@dataclass(frozen=True)
class Score:
    """The errors are relative; `median` and `percentile90` are of their absolute values."""

    rows: int
    median: float
    percentile90: float
    median_signed: float
    low: int  # predicted below measured
    low_by_2_percent: int


def percentile(values: list[float], share: float) -> float:
    """Of the sorted values at (count - 1) * share, interpolated. At least one value."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def score(pairs: list[Pair]) -> Score | None:
    """None for no pairs."""
    if not pairs:
        return None
    errors = [pair.error for pair in pairs]
    sizes = [abs(error) for error in errors]
    return Score(len(pairs), percentile(sizes, 0.5), percentile(sizes, 0.9),
                 percentile(errors, 0.5), sum(error < 0 for error in errors),
                 sum(error < -0.02 for error in errors))
