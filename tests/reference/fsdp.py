#!/usr/bin/env python3
"""Write fsdp.json: training steps of one GPU among several under PyTorch's fully_shard (FSDP2).

    python fsdp.py                         everything, about five minutes
    python fsdp.py --cases gpt2-b1-g4      some cases, printed and not written

FSDP's own Python code runs, on fake CUDA tensors (fake_cuda.py) and a process group that does not
communicate (torch.testing._internal.distributed.fake_pg), as the first of its GPUs. Streams and
events, which need a driver, are replaced by ones that do nothing: when a tensor is let go in Python
is when it counts as free. Storages that FSDP resizes (alloc_storage, free_storage) are counted as they
are resized. A trace is as step_trace.py says.
"""

import argparse
import contextlib
import dataclasses
import importlib
import pathlib
import time
from unittest import mock

import fake_cuda

HERE = pathlib.Path(__file__).parent
BLOCKS = {"gpt2": "GPT2Block", "llama-3.2-1b-2layers": "LlamaDecoderLayer",
          "resnet18": "BasicBlock", "bert-base": "BertLayer", "mlp": ""}
MODULES = ("_fsdp_collectives", "_fsdp_param_group", "_fsdp_state", "_fsdp_init")


@dataclasses.dataclass(frozen=True)
class Case:
    """One step. `reshard`: fully_shard's reshard_after_forward of the blocks. `policy`: param_dtype
    and reduce_dtype over fp32 parameters. `precision`: of the parameters themselves."""

    name: str
    batch: int = 1
    gpus: int = 4
    precision: str = "fp32"
    policy: tuple = ()
    reshard: object = True
    wrap: str = "blocks"
    forward_prefetch: int = 0
    backward_prefetch: int = 0
    checkpoint: bool = False
    offload: bool = False
    micro_batches: int = 1
    lora: str = ""
    optimizer: str = "adamw"

    @property
    def stem(self):
        parts = [self.name, f"b{self.batch}", f"g{self.gpus}"]
        parts += [self.precision] if self.precision != "fp32" else []
        parts += ["-".join(str(p) for p in self.policy)] if self.policy else []
        parts += [f"reshard-{self.reshard}".lower()] if self.reshard is not True else []
        parts += [self.wrap] if self.wrap != "blocks" else []
        parts += [f"forward-{self.forward_prefetch}"] if self.forward_prefetch else []
        parts += [f"backward-{self.backward_prefetch}"] if self.backward_prefetch else []
        parts += [word for word in ("checkpoint", "offload") if getattr(self, word)]
        parts += [f"accumulate-{self.micro_batches}"] if self.micro_batches > 1 else []
        parts += ["lora"] if self.lora else []
        parts += [self.optimizer] if self.optimizer != "adamw" else []
        return "-".join(parts)


LORA = "r=8,alpha=16,targets=c_attn"
LLAMA = "llama-3.2-1b-2layers"
MIXED = ("bf16", None)


def cases():
    for gpus in (1, 2, 3, 8):
        yield Case("gpt2", gpus=gpus)
    yield Case("gpt2", 4, 4)
    yield Case("gpt2", 4, 4, optimizer="sgd-momentum")
    yield Case("gpt2", 4, 4, wrap="root")
    yield Case("gpt2", 1, 4, reshard=False)
    yield Case("gpt2", 1, 4, reshard=2)
    yield Case("gpt2", 1, 4, forward_prefetch=1)
    yield Case("gpt2", 1, 4, forward_prefetch=2, backward_prefetch=2)
    yield Case("gpt2", 4, 4, checkpoint=True)
    yield Case("gpt2", 1, 4, micro_batches=2)
    yield Case("gpt2", 1, 4, lora=LORA)
    yield Case("gpt2", 1, 4, "amp-bf16")
    for gpus in (1, 3, 8):
        yield Case(LLAMA, 1, gpus, policy=MIXED)
    yield Case(LLAMA, 4, 8, policy=MIXED, checkpoint=True)
    yield Case(LLAMA, 1, 8, policy=("bf16", "bf16"))
    yield Case(LLAMA, 1, 8, policy=("bf16", "fp32"), micro_batches=2)
    yield Case(LLAMA, 1, 8, "bf16")
    yield Case(LLAMA, 1, 8, offload=True)
    yield Case(LLAMA, 1, 8, policy=MIXED, offload=True)
    for gpus in (2, 5):
        yield Case("resnet18", 32, gpus)
    yield Case("resnet18", 2, 4, policy=("bf16", "fp32"))
    yield Case("bert-base", 1, 4)
    yield Case("mlp", 32, 4)


