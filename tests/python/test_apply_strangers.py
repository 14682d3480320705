"""Loops and modules as others write them: every bit is that of a run without the plan, and what cannot
leave the device is said once."""

from __future__ import annotations

import copy
import functools
import io
import random
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint_sequential

import stowage
from applied_case import AppliedCase, Net, batches, mean_square, plan_of, small, usual_step
from planned import planned_bytes, write_plan

Build = Callable[[], nn.Module]


class Doubled(torch.autograd.Function):
    """Saves what is neither an argument nor a result, and a result that has no gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        power, mask = x.exp(), x > 0
        ctx.save_for_backward(power, mask, x * 2)
        ctx.mark_non_differentiable(mask)
        return power, mask

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        power, mask, double = ctx.saved_tensors
        result: torch.Tensor = gradient * power * mask + gradient * double
        return result


class Middle(Net):
    def __init__(self, middle: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = middle

    def middle(self, h: torch.Tensor) -> torch.Tensor:
        return self.function(h)


def around(middle: Callable[[torch.Tensor], torch.Tensor]) -> Build:
    return lambda: Middle(middle)


def normed() -> nn.Module:
    model = nn.Sequential(*small())
    parametrizations.weight_norm(model[0])
    parametrizations.spectral_norm(model[2])
    return model


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.given, self.asked = nn.Linear(8, 16), nn.Linear(16, 8)
        self.asked.weight = nn.Parameter(torch.ones(8, 16) / 9)
        self.given.weight = nn.Parameter(self.asked.weight.t().contiguous())
        self.again = self.given

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.again(self.asked(self.given(x).relu())).tanh()
        return found


class InRows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(4)))
        self.last = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(checkpoint_sequential(self.rows, 2, x, use_reentrant=False))
        return found


def flipped(h: torch.Tensor) -> torch.Tensor:
    """Lazy conjugates and negatives are saved."""
    spectrum = torch.fft.rfft(h)
    return torch.fft.irfft(spectrum * torch.fft.rfft(h.tanh()).conj() * spectrum.conj().imag.neg(), n=16)


def overlapping(h: torch.Tensor) -> torch.Tensor:
    return h.mean(1, keepdim=True).expand(-1, 16) * h.unfold(1, 16, 1)[:, 0]


def siamese(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    loss = functional.triplet_margin_loss(model(x), model(x * 2), model(x * 3))
    loss.backward()
    return loss.detach()


def averaged(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    loss = usual_step(model, x)
    average = torch.optim.swa_utils.AveragedModel(model)
    average.update_parameters(model)
    with torch.no_grad():
        return loss + mean_square(average(x * 2))


def copied(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    loss = mean_square(model(x))
    other = copy.deepcopy(model)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    mean_square(other(x)).backward()
    loss.backward()
    with torch.no_grad():
        return loss.detach() + mean_square(torch.load(file, weights_only=False)(x))


def functional_gradients(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    loss = usual_step(model, x)
    values = {name: one.detach() for name, one in model.named_parameters()}

    def loss_at(given: dict[str, torch.Tensor], row: torch.Tensor) -> torch.Tensor:
        return mean_square(torch.func.functional_call(model, given, (row[None],)))

    each = torch.func.vmap(torch.func.grad(loss_at), (None, 0))(values, x)
    whole = torch.autograd.functional.jacobian(model, x)
    return loss + sum(one.sum() for one in each.values()) + whole.sum()


def without_hooks(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        first = usual_step(model, x * 2)
        with torch.autograd.graph.disable_saved_tensors_hooks("nor here"):
            first += usual_step(model, x * 3)
    return first + usual_step(model, x)


def average_pooled() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(inplace=True), nn.Linear(16, 4))


def cumulative() -> nn.Module:
    model = average_pooled()
    model[1].momentum = None  # type: ignore[index]
    return model


class Loops(AppliedCase):
    def test_bits_and_bytes(self) -> None:
        middles = {
            "a function of the script's": around(lambda h: Doubled.apply(h * 0.1)[0]),
            "written in place": around(lambda h: functional.dropout(functional.relu_(h) * 1, 0.3, True)),
            "conjugates": around(flipped), "overlapping": around(overlapping),
            "saved before it is drawn": around(lambda h: functional.rrelu(h, training=True)),
            "an empty tensor": around(lambda h: torch.cat([h, h[:, :0] * h[:, :0].tanh()], 1))}
        for name, build in {"norms": normed, "tied": Tied, "its own checkpoints": InRows,
                            **middles}.items():
            with self.subTest(name):
                plan = plan_of(build(), torch.zeros(4, 8))
                applied = self.assert_same_training(build, plan, batches(2))
                if name != "written in place":  # dropout's mask is another type on the CPU
                    self.assertEqual((applied.first_reason, applied.bytes_out),
                                     ("", 2 * planned_bytes(plan, 4)))

    def test_steps_of_others(self) -> None:
        for checkpoint in ((), ("2",)):
            plan = plan_of(small(), torch.zeros(4, 8), checkpoint)
            for step in (siamese, averaged, copied, functional_gradients, without_hooks):
                with self.subTest(step=step.__name__, checkpoint=checkpoint):
                    applied = self.assert_same_training(small, plan, batches(2), step)
                    self.assertEqual(applied.fell_back, 0)
                    self.assertGreater(applied.bytes_out, 0)

    def test_hooks_of_others_below_ours_are_pytorchs_error(self) -> None:
        plan = plan_of(small(), torch.zeros(4, 8))

        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            with torch.autograd.graph.save_on_cpu():
                return without_hooks(model, x)

        with self.assertRaises(RuntimeError) as caught:
            self.train(small, batches(1), step, plan)
        self.assertEqual(str(caught.exception), "no hooks here")

    def test_a_plan_that_ends_where_hooks_are_forbidden(self) -> None:
        model = small()
        applied = stowage.apply(model, None, write_plan(plan_of(small(), torch.zeros(4, 8)), self.path))
        before = torch.autograd.graph.disable_saved_tensors_hooks
        with before("no hooks here"):
            applied.remove()
        self.assertIsNot(torch.autograd.graph.disable_saved_tensors_hooks, before)
        self.assertIsNone(torch._C._autograd._top_saved_tensors_default_hooks(True))

    def test_an_average_over_all_batches(self) -> None:
        for checkpoint in ((), ("1",)):
            plan = plan_of(average_pooled(), torch.zeros(4, 8), checkpoint)
            self.assertEqual(self.assert_same_training(cumulative, plan, batches()).fell_back, 0)

    def test_another_type_says_so_once(self) -> None:
        plan = plan_of(small(), torch.zeros(4, 8))
        applied = self.assert_same_training(lambda: small().to(torch.bfloat16), plan, batches(),
                                            lambda model, x: usual_step(model, x.bfloat16()))
        self.assertEqual(applied.first_reason,
                         "1#0 is bfloat16 [4, 16], and the plan has float32 [batch, 16]")


class Drawing(nn.Module):
    """Draws from Python, from NumPy, and from generators of its own."""

    def __init__(self) -> None:
        super().__init__()
        import numpy

        self.layer = nn.Linear(16, 16)
        self.numpy = numpy.random
        self.own = (torch.Generator().manual_seed(3), random.Random(2))
        self.generator, self.python = self.own
        self.modern, self.legacy = numpy.random.default_rng(3), numpy.random.RandomState(4)

    def draws(self) -> Iterator[float]:
        yield random.random()
        yield float(self.numpy.rand())
        yield self.python.random()
        yield float(self.modern.random())
        yield float(self.legacy.rand())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.device.type != "cpu":  # recorded: values do not count, and a device has other generators
            scales, noise = torch.ones(5, device=x.device), torch.ones(16, device=x.device)
        else:
            scales, noise = torch.tensor(list(self.draws())), torch.rand(16, generator=self.generator)
        h: torch.Tensor = self.layer(x * noise * scales.sum())
        return (h * scales.prod()).tanh()


class Written(nn.Module):
    """The input of its block is written in place after it. `way`: how the block gets it."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 4)
        self.block = Taking()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        ways: dict[str, Callable[[], torch.Tensor]] = {
            "argument": lambda: self.block(h), "keyword": lambda: self.block(given=h),
            "list": lambda: self.block([h])}
        other = ways[self.way]()
        h += other
        found: torch.Tensor = self.last(h)
        return found


