"""Every row of the catalogue against its network, the optimizers, and the CUDA meter's plumbing."""

import contextlib
import importlib.util
import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("torch is not installed")

import torch

import cap
import catalogue
import matrix
import meter
import models
import one_job
import training
from matrix import Job


class Networks(unittest.TestCase):
    def test_parameters_are_those_of_the_catalogue(self):
        missing = set()
        for name, row in catalogue.MODELS.items():
            with self.subTest(name), torch.device("meta"):
                try:
                    network = models.build(matrix.complete(Job(name, 1)))
                except models.PackageMissing as error:
                    missing.add(str(error))
                    continue
                self.assertEqual(sum(weight.numel() for weight in network.parameters()), row.parameters)
        if missing:
            self.skipTest(f"not installed, so not checked: {', '.join(sorted(missing))}")

    def test_a_missing_package_is_told_apart_from_an_error(self):
        with mock.patch("importlib.util.find_spec", return_value=None):
            with self.assertRaisesRegex(models.PackageMissing, "timm"):
                models.build(matrix.complete(Job("timm/resnet50", 1)))

    def test_unet_takes_sizes_that_do_not_halve_evenly(self):
        with torch.device("meta"):
            network = models.build(matrix.complete(Job("unet", 1)))
            self.assertEqual(network(torch.empty(1, 3, 70, 91)).shape, (1, 2, 70, 91))

    def test_channels_last_batches_are_made_in_that_layout(self):
        job = matrix.complete(Job("resnet18", 2, channels_last=True, image_size=32))
        sample, _ = models.batch(job, "cpu", torch.float32)
        self.assertTrue(sample.is_contiguous(memory_format=torch.channels_last))


class Training(unittest.TestCase):
    def trainer(self, **fields):
        job = matrix.complete(Job("mlp", 2, **fields))
        return training.Trainer(job, training.network_on_device(job, "cpu"), "cpu")

    def test_optimizer_state_after_a_step(self):
        floats = 4 * catalogue.MODELS["mlp"].parameters
        for name, copies in (("sgd", 0), ("sgd-momentum", 1), ("adam", 2), ("adamw", 2), ("adagrad", 1),
                             ("rmsprop", 1)):
            trainer = self.trainer(optimizer=name)
            trainer.step()
            state = trainer.optimizer_state_bytes()
            self.assertLessEqual(copies * floats, state, name)
            self.assertLess(state, copies * floats + 100, name)

    def test_sees_which_update_ran_and_puts_the_functions_back(self):
        adam = sys.modules["torch.optim.adam"]  # torch.optim hides its submodules
        functions = {name: getattr(adam, name)
                     for name in ("_single_tensor_adam", "_multi_tensor_adam", "_fused_adam")}
        for optimizer, expected in (("adam:for-loop", "_single_tensor_adam"),
                                    ("adamw:foreach", "_multi_tensor_adam"),
                                    ("adam:fused", "_fused_adam")):
            trainer = self.trainer(optimizer=optimizer)
            with training.observed_updates(trainer.optimizer) as seen:
                trainer.step()
            self.assertIn(expected, seen, optimizer)
        for name, function in functions.items():
            self.assertIs(getattr(adam, name), function)

    def test_every_precision_and_life_of_the_output_takes_a_step(self):
        for precision in matrix.PRECISIONS:
            for outputs in matrix.OUTPUTS:
                trainer = self.trainer(precision=precision, outputs=outputs)
                trainer.step()
                self.assertEqual(trainer._kept is not None, outputs == "next")
                dtype = torch.bfloat16 if precision == "bf16" else torch.float32
                self.assertEqual({weight.dtype for weight in trainer.network.parameters()}, {dtype})

    def test_warm_up_goes_on_until_one_update_was_applied(self):
        trainer = mock.Mock(steps=1, skipped_updates=1)

        def step():
            trainer.steps += 1
            trainer.skipped_updates += trainer.steps <= 7

        trainer.step.side_effect = step
        one_job.warm_up(trainer, 5)
        self.assertEqual((trainer.steps, trainer.skipped_updates), (8, 7))


class Meter(unittest.TestCase):
    """torch.cuda replaced by a stand-in: this proves the plumbing, not what a GPU answers."""

    @contextlib.contextmanager
    def cuda(self):
        answers = {"memory_allocated": 1, "memory_reserved": 2, "max_memory_allocated": 3,
                   "max_memory_reserved": 4, "mem_get_info": (70, 100), "synchronize": None,
                   "memory_stats": {"num_alloc_retries": 5, "num_ooms": 6,
                                    "requested_bytes.all.peak": 7}}
        with contextlib.ExitStack() as stack:
            for name, answer in answers.items():
                stack.enter_context(mock.patch.object(torch.cuda, name, return_value=answer))
            stack.enter_context(mock.patch.object(meter, "_only_gpu", return_value=None))
            yield stack.enter_context(mock.patch.object(torch.cuda, "set_per_process_memory_fraction"))

    def test_every_field_has_its_own_source(self):
        with self.cuda():
            snapshot = meter.CudaMeter(None).snapshot()
        self.assertEqual(snapshot, {
            "allocated_bytes": 1, "reserved_bytes": 2, "max_allocated_bytes": 3,
            "max_reserved_bytes": 4, "max_requested_bytes": 7, "process_device_bytes": None,
            "process_device_method": "unavailable", "device_used_bytes": None, "cuda_free_bytes": 70,
            "cuda_total_bytes": 100, "alloc_retries": 5, "ooms": 6})

    def test_a_cap_leaves_out_what_lies_outside_the_allocator(self):
        context = {"process_device_bytes": 12, "reserved_bytes": 2}
        cases = [(60, {}, 50, "context", 0.5), (60, {"overhead_bytes": 35}, 25, "given", 0.25),
                 (5, {}, 0, "context", 0.0), (500, {}, 490, "context", 1.0)]
        for bytes_, spec, limit, source, fraction in cases:
            recorder = mock.Mock()
            with self.cuda() as set_fraction:
                cap.apply(Job("mlp", 1, cap_bytes=bytes_), spec, meter.CudaMeter(None), context,
                          recorder)
            set_fraction.assert_called_once_with(fraction)
            saved = recorder.save.call_args.kwargs["cap"]
            self.assertEqual((saved["allocator_limit_bytes"], saved["overhead_source"]),
                             (limit, source))

    def test_a_cap_of_the_allocator_is_set_as_it_stands(self):
        recorder = mock.Mock()
        with self.cuda() as set_fraction:
            cap.apply(Job("mlp", 1, cap_allocator_bytes=50), {}, meter.CudaMeter(None), {}, recorder)
        set_fraction.assert_called_once_with(0.5)
        recorder.save.assert_called_with(cap={"allocator_limit_bytes": 50, "fraction": 0.5})


if __name__ == "__main__":
    unittest.main()
