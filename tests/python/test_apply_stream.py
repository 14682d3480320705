"""Parameters streamed by block: values are those without the plan, bit for bit, bytes moved are the
plan's, and the parameters are on the device while their block runs alone."""

from __future__ import annotations

import copy
import functools
import gc
import io
import unittest
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import stowage
from applied_case import AppliedCase
from planned import write_plan
from stowage.plans.streamed_block import Upload

WIDTH = 16


class Block(nn.Module):
    """Attention and two layers, with a low-rank adapter beside one of them."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 40), nn.Linear(40, WIDTH)
        self.down = nn.Linear(WIDTH, rank, bias=False) if rank else None
        self.up = nn.Linear(rank, 3 * WIDTH, bias=False) if rank else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(x)
        mixed = self.mix(h)
        if self.down is not None and self.up is not None:
            mixed = mixed + self.up(self.down(h))
        q, k, v = mixed.chunk(3, -1)
        x = x + (q @ k.transpose(-1, -2)).softmax(-1) @ v
        return x + self.narrow(self.wide(x).relu())


class Network(nn.Module):
    """Embeddings, blocks, and a head that is tied to the embeddings."""

    def __init__(self, rank: int = 0, blocks: int = 5) -> None:
        super().__init__()
        self.words = nn.Embedding(11, WIDTH)
        self.h = nn.ModuleList(Block(rank) for _ in range(blocks))
        self.head = nn.Linear(WIDTH, 11, bias=False)
        self.head.weight = self.words.weight
        if rank:
            for name, parameter in self.named_parameters():
                parameter.requires_grad_(".down." in name or ".up." in name)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.words(x)
        for block in self.h:
            h = block(h)
        return self.head(h)


def built(rank: int = 0) -> Network:
    torch.manual_seed(3)
    return Network(rank)


def frozen_of(model: nn.Module, path: str, trains: bool) -> dict[str, Any]:
    """The entry of a plan for a module: all its parameters, or those that are not trained."""
    names = {f"{path}.{name}": one for name, one in model.get_submodule(path).named_parameters()
             if not (trains and one.requires_grad)}
    size = sum(-(-one.numel() * one.element_size() // 512) * 512 for one in names.values())
    return {"module": path, "parameters": list(names), "bytes": size, "uploads": 2 if trains else 1}


def streaming(model: nn.Module, paths: list[str], mode: str, checkpointed: tuple[str, ...] = (),
              ) -> dict[str, Any]:
    return {"format": "stowage-pytorch-plan", "version": 1, "written_by": "tests", "names": "recorded",
            "model": "Network", "mode": mode, "batch": 2, "micro_batches": 1, "offload": [],
            "checkpoint": [{"module": path} for path in checkpointed], "optimizer_on_cpu": None,
            "stream": [frozen_of(model, path, mode == "train") for path in paths], "totals": {}}


def streamed_bytes(plan: dict[str, Any]) -> int:
    return sum(entry["bytes"] * entry["uploads"] for entry in plan["stream"])


SOME, ALL = ["h.0", "h.2", "h.4"], [f"h.{index}" for index in range(5)]


class Inferences(AppliedCase):
    def setUp(self) -> None:
        super().setUp()
        self.x = torch.arange(14).view(2, 7) % 11

    def apply(self, model: nn.Module, plan: dict[str, Any], **options: Any) -> Any:
        return self.enterContext(stowage.apply(model, None, write_plan(plan, self.path), **options))

    def test_values_and_bytes(self) -> None:
        expected = built()(self.x).detach()
        for paths in (SOME, ALL, ["h.3"]):
            for without_gradients in (torch.no_grad, torch.inference_mode):
                model = built()
                plan = streaming(model, paths, "inference")
                with stowage.apply(model, None, write_plan(plan, self.path)) as applied:
                    for _ in range(2):
                        with without_gradients():
                            self.assertTrue(torch.equal(model(self.x), expected))
                self.assertEqual((applied.bytes_back, applied.bytes_out, applied.first_reason),
                                 (2 * streamed_bytes(plan), 0, ""))

    def test_two_blocks_are_there_at_a_time(self) -> None:
        model, living, most = built(), weakref.WeakSet[Upload](), []
        begin = Upload.__init__

        def count(upload: Upload, *arguments: Any) -> None:
            begin(upload, *arguments)
            living.add(upload)
            most.append(len(living))

        Upload.__init__ = count  # type: ignore[method-assign]
        self.addCleanup(setattr, Upload, "__init__", begin)
        self.apply(model, streaming(model, ALL, "inference"))
        with torch.no_grad():
            model(self.x)
        self.assertEqual((max(most), len(most), len(living)), (2, 5, 0))

    def test_the_state_is_whole_while_it_is_applied(self) -> None:
        model = built()
        expected = copy.deepcopy(model.state_dict())
        parameters = [id(one) for one in model.parameters()]
        self.apply(model, streaming(model, ALL, "inference"))
        with torch.no_grad():
            model(self.x)
        self.assert_equal_bits(list(model.state_dict().values()), list(expected.values()))
        self.assertEqual([id(one) for one in model.parameters()], parameters)
        pointers = [one.untyped_storage().data_ptr() for one in model.h.parameters()]
        self.assertEqual(len(set(pointers)), len(pointers))  # safetensors takes no shared memory
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        self.assertEqual(list(torch.load(file)), list(expected))

    def test_afterwards_all_is_as_it_was(self) -> None:
        model = built()
        strides = [one.stride() for one in model.parameters()]
        expected = built()(self.x)
        forward = Block.forward
        applied = self.apply(model, streaming(model, SOME, "inference"))
        self.assertIsNot(Block.forward, forward)
        applied.remove()
        self.assertIs(Block.forward, forward)
        self.assertTrue(torch.equal(model(self.x), expected))
        self.assertEqual([one.stride() for one in model.parameters()], strides)
        self.assertEqual({one.device.type for one in model.parameters()}, {"cpu"})

    def test_values_that_are_loaded_are_those_of_the_next_run(self) -> None:
        model, other = built(), Network()
        expected = other(self.x)
        self.apply(model, streaming(model, ALL, "inference"))
        with torch.no_grad():
            model(self.x)
            model.load_state_dict(other.state_dict())
            self.assertTrue(torch.equal(model(self.x), expected))
            for own, theirs in zip(model.parameters(), built().parameters()):
                own.data = theirs.detach().clone()
            model.head.weight = model.words.weight
            self.assertTrue(torch.equal(model(self.x), built()(self.x)))

    def test_a_write_within_the_block_stays(self) -> None:
        def grow(norm: nn.Module, _: Any) -> None:
            norm.weight.add_(1)  # type: ignore[operator]

        model, other = built(), built()
        for one in (model, other):
            one.h[2].norm.register_forward_pre_hook(grow)
        self.apply(model, streaming(model, ALL, "inference"))
        with torch.no_grad():
            for _ in range(2):
                self.assertTrue(torch.equal(model(self.x), other(self.x)))

    def test_an_exception_leaves_the_parameters_on_the_host(self) -> None:
        model = built()
        self.apply(model, streaming(model, ALL, "inference"))
        with torch.no_grad(), self.assertRaises(RuntimeError):
            model.h[1](torch.zeros(2, 3))
        gc.collect()
        self.assertFalse(any(type(one) is Upload for one in gc.get_objects()))
        self.assertTrue(torch.equal(model.h[1].mix.weight, built().h[1].mix.weight))
        with torch.no_grad():
            self.assertTrue(torch.equal(model(self.x), built()(self.x)))

    def test_a_run_with_gradients_has_its_parameters_for_good(self) -> None:
        model = built()
        applied = self.apply(model, streaming(model, SOME, "inference"))
        model(self.x).sum().backward()
        reference = built()
        reference(self.x).sum().backward()
        self.assert_equal_bits([one.grad for one in model.parameters()],  # type: ignore[misc]
                               [one.grad for one in reference.parameters()])  # type: ignore[misc]
        self.assertEqual(applied.first_reason, "'h.0.norm.weight' gets a gradient in a run that is not "
                         "under torch.no_grad()")
        self.assertEqual((applied.bytes_back, applied.fell_back), (0, 24))

    def test_a_replaced_parameter_has_its_block_on_the_device(self) -> None:
        model = built()
        applied = self.apply(model, streaming(model, SOME, "inference"))
        model.h[2].mix.weight = nn.Parameter(torch.zeros(3 * WIDTH, WIDTH))
        reference = built()
        reference.h[2].mix.weight = nn.Parameter(torch.zeros(3 * WIDTH, WIDTH))
        with torch.no_grad():
            self.assertTrue(torch.equal(model(self.x), reference(self.x)))
        self.assertEqual(applied.first_reason,
                         "the parameter 'weight' of h.2 was replaced by another one")

    def test_plans_of_other_models_are_refused_and_move_nothing(self) -> None:
        def refusal(change: Callable[[dict[str, Any]], Any], model: nn.Module | None = None) -> str:
            given = model or built()
            plan = streaming(built(), SOME, "inference")
            change(plan)
            before = [one.untyped_storage()._cdata for one in given.parameters()]
            with self.assertRaises(stowage.StowageError) as raised:
                stowage.apply(given, None, write_plan(plan, self.path))
            self.assertEqual([one.untyped_storage()._cdata for one in given.parameters()], before)
            self.assertTrue(str(raised.exception).startswith(self.path))
            return str(raised.exception)[len(self.path):].partition("\n")[0]

        last = -1
        another = " is for another model ('Network'): "
        self.assertEqual(
            refusal(lambda plan: plan["stream"][last].update(module="h.7")),
            f"{another}it streams a module 'h.7', which this model does not have")
        self.assertEqual(
            refusal(lambda plan: plan["stream"][last]["parameters"].append("h.4.x")),
            f"{another}it streams a parameter 'h.4.x', which this model does not have")
        self.assertEqual(
            refusal(lambda plan: plan["stream"][last].update(bytes=512)),
            f"{another}the streamed parameters of 'h.4' take 10752 bytes, and the plan has 512")
        self.assertEqual(
            refusal(lambda plan: plan["stream"][last]["parameters"].append("words.weight")),
            f"{another}'words.weight' is a parameter of more than 'h.4'")
        self.assertEqual(refusal(lambda plan: plan.update(mode="train")),
                         f"{another}it streams 'h.0.norm.weight', which is trained here")
        self.assertEqual(refusal(lambda plan: plan["stream"][1].update(parameters=[])),
                         ": stream[1].parameters: is empty")
        self.assertEqual(refusal(lambda plan: plan.update(stream=plan["stream"] * 2)),
                         ": stream[3].parameters[0]: 'h.0.norm.weight' is streamed already")
        self.assertEqual(refusal(lambda plan: plan.update(mode="play")),
                         ": mode: 'play' is neither train nor inference")

    def test_parameters_that_share_memory_are_refused(self) -> None:
        model = built()
        flat = torch.zeros(2 * WIDTH)
        model.h[0].norm.weight.data, model.h[0].norm.bias.data = flat[:WIDTH], flat[WIDTH:]
        with self.assertRaisesRegex(stowage.StowageError, "'h.0.norm.weight' shares its memory with "
                                    "other tensors: it is not streamed"):
            stowage.apply(model, None, write_plan(streaming(model, SOME, "inference"), self.path))

    def test_verify(self) -> None:
        model = built()
        path = write_plan(streaming(model, SOME, "inference"), self.path)
        self.enterContext(stowage.apply(model, None, path))
        with torch.no_grad():
            with stowage.verify(path) as found:
                model(self.x)
            self.assertEqual(found.bytes_back, streamed_bytes(streaming(model, SOME, "inference")))
            with self.assertRaisesRegex(stowage.StowageError,
                                        r"the parameters of h\.4 came 0 times, and the plan has 1"):
                with stowage.verify(path):
                    model.h[0](torch.zeros(2, 3, WIDTH))
            model(self.x)

    def test_on_a_device_that_is_named(self) -> None:
        model = built()
        self.apply(model, streaming(model, SOME, "inference"), device="cpu")
        with torch.no_grad():
            self.assertTrue(torch.equal(model(self.x), built()(self.x)))
        with self.assertRaisesRegex(stowage.StowageError, "'gpu0' is no device"):
            stowage.apply(model, None, self.path, device="gpu0")


def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    loss = model(x).square().mean()
    loss.backward()
    return loss.detach()


class FrozenBases(AppliedCase):
    def setUp(self) -> None:
        super().setUp()
        torch.manual_seed(5)
        self.batches = [torch.randint(0, 11, (2, 7)) for _ in range(3)]

    def assert_streamed(self, plan: dict[str, Any], run: Any = step) -> Any:
        applied = self.assert_same_training(lambda: built(2), plan, self.batches, run)
        self.assertEqual(applied.first_reason, "")
        return applied

    def test_a_frozen_base_comes_twice(self) -> None:
        for paths in (SOME, ALL):
            plan = streaming(built(2), paths, "train")
            applied = self.assert_streamed(plan)
            self.assertEqual(applied.bytes_back, 3 * streamed_bytes(plan))

    def test_with_checkpoints(self) -> None:
        for checkpointed in (tuple(ALL), ("h.0", "h.3")):
            plan = streaming(built(2), ALL, "train", checkpointed)
            applied = self.assert_streamed(plan)
            self.assertEqual(applied.bytes_back, 3 * streamed_bytes(plan))

    def test_under_checkpoints_of_the_script(self) -> None:
        def run(reentrant: bool, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            h = model.words(x).requires_grad_()  # type: ignore[operator]
            for block in model.h:  # type: ignore[union-attr]
                h = checkpoint(block, h, use_reentrant=reentrant)
            loss = model.head(h).square().mean()  # type: ignore[operator]
            loss.backward()
            return loss.detach()

        for reentrant in (False, True):
            plan = streaming(built(2), SOME, "train")
            applied = self.assert_streamed(plan, functools.partial(run, reentrant))
            self.assertEqual(applied.bytes_back, 3 * streamed_bytes(plan))

    def test_backward_again_and_a_graph_that_is_dropped(self) -> None:
        def run(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            model(x)
            loss = model(x).square().mean()
            loss.backward(retain_graph=True)
            loss.backward()
            return loss.detach()

        self.assert_streamed(streaming(built(2), ALL, "train"), run)
        gc.collect()
        self.assertFalse(any(type(one) is Upload for one in gc.get_objects()))

    def test_a_graph_that_outlives_the_plan(self) -> None:
        model, reference = built(2), built(2)
        with stowage.apply(model, None, write_plan(streaming(model, ALL, "train"), self.path)):
            loss = model(self.batches[0]).square().mean()
        loss.backward()
        step(reference, self.batches[0])
        self.assert_equal_bits(
            [one.grad for one in model.parameters() if one.grad is not None],
            [one.grad for one in reference.parameters() if one.grad is not None])

    def test_a_write_between_forward_and_backward_is_an_error(self) -> None:
        model = built(2)
        with stowage.apply(model, None, write_plan(streaming(model, ALL, "train"), self.path)):
            loss = model(self.batches[0]).square().mean()
            with torch.no_grad():
                model.h[3].wide.weight.mul_(2)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation: a parameter of "
                                        r"h\.3 was written since forward read it"):
                loss.backward()

    def test_autocast_and_evaluation_between_steps(self) -> None:
        def run(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                before = model(x).sum()
            with torch.autocast("cpu", torch.bfloat16):
                return step(model, x) + before

        self.assert_streamed(streaming(built(2), SOME, "train"), run)


class Pretended(unittest.TestCase):
    """Bytes and living tensors on the pretended device."""

    def rehearse(self, plan: dict[str, Any] | None, rank: int) -> Any:
        from stowage.plans.plan_file import PlanReader

        def build() -> tuple[Any, Any, Callable[[], Any]]:
            model = Network(rank).cuda()
            x = torch.zeros(2, 7, dtype=torch.int64, device="cuda")
            if not rank:
                return model, None, torch.no_grad()(lambda: model(x))
            optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.1)

            def run() -> torch.Tensor:
                loss = step(model, x)
                optimizer.step()
                optimizer.zero_grad()
                return loss

            return model, optimizer, run

        read = None if plan is None else PlanReader("the test's plan", plan).plan()
        return stowage.rehearse(build, read)

    def test_an_inference(self) -> None:
        plan = streaming(built(), ALL, "inference")
        found, whole = self.rehearse(plan, 0), self.rehearse(None, 0)
        self.assertEqual((found.bytes_out, found.bytes_back, found.first_reason),
                         (0, streamed_bytes(plan), ""))
        piece = plan["stream"][0]["bytes"]
        self.assertEqual(whole.peak_bytes - found.peak_bytes, 3 * piece)

    def test_a_model_that_is_made_on_the_cpu(self) -> None:
        """What is not streamed goes to the device that apply is told, and all comes back but that."""
        from stowage.plans.plan_file import PlanReader
        from stowage.pretend.session import pretended_cuda

        plan = PlanReader("the test's plan", streaming(built(), ALL, "inference")).plan()
        with pretended_cuda((8, 6)):
            model = Network().eval()
            self.assertIs(model.head.weight, model.words.weight)
            with stowage.apply(model, None, plan, device="cuda") as applied, torch.no_grad():
                self.assertEqual({one.device.type for one in model.h.parameters()}, {"cpu"})
                self.assertEqual(model.words.weight.device.type, "cuda")
                self.assertIs(model.head.weight, model.words.weight)
                output = model(torch.zeros(2, 7, dtype=torch.int64, device="cuda"))
                self.assertEqual(output.device.type, "cuda")
                self.assertEqual(applied.bytes_back, plan.streamed_bytes())
            self.assertEqual({one.device.type for one in model.h.parameters()}, {"cpu"})

    def test_a_frozen_base(self) -> None:
        for checkpointed in ((), tuple(ALL)):
            plan = streaming(built(2), ALL, "train", checkpointed)
            found = self.rehearse(plan, 2)
            self.assertEqual((found.bytes_back, found.first_reason), (streamed_bytes(plan), ""))
            self.assertLess(found.peak_bytes, self.rehearse(None, 2).peak_bytes -
                            2 * plan["stream"][0]["bytes"])


if __name__ == "__main__":
    unittest.main()
