"""Random numbers that are not of PyTorch's default generators: Python's, NumPy's, and those of generators
that a module holds in an attribute. torch.utils.checkpoint replays PyTorch's.
"""

from __future__ import annotations

import collections
import contextlib
import random
import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


# What a module's attributes are nearly always: each run of a region looks at all of them.
NO_SOURCES = frozenset({bool, int, float, str, tuple, list, dict, set, type(None), torch.Size,
                        collections.OrderedDict})


class HostRandom:
    """Their states as a run of these modules begins."""

    def __init__(self, modules: Sequence[torch.nn.Module]) -> None:
        # (what gets a state, what sets it) of each source
        self.sources: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [
            (random.getstate, random.setstate)]
        numpy = sys.modules.get("numpy.random")
        if numpy is not None:
            self.sources.append((numpy.get_state, numpy.set_state))
        for part in (part for module in modules for part in module.modules()):
            for value in vars(part).values():
                if type(value) not in NO_SOURCES:
                    self.add(value, numpy)
        self.states = [get() for get, _ in self.sources]

    def add(self, value: Any, numpy: Any) -> None:
        if isinstance(value, torch.Generator):
            self.sources.append((value.get_state, value.set_state))
        elif isinstance(value, random.Random):
            self.sources.append((value.getstate, value.setstate))
        elif numpy is not None and isinstance(value, numpy.RandomState):
            self.sources.append((value.get_state, value.set_state))
        elif numpy is not None and isinstance(value, numpy.Generator):
            bits = value.bit_generator
            self.sources.append((lambda: bits.state, lambda state: setattr(bits, "state", state)))

    @contextlib.contextmanager
    def replayed(self) -> Iterator[None]:
        """A run within draws the same numbers; afterwards the sources are as they were."""
        before = [get() for get, _ in self.sources]
        for (_, put), state in zip(self.sources, self.states):
            put(state)
        try:
            yield
        finally:
            for (_, put), state in zip(self.sources, before):
                put(state)
