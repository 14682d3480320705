"""The CUDA road without a GPU: which calls are made to streams, events and the driver, and in what
order."""

from __future__ import annotations

import contextlib
import types
import unittest
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch

import stowage
from stowage.plans.dimensions import Size
from stowage.plans.host_pool import PAGE, HostPool
from stowage.plans.plan_file import Offload, PlannedTensor
from stowage.plans.stash import SavedHandle, Stash, all_bytes
from stowage.plans.streams import StreamCopies

CPU = torch.device("cpu")


class Device:
    """torch.cuda as far as copies ask it: writes every call into `calls`."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.made = 0
        device = self

        class Stream:
            def __init__(self, name: str = "", device: Any = None) -> None:
                names.append(name or ("out", "back")[len(names) - 1])
                self.name = names[-1]

            def wait_stream(self, other: Any) -> None:
                calls.append(f"{self.name} waits for {other.name}")

            def wait_event(self, event: Any) -> None:
                calls.append(f"{self.name} waits for event {event.number}")

        class Event:
            def __init__(self) -> None:
                self.number, device.made = device.made, device.made + 1

            def record(self, stream: Any) -> None:
                calls.append(f"event {self.number} on {stream.name}")

        @contextlib.contextmanager
        def entered(stream: Any) -> Iterator[None]:
            calls.append(f"on {stream.name}")
            yield
            calls.append(f"off {stream.name}")

        names: list[str] = []
        calls = self.calls
        self.compute = Stream("compute")
        self.replaced = {"Stream": Stream, "Event": Event, "stream": entered,
                         "current_stream": lambda _device: self.compute}

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        with mock.patch.multiple(torch.cuda, **self.replaced):
            yield


ENTRY = Offload((PlannedTensor("0#0", "float32", (Size(4),)),), Size(16), "0#0", None, None)


class Order(unittest.TestCase):
    def setUp(self) -> None:
        self.device = Device()
        self.enterContext(self.device.active())
        self.copies = StreamCopies(CPU)
        self.pool = HostPool([16], pinned=False)
        tensor = torch.arange(4.0)
        self.stash = Stash(ENTRY, 0, tensor)
        self.handle = SavedHandle(None, tensor, None, "0#0")
        self.stash.join(self.handle)
        source, buffer = all_bytes(tensor), self.pool.take(0, 16)
        assert source is not None and buffer is not None
        self.stash.leave(source, buffer, self.pool, self.copies)

    def taken(self) -> list[str]:
        calls, self.device.calls[:] = list(self.device.calls), []
        return calls

    OUT = ["out waits for compute", "on out", "event 0 on out", "off out"]
    BACK = ["back waits for compute", "on back", "event 1 on back", "off back"]

    def test_each_wait_stands_before_what_needs_it(self) -> None:
        self.assertEqual(self.taken(), self.OUT)
        self.assertIsNotNone(self.handle.tensor)
        self.stash.let_go()
        self.assertEqual(self.taken(), ["compute waits for event 0"])
        self.assertIsNone(self.handle.tensor)
        self.stash.fetch()
        self.assertEqual(self.taken(), self.BACK)
        self.assertTrue(self.pool.taken[0])
        self.assertEqual(self.stash.tensor_of(self.handle).tolist(), [0, 1, 2, 3])
        self.assertEqual(self.taken(), ["compute waits for event 1"])
        self.assertFalse(self.pool.taken[0])  # its next user waits for compute
        self.assertEqual(self.stash.tensor_of(self.handle).tolist(), [0, 1, 2, 3])
        self.assertEqual(self.taken(), [])

    def drop(self) -> list[str]:
        self.taken()
        del self.stash, self.handle
        self.assertFalse(self.pool.taken[0])
        return self.taken()

    def test_a_graph_that_is_dropped_waits_for_the_copy_out(self) -> None:
        self.assertEqual(self.drop(), ["compute waits for event 0"])

    def test_one_that_is_dropped_while_it_is_away_has_waited(self) -> None:
        self.stash.let_go()
        self.assertEqual(self.drop(), [])

    def test_fetched_memory_is_not_let_go_before_the_copy_back(self) -> None:
        self.stash.let_go()
        self.stash.fetch()
        self.assertEqual(self.drop(), ["compute waits for event 1"])

    def test_one_that_falls_back_waits(self) -> None:
        self.taken()
        self.stash.keep()
        self.assertEqual(self.taken(), ["compute waits for event 0"])
        self.assertIsNone(self.handle.stash)


class Pool(unittest.TestCase):
    def test_slots_are_registered_once_and_unregistered_at_the_end(self) -> None:
        calls: list[tuple[str, int]] = []

        def register(address: int, size: int, _flags: int) -> int:
            self.assertEqual(address % PAGE, 0)
            calls.append(("register", size))
            return 0

        def unregister(_address: int) -> int:
            calls.append(("unregister", 0))
            return 0

        driver = types.SimpleNamespace(cudaHostRegister=register, cudaHostUnregister=unregister)
        with mock.patch.multiple(torch.cuda, cudart=lambda: driver, synchronize=lambda: None):
            pool = HostPool([100, 5000, 0], pinned=True)
            self.assertEqual(calls, [("register", PAGE + 2 * PAGE)])
            first, second = pool.take(0, 100), pool.take(1, 10)
            assert first is not None and second is not None
            self.assertEqual(second.data_ptr() - first.data_ptr(), PAGE)
            self.assertIsNone(pool.take(0, 1))
            pool.give_back(0)
            self.assertIsNone(pool.take(0, 101))
            self.assertIsNotNone(pool.take(0, 50))
            self.assertEqual(len(calls), 1)
            del pool
            self.assertEqual(calls[1:], [("unregister", 0)])

    def test_memory_that_cannot_be_pinned_is_an_error(self) -> None:
        driver = types.SimpleNamespace(cudaHostRegister=lambda *_: 2)
        with mock.patch.multiple(torch.cuda, cudart=lambda: driver, synchronize=lambda: None):
            with self.assertRaises(stowage.StowageError) as raised:
                HostPool([100], pinned=True)
        self.assertEqual(str(raised.exception),
                         "the driver cannot pin 4096 bytes of host memory (CUDA error 2)\n"
                         "  make a plan that offloads less, or raise the limit of locked memory")


if __name__ == "__main__":
    unittest.main()