# ---- what needs a driver


class NoEvent:
    def record(self, *_):
        return self

    def wait(self, *_):
        pass

    synchronize = wait


class NoStream:
    stream_id, device_index, device_type = 0, 0, 1

    def __init__(self, **_):
        pass

    def wait_stream(self, _):
        pass

    wait_event = wait_stream

    def record_event(self, *_):
        return NoEvent()


class NoDriver:
    """In place of torch.cuda, where FSDP and DeviceMesh ask for it."""

    Stream, Event = NoStream, NoEvent

    @staticmethod
    def current_stream(*_):
        return NoStream()

    @staticmethod
    def stream(_):
        return contextlib.nullcontext()

    @staticmethod
    def current_device():
        return 0

    @staticmethod
    def device_count():
        return 1

    @staticmethod
    def is_available():
        return True

    is_initialized = is_available

    @staticmethod
    def set_device(*_):
        pass


@contextlib.contextmanager
def without_driver():
    from torch.distributed import device_mesh

    with contextlib.ExitStack() as stack:
        for name in MODULES:
            module = importlib.import_module(f"torch.distributed.fsdp._fully_shard.{name}")
            stack.enter_context(mock.patch.object(module, "_get_device_handle",
                                                  lambda *_: NoDriver))
        stack.enter_context(mock.patch.object(device_mesh, "_get_device_handle",
                                              lambda *_: NoDriver))
        stack.enter_context(real_meshes())
        yield


@contextlib.contextmanager
def real_meshes():
    """Meshes are made of tensors that hold their ranks."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    from torch.distributed.fsdp._fully_shard import _fsdp_init, _fully_shard

    made = _fsdp_init._get_post_forward_mesh_info

    def outside(*arguments):
        with unset_fake_temporarily():
            return made(*arguments)

    with mock.patch.object(_fsdp_init, "_get_post_forward_mesh_info", outside), \
            mock.patch.object(_fully_shard, "_get_post_forward_mesh_info", outside):
        yield


def process_group(gpus):
    """A mesh of so many GPUs, of which this is the first."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group("fake", rank=0, world_size=gpus, store=FakeStore())
    return init_device_mesh("cuda", (gpus,))


# ---- the trace


def sharded_trace():
    """StorageTrace, which also sees the parts of DTensors and the storages that FSDP resizes."""
    import step_trace
    from torch.distributed.tensor import DTensor

    class ShardedTrace(step_trace.StorageTrace):
        def count(self, tensor):
            return super().count(tensor._local_tensor if isinstance(tensor, DTensor) else tensor)

        def resized(self, tensor, size):
            key = tensor.untyped_storage()._cdata
            before = self.sizes[key]
            self.sizes[key] = size
            self.live += size - before
            self.live_rounded += step_trace.rounded(size) - step_trace.rounded(before)

    return ShardedTrace


@contextlib.contextmanager
def resizing_seen(traces):
    import torch.distributed.fsdp._fully_shard._fsdp_param as fsdp_param
    import torch.distributed.fsdp._fully_shard._fsdp_param_group as group

    def alloc(tensor):
        size = tensor.numel() * tensor.itemsize
        storage = tensor.untyped_storage()
        if storage.size() != size:
            storage.resize_(size)
            traces[-1].resized(tensor, size)

    def free(tensor):
        storage = tensor.untyped_storage()
        if storage.size() != 0:
            storage.resize_(0)
            traces[-1].resized(tensor, 0)

    with mock.patch.object(fsdp_param, "alloc_storage", alloc), \
            mock.patch.object(fsdp_param, "free_storage", free), \
            mock.patch.object(group, "alloc_storage", alloc):
        yield


# ---- the steps


