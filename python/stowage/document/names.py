"""Unique names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stowage.shown import LONGEST_BYTES, printable_name

if TYPE_CHECKING:
    from stowage.trace.record import NodeRecord


class Names:
    """Gives each name once: "relu", then "relu.2"."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.taken: set[str] = set()

    def unique(self, name: str) -> str:
        name = printable_name(name) or "tensor"
        while True:
            count = self.counts[name] = self.counts.get(name, 0) + 1
            number = "" if count == 1 else f".{count}"
            candidate = printable_name(name, LONGEST_BYTES - len(number)) + number
            if candidate not in self.taken:
                self.taken.add(candidate)
                return candidate


def short(kernel: str) -> str:
    """"aten::add.Tensor" -> "add"."""
    return kernel.rpartition("::")[2].partition(".")[0]


def node_name(node: NodeRecord) -> str:
    """"layer1.0.conv1.convolution"; without a layer the phase stands in its place."""
    return f"{node.layer or node.phase}.{short(node.kernel)}"
