"""Streamed parameters on the CUDA road without a GPU: which calls are made to streams and events, and in
what order; and pinned memory that cannot be had."""

from __future__ import annotations

import types
import unittest
from typing import Any
from unittest import mock

import torch
from torch import nn

import stowage
from stowage.plans.events import Events
from stowage.plans.host_pool import PAGE
from stowage.plans.plan_file import Streamed
from stowage.plans.stream import StreamedModules
from stowage.plans.streamed_block import StreamedBlock
from stowage.plans.streams import StreamCopies
from test_apply_streams import CPU, Device


def block_of(module: nn.Linear, path: str, pinned: bool = False) -> StreamedBlock:
    planned = Streamed(path, (f"{path}.weight", f"{path}.bias"), 1024, 2)
    parameters = {f"{path}.{name}": one for name, one in module.named_parameters()}
    owners = [(module, name, one) for name, one in module.named_parameters()]
    return StreamedBlock(planned, module, parameters, owners, pinned)


def copied(event: int) -> list[str]:
    return ["back waits for compute", "on back", f"event {event} on back", "off back"]


class Order(unittest.TestCase):
    def setUp(self) -> None:
        self.device = Device()
        self.enterContext(self.device.active())
        self.layers = [nn.Linear(4, 4) for _ in range(3)]
        with mock.patch("stowage.plans.stream.copies_for", StreamCopies):
            self.streamed = StreamedModules(
                [block_of(layer, f"h.{index}") for index, layer in enumerate(self.layers)], CPU, Events(),
                lambda tensors, reason, what: self.fail(reason))

    def run_layer(self, index: int) -> list[str]:
        """The calls of a run; where the block itself runs stands "block"."""
        def forward(x: torch.Tensor) -> torch.Tensor:
            self.device.calls.append("block")
            return nn.functional.linear(x, self.layers[index].weight, self.layers[index].bias)

        with torch.no_grad():
            self.streamed.around(forward, self.layers[index])(torch.zeros(4))
        return self.taken()

    def taken(self) -> list[str]:
        calls, self.device.calls[:] = list(self.device.calls), []
        return calls

    def test_the_next_copy_begins_before_a_block_runs(self) -> None:
        self.assertEqual(self.run_layer(0),
                         [*copied(0), *copied(1), "compute waits for event 0", "block"])
        self.assertEqual(self.run_layer(1), [*copied(2), "compute waits for event 1", "block"])
        self.assertEqual(self.run_layer(2), ["compute waits for event 2", "block"])

    def test_a_copy_that_is_not_used_is_waited_for(self) -> None:
        """Its memory is let go: the compute stream must not write to it before the copy has ended."""
        self.run_layer(0)
        self.assertEqual(self.run_layer(2), ["compute waits for event 1", *copied(2),
                                             "compute waits for event 2", "block"])
        self.run_layer(0)
        self.streamed.end()
        self.assertEqual(self.taken(), ["compute waits for event 4"])


class Pinned(unittest.TestCase):
    def test_each_parameter_has_pages_of_its_own(self) -> None:
        calls: list[Any] = []
        driver = types.SimpleNamespace(
            cudaHostRegister=lambda address, size, _flags: calls.append((address % PAGE, size)) or 0,
            cudaHostUnregister=lambda _address: calls.append("unregister"))
        with mock.patch.multiple(torch.cuda, cudart=lambda: driver, synchronize=lambda: None):
            layer = nn.Linear(4, 4)
            expected = [one.detach().clone() for one in layer.parameters()]
            block = block_of(layer, "h.0", pinned=True)
            self.assertEqual(calls, [(0, PAGE), (0, PAGE)])
            for one, other in zip(layer.parameters(), expected):
                self.assertTrue(torch.equal(one, other))
            block.settle(None)
            del block
            self.assertEqual(calls[2:], ["unregister"] * 2)
        for one, other in zip(layer.parameters(), expected):
            self.assertTrue(torch.equal(one, other))

    def test_memory_that_cannot_be_pinned_leaves_the_model_as_it_is(self) -> None:
        codes = iter([0, 2])
        driver = types.SimpleNamespace(cudaHostRegister=lambda *_: next(codes),
                                       cudaHostUnregister=lambda _address: None)
        layer = nn.Linear(4, 4)
        before = [one.data_ptr() for one in layer.parameters()]
        with mock.patch.multiple(torch.cuda, cudart=lambda: driver, synchronize=lambda: None):
            with self.assertRaisesRegex(stowage.StowageError, "the driver cannot pin 512 bytes"):
                block_of(layer, "h.0", pinned=True)
        self.assertEqual([one.data_ptr() for one in layer.parameters()], before)


if __name__ == "__main__":
    unittest.main()