class Taking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, given: Any) -> torch.Tensor:
        one = given[0] if isinstance(given, list) else given
        found: torch.Tensor = self.layer(functional.dropout(one, 0.5))
        return found


class Regions(AppliedCase):
    """Modules that run again in backward."""

    def test_random_numbers_of_every_source(self) -> None:
        def build() -> nn.Module:
            import numpy

            random.seed(0)
            numpy.random.seed(0)
            return nn.Sequential(nn.Linear(8, 16), Drawing(), nn.Linear(16, 4))

        def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            return usual_step(model, x) + sum(model[1].draws())  # type: ignore[index, operator]

        plan = plan_of(build(), torch.zeros(4, 8), ("1",))
        self.assertEqual(self.assert_same_training(build, plan, batches(), step).fell_back, 0)

    def test_inputs_that_are_one_object(self) -> None:
        def build() -> nn.Module:
            return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

        torch.manual_seed(2)
        given = [torch.randn(4, 5, 8) for _ in range(2)]
        plan = plan_of(build(), torch.zeros(4, 5, 8), ("self_attn",))
        self.assertGreater(self.assert_same_training(build, plan, given).bytes_out, 0)

    def test_an_input_that_is_written_is_an_error(self) -> None:
        start = ("one of the variables needed for gradient computation has been modified by an inplace "
                 "operation: [torch.FloatTensor [4, 8]]")
        for way, where in (("argument", " is"), ("keyword", " is"),
                           ("list", ", which a module that runs again in backward got in a list, is")):
            with self.subTest(way):
                build = functools.partial(Written, way)
                plan = plan_of(build(), torch.zeros(4, 8), ("block",))
                with self.assertRaises(RuntimeError) as caught:
                    self.train(build, batches(1), usual_step, plan)
                self.assertEqual(str(caught.exception),
                                 f"{start}{where} at version 1; expected version 0 instead.")

    def test_compiled_models_and_parts(self) -> None:
        def whole() -> nn.Module:
            model = small()
            model.compile(backend="eager")
            return model

        def part() -> nn.Module:
            model = nn.Sequential(*small())
            model[2] = torch.compile(model[2], backend="eager")  # type: ignore[call-overload]
            return model

        for build, recorded in ((whole, small), (part, part)):
            plan = plan_of(recorded(), torch.zeros(4, 8), ("2",))
            with self.subTest(build=build.__name__):
                self.assert_same_training(build, plan, batches(2))


if __name__ == "__main__":
    unittest.main()