def sharded(model, case, mesh):
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard, MixedPrecisionPolicy
    import torch

    options = {"mesh": mesh}
    if case.policy:
        dtypes = {None: None, "bf16": torch.bfloat16, "fp32": torch.float32}
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=dtypes[case.policy[0]],
                                                    reduce_dtype=dtypes[case.policy[1]])
    if case.offload:
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=False)
    blocks = [m for m in model.modules()
              if case.wrap == "blocks" and type(m).__name__ == BLOCKS[case.name]]
    for block in blocks:
        fully_shard(block, reshard_after_forward=case.reshard, **options)
    fully_shard(model, **options)
    for i, block in enumerate(blocks):
        if case.forward_prefetch:
            block.set_modules_to_forward_prefetch(blocks[i + 1:i + 1 + case.forward_prefetch])
        if case.backward_prefetch:
            before = blocks[max(i - case.backward_prefetch, 0):i]
            block.set_modules_to_backward_prefetch(before[::-1])
    return model


def made_for_cuda(case, reference, mesh):
    """(model, input, target), fake; to be called in fake_cuda()."""
    import compact
    import fine_tuning
    import torch
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily(), torch.device("meta"):
        model = reference.build(reference.seq).train()
        if case.precision == "bf16":
            model = model.to(compact.dtype_of("bf16"))
        if case.lora:
            model = fine_tuning.with_adapters(
                model, {"r": 8, "lora_alpha": 16, "target_modules": ["c_attn"]})
    model = fake_cuda.moved_to_fake(model)
    if case.checkpoint:
        fine_tuning.checkpointed(model, case)
    with torch.device("cuda"):
        inputs, target = reference.inputs(reference, case.batch, reference.seq)
    if case.precision == "bf16" and inputs.is_floating_point():
        inputs = inputs.to(torch.bfloat16)
    return sharded(model, case, mesh), inputs, target


def measured(case, entry):
    import compact
    import step_trace

    reference, traces = entry.reference, []

    class Trace(sharded_trace()):
        def __init__(self, device_type):
            super().__init__(device_type)
            traces.append(self)

    object.__setattr__(case, "kept", ())
    with without_driver(), contextlib.ExitStack() as stack:
        mesh = process_group(case.gpus)
        stack.enter_context(fake_cuda.fake_cuda())
        stack.enter_context(resizing_seen(traces))
        made = made_for_cuda(case, reference, mesh)
        if case.precision.startswith("amp-"):
            reference = compact.under_autocast(reference, compact.dtype_of(case.precision),
                                               fake_cuda.autocast)
        loop = step_trace.Loop(micro_batches=case.micro_batches)
        trace = step_trace.run(reference, *made, case.optimizer, fake_cuda.backward_possible, loop,
                               Trace)
    return {"name": case.stem, "model": entry.model, "seq": reference.seq,
            "arguments": entry.arguments, **settings_of(case),
            "trace": step_trace.summary(trace)}, trace


def settings_of(case):
    fields = dataclasses.asdict(case)
    del fields["name"]
    return {name: list(value) if isinstance(value, tuple) else value
            for name, value in fields.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", metavar="STEM", help="only these, printed")
    parser.add_argument("--events", action="store_true", help="print each event of the second step")
    arguments = parser.parse_args()
    fake_cuda.relaunch_with_shim()

    import catalogue
    import counts
    import json_format
    import torch
    import torch.distributed.tensor  # noqa: F401  makes DTensor a type that foreach takes

    torch.set_num_threads(1)
    entries = catalogue.cases()
    rows = []
    for case in cases():
        if arguments.cases and case.stem not in arguments.cases:
            continue
        started = time.monotonic()
        row, trace = measured(case, entries[case.name])
        rows.append(row)
        print(f"{case.stem}: {time.monotonic() - started:.1f} s", flush=True)
        if arguments.events:
            for event in trace.events:
                if event[0] == 2 and (event[3] or event[4]):
                    print(event)
        if arguments.cases:
            print(row)
        else:
            json_format.write(HERE / "fsdp.json", {"versions": counts.versions(), "cases": rows})


if __name__ == "__main__":
    main()
