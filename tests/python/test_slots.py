"""The pretended device: slots are answered and restored, whatever happens in between."""

from __future__ import annotations

import ctypes
import unittest
from unittest import mock

import torch

from stowage.errors import StowageError
from stowage.pretend.driver import LIBRARIES, NEEDED
from stowage.pretend.elf_slots import find_slots, loaded_libraries
from stowage.pretend.fake_mode import guards
from stowage.pretend.session import pretended_cuda


def slot_contents() -> dict[int, int]:
    """{address: pointer} of every slot that recording changes."""
    contents = {}
    for library in loaded_libraries(LIBRARIES).values():
        for addresses in find_slots(library, NEEDED).values():
            for address in addresses:
                contents[address] = ctypes.c_uint64.from_address(address).value
    return contents


class Slots(unittest.TestCase):
    def test_every_needed_function_has_a_slot(self) -> None:
        found = set()
        for library in loaded_libraries(LIBRARIES).values():
            found |= set(find_slots(library, NEEDED))
        self.assertEqual(found, set(NEEDED))

    def test_slots_are_changed_and_restored(self) -> None:
        before = slot_contents()
        with pretended_cuda():
            self.assertNotEqual(slot_contents(), before)
        self.assertEqual(slot_contents(), before)

    def test_slots_are_restored_after_an_exception(self) -> None:
        before, available = slot_contents(), torch.cuda.is_available
        with self.assertRaises(ZeroDivisionError):
            with pretended_cuda():
                raise ZeroDivisionError
        self.assertEqual(slot_contents(), before)
        self.assertIs(torch.cuda.is_available, available)

    def test_backward_runs_and_the_driver_is_asked_again_afterwards(self) -> None:
        for _ in range(2):
            with pretended_cuda() as session:
                weight = torch.ones(3, device="cuda", requires_grad=True)
                with session.driver.visible():
                    weight.sum().backward()
                self.assertEqual(weight.grad.device.type, "cuda")

    def test_variables_that_hold_our_function_are_put_back(self) -> None:
        with pretended_cuda() as session:
            weight = torch.ones(3, device="cuda", requires_grad=True)
            with session.driver.visible():
                weight.sum().backward()
            ours = ctypes.cast(session.driver.context_state, ctypes.c_void_p).value
        variables = loaded_libraries(["libtorch_cuda.so"])["libtorch_cuda.so"].variables
        for start, size in variables:
            self.assertNotIn(ours.to_bytes(8, "little"), ctypes.string_at(start, size))

    def test_the_device_guard_is_put_back(self) -> None:
        before = guards()[1]
        with pretended_cuda():
            pass
        self.assertEqual(guards()[1], before)

    def test_a_process_that_uses_a_gpu_is_refused(self) -> None:
        with mock.patch.object(torch.cuda, "is_initialized", lambda: True):
            with self.assertRaisesRegex(StowageError, "this process uses a GPU already"):
                with pretended_cuda():
                    pass

    def test_real_tensors_work_afterwards(self) -> None:
        with pretended_cuda():
            pass
        weight = torch.ones(3, requires_grad=True)
        (weight * 2).sum().backward()
        self.assertEqual(weight.grad.tolist(), [2, 2, 2])

    def test_the_device_is_there_while_it_is_pretended(self) -> None:
        with pretended_cuda((9, 0)):
            self.assertTrue(torch.cuda.is_available())
            self.assertEqual(torch.cuda.get_device_capability(), (9, 0))
            self.assertEqual(torch.zeros(2).cuda().device, torch.device("cuda", 0))

    def test_small_tensors_of_the_host_keep_their_values(self) -> None:
        with pretended_cuda():
            rates = [rate.item() for rate in torch.linspace(0, 1, 5)]
            self.assertEqual(rates, [0, 0.25, 0.5, 0.75, 1])
            self.assertIn(bool(torch.rand([]) < 2), (True,))

    def test_a_parameter_stays_itself_when_its_model_moves(self) -> None:
        with pretended_cuda():
            model = torch.nn.Linear(2, 2)
            weight = model.weight
            model.to("cuda").half()
            self.assertIs(model.weight, weight)
            self.assertEqual((weight.device.type, weight.dtype), ("cuda", torch.float16))


class Wheel:
    """A torch of another build."""

    def __init__(self, version: str, cuda: str | None, hip: str | None = None) -> None:
        self.__version__ = version
        self.version = type("version", (), {"cuda": cuda, "hip": hip})


class Wheels(unittest.TestCase):
    def refused(self, *wheel: str | None) -> StowageError:
        from stowage.pretend.wheel import check_wheel

        with self.assertRaises(StowageError) as caught:
            check_wheel(Wheel(*wheel))
        return caught.exception

    def test_a_wheel_for_the_cpu_is_refused_by_name(self) -> None:
        error = self.refused("2.15.0+cpu", None)
        self.assertEqual(error.message, "torch 2.15.0+cpu is a CPU-only wheel: it has none of CUDA's "
                                        "operators to record")
        self.assertIn("pip install --force-reinstall torch==2.15.0", error.hint)

    def test_a_wheel_for_rocm_is_refused(self) -> None:
        self.assertIn("ROCm", self.refused("2.15.0+rocm7", None, "7.0").message)

    def test_other_versions_are_refused(self) -> None:
        self.assertEqual(self.refused("2.10.1", "12.8").message,
                         "torch 2.10.1 is not among the versions 2.11 to 2.15")
        self.assertIn("2.16.0", self.refused("2.16.0", "13.2").message)

    def test_this_wheel_is_taken(self) -> None:
        from stowage.pretend.wheel import check_wheel

        self.assertIn(check_wheel(torch), (12, 13))
