"""Two ways to try a plan for PyTorch before it is trusted, for the scripts beside this file.

    pretend    carry it out on a device that is not there: bytes moved, tensors that fell back, what lives
    compare    train on the CPU with the plan and without it, and compare every bit

A comparison needs the sizes that the step was recorded at, but for the batch: a tensor of another size
stays where it is, as without a plan, and a plan of which nothing is carried out changes no bit anyway.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Generator, Iterator
from typing import Any

import torch

import stowage

# (device) -> (model, optimizer): each call makes the same ones, from one seed.
Build = Callable[[str], tuple[torch.nn.Module, torch.optim.Optimizer]]
# (model, optimizer, batch, device) -> the loss: one training step on random data of that batch.
Step = Callable[[torch.nn.Module, torch.optim.Optimizer, int, str], torch.Tensor]

COMPARED = 4  # samples of a pass: a CPU is slow, and tensors leave at any batch


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plan", metavar="FILE", help="of stowage plan --for pytorch")
    parser.add_argument("--batch", type=int, help="samples of a step (default: the plan's, else 8; with "
                                                  f"--compare at most {COMPARED} in a pass)")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is one")
    parser.add_argument("--pretend", action="store_true",
                        help="carry the plan out on a pretended device: nothing is computed")
    parser.add_argument("--compare", action="store_true",
                        help="train with and without the plan on the CPU, and compare every bit")
    parser.add_argument("--last-batch", type=int, metavar="N", help="one step more, of N samples")


def sizes(options: argparse.Namespace) -> list[int]:
    """The batch of each step."""
    last = [options.last_batch] if options.last_batch else []
    return [options.batch] * options.steps + last


def settled(parser: argparse.ArgumentParser, options: argparse.Namespace) -> stowage.Plan | None:
    """The plan, None: there is none. Sets the batch and the device where they are not given."""
    if (options.pretend or options.compare) and options.plan is None:
        parser.error("--pretend and --compare need --plan")
    plan = stowage.read_plan(options.plan) if options.plan is not None else None
    options.micro_batches = plan.micro_batches if plan is not None else 1
    usual = (plan.batch if plan is not None else None) or 8
    if options.compare:
        usual = min(usual, COMPARED * options.micro_batches)
    options.batch = options.batch or usual
    options.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if plan is not None and plan.allocator:
        print(f"the plan is made for PYTORCH_ALLOC_CONF={plan.allocator}")
    return plan


def pretend(plan: stowage.Plan, build: Build, step: Step, options: argparse.Namespace) -> int:
    """Prints what carrying the plan out moves and takes; 1 where that differs from the plan."""
    def build_step() -> tuple[Any, Any, Callable[[], torch.Tensor]]:
        model, optimizer = build("cuda")
        return model, optimizer, lambda: step(model, optimizer, options.batch, "cuda")

    found = stowage.rehearse(build_step, plan)
    passes = plan.micro_batches
    planned = passes * plan.offloaded_bytes(options.batch // passes) + plan.update_bytes
    back = planned + passes * plan.streamed_bytes()
    print(f"moved to the host {found.bytes_out} bytes a step, and back {found.bytes_back}; "
          f"planned {planned}" + (f", and back {back}" if back != planned else ""))
    print(f"tensors that fell back: {found.fell_back}" + (
        f" ({found.first_reason})" if found.first_reason else ""))
    beside = f"; planned {plan.peak_allocated}" if plan.peak_allocated is not None else ""
    print(f"peak of living tensors {found.peak_bytes} bytes, without what kernels allocate within "
          f"themselves{beside}")
    return int((found.bytes_out, found.bytes_back, found.fell_back) != (planned, back, 0))


def named_values(model: torch.nn.Module, loss: torch.Tensor,
                 has_gradients: bool) -> Iterator[tuple[str, torch.Tensor]]:
    yield "the loss", loss.detach()
    for name, parameter in model.named_parameters():
        yield f"the parameter {name}", parameter.detach()
        if has_gradients and parameter.grad is not None:
            yield f"the gradient of {name}", parameter.grad
    for name, buffer in model.named_buffers():
        yield f"the buffer {name}", buffer


def trained(plan: stowage.Plan | None, build: Build, step: Step, options: argparse.Namespace,
            ended: Callable[[stowage.Applied], None]) -> Generator[dict[str, torch.Tensor], None, None]:
    """What every step leaves, by name; `ended` gets what apply returned after the last one."""
    model, optimizer = build("cpu")
    with contextlib.ExitStack() as stack:
        applied = stack.enter_context(stowage.apply(model, optimizer, plan)) if plan is not None else None
        torch.manual_seed(1)
        for batch in sizes(options):
            loss = step(model, optimizer, batch, "cpu")
            # Early updates let gradients go in backward.
            has_gradients = plan is None or not plan.early_updates
            yield {name: value.clone() for name, value in named_values(model, loss, has_gradients)}
        if applied is not None:
            ended(applied)


def say_what_left(plan: stowage.Plan, applied: stowage.Applied, steps: int) -> bool:
    """Prints what was carried out; whether a tensor left, if the plan offloads one."""
    planned = steps * plan.micro_batches * sum(len(entry.saved) for entry in plan.offload)
    left = planned - applied.fell_back
    reason = f" ({applied.first_reason})" if applied.first_reason else ""
    print(f"moved to the host {applied.bytes_out} bytes, and back {applied.bytes_back}: {left} tensors "
          f"of {planned} that the plan offloads; tensors that fell back: {applied.fell_back}{reason}")
    if plan.checkpoint:
        print(f"modules that ran again in backward: {', '.join(plan.checkpoint)}")
    return left > 0 or planned == 0


def compare(plan: stowage.Plan, build: Build, step: Step, options: argparse.Namespace) -> int:
    """Prints the first value that the plan changes; 1 where there is one, and where no tensor left that
    the plan offloads."""
    tried: list[bool] = []
    without = list(trained(None, build, step, options, lambda _: None))
    with contextlib.closing(trained(plan, build, step, options, lambda applied: tried.append(
            say_what_left(plan, applied, len(without))))) as steps:
        for number, values in enumerate(steps):
            for name, value in values.items():
                if not torch.equal(value, without[number][name]):
                    print(f"step {number + 1}: {name} differs")
                    return 1
    if tried != [True]:
        print("no tensor left, so that nothing of the plan's offloading was tried: compare with the "
              "sizes that the step was recorded at")
        return 1
    print(f"{len(without)} steps of {', '.join(map(str, sizes(options)))} samples: losses, "
          f"{'' if plan.early_updates else 'gradients, '}parameters and buffers are equal to the bit")
    return 0


def carry_out(plan: stowage.Plan | None, build: Build, step: Step, options: argparse.Namespace) -> int:
    """What the options ask for: a rehearsal, a comparison, or training, with the plan if there is one."""
    if plan is not None and options.pretend:
        return pretend(plan, build, step, options)
    if plan is not None and options.compare:
        return compare(plan, build, step, options)
    model, optimizer = build(options.device)
    if plan is not None:
        stowage.apply(model, optimizer, plan)
    for number, batch in enumerate(sizes(options)):
        loss = step(model, optimizer, batch, options.device)
        print(f"step {number + 1}: loss {loss.item():.6f}")
    return 0
