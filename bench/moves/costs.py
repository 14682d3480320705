"""What it costs PyTorch to move a step's tensors between a GPU and pinned memory.

    python costs.py [--only hooks,pinned,copies,calls,steps] [--device cuda|cpu] [-o costs.json]

    hooks   host microseconds a saved tensor, of saved_tensors_hooks that do nothing
    pinned  milliseconds of a pinned allocation, and what it really takes
    copies  GB/s each way, both ways, and beside a matrix product, which they may slow down
    calls   host microseconds of an event, a wait, a copy that does not block
    steps   seconds and peak bytes of training steps: everything resident, checkpointed by block, saved
            tensors offloaded by torch (save_on_cpu) and by one stream each way with events

Each row is printed, and written, as it is measured. With `--device cpu` the script is tried without a GPU: what is printed
then is no measurement. Networks, batches and steps are those of bench/ground_truth.
Exit codes: 0 measured, 2 usage.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable

import torch

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(_HERE, "..", "ground_truth"))

import offload

MIB = 1 << 20
_REPEATS = 20
_SAVED = (("resnet50", 2, None), ("gpt2", 1, 64))
_STEPS = (("resnet50", 256, None, "fp32"), ("vit_b_16", 128, None, "amp-bf16"),
          ("gpt2", 8, 1024, "amp-bf16"))


class Bench:
    def __init__(self, device: str, output: str | None):
        self.on_gpu = device == "cuda"
        self.device, self.output = device, output
        self.rows: list[dict] = []

    def tell(self, kind: str, **values) -> None:
        self.rows.append({"kind": kind, **values})
        print(json.dumps(self.rows[-1]), flush=True)
        if self.output:
            with open(self.output, "w", encoding="utf-8") as file:
                json.dump({"measurement": self.on_gpu, "rows": self.rows}, file, indent=1)
                file.write("\n")

    def wait(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize()

    def seconds(self, run: Callable[[], object], repeats: int = _REPEATS) -> float:
        """The median, the device's work included; two runs before do not count."""
        taken = []
        for _ in range(repeats + 2):
            self.wait()
            begin = time.perf_counter()
            run()
            self.wait()
            taken.append(time.perf_counter() - begin)
        return statistics.median(taken[2:])

    def trainer(self, model: str, batch: int, seq: int | None, precision: str = "fp32"):
        import training
        from matrix import Job, complete
        job = complete(Job(model, batch, seq=seq, precision=precision))
        training.set_flags(job)
        return training.Trainer(job, training.network_on_device(job, self.device), self.device)

    # ---- the host

    def hooks(self) -> None:
        """At batches so small that the step waits for the host."""
        for model, batch, seq in _SAVED:
            trainer = self.trainer(model, batch, seq)
            saved = []
            with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(0) or x, lambda x: x):
                trainer.step()
            plain = self.seconds(trainer.step)

            def hooked() -> None:
                with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
                    trainer.step()

            more = self.seconds(hooked) - plain
            self.tell("hooks", model=model, batch=batch, saved_tensors=len(saved),
                      step_seconds=plain, more_seconds=more,
                      microseconds_a_tensor=1e6 * more / len(saved))

    def calls(self) -> None:
        if not self.on_gpu:
            return
        side, event = torch.cuda.Stream(), torch.cuda.Event()
        tensor = torch.zeros(256, device="cuda")
        pinned = torch.zeros(256, pin_memory=True)

        def switched() -> None:
            with torch.cuda.stream(side):
                pass

        for name, run in (("event.record", event.record), ("event.query", event.query),
                          ("stream.wait_event", lambda: side.wait_event(event)),
                          ("with torch.cuda.stream", switched),
                          ("copy to pinned", lambda: pinned.copy_(tensor, non_blocking=True)),
                          ("copy from pinned", lambda: tensor.copy_(pinned, non_blocking=True)),
                          ("torch.empty", lambda: torch.empty(256, device="cuda"))):
            taken = []
            for _ in range(_REPEATS):
                self.wait()
                begin = time.perf_counter()
                for _ in range(100):
                    run()
                taken.append((time.perf_counter() - begin) / 100)
            self.tell("call", name=name, microseconds=1e6 * statistics.median(taken))

    def pinned(self) -> None:
        if not self.on_gpu:
            return
        for size in (MIB, MIB + 1, 33 * MIB, 64 * MIB, 65 * MIB, 1024 * MIB, 1025 * MIB):
            before = torch.cuda.memory.host_memory_stats()
            begin = time.perf_counter()
            kept = torch.empty(size, dtype=torch.uint8, pin_memory=True)
            first = time.perf_counter() - begin
            after = torch.cuda.memory.host_memory_stats()
            del kept
            begin = time.perf_counter()
            kept = torch.empty(size, dtype=torch.uint8, pin_memory=True)
            again = time.perf_counter() - begin
            taken = {name: after[name] - before.get(name, 0) for name in after
                     if name in ("allocated_bytes.current", "reserved_bytes.current")}
            self.tell("pinned", bytes=size, first_milliseconds=1e3 * first,
                      again_milliseconds=1e3 * again, **taken)
            del kept

    # ---- the lanes

    def copies(self) -> None:
        if not self.on_gpu:
            return
        up, down = torch.cuda.Stream(), torch.cuda.Stream()
        for size in (MIB, 16 * MIB, 256 * MIB):
            there = [torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2)]
            here = [torch.empty(size, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
            count = max(1, 256 * MIB // size)

            def move(uploads: bool, downloads: bool, size=size, there=there, here=here, count=count):
                for _ in range(count):
                    if uploads:
                        with torch.cuda.stream(up):
                            there[0].copy_(here[0], non_blocking=True)
                    if downloads:
                        with torch.cuda.stream(down):
                            here[1].copy_(there[1], non_blocking=True)

            for name, ways in (("up", (True, False)), ("down", (False, True)), ("both", (True, True))):
                taken = self.seconds(lambda ways=ways: move(*ways), 5)
                self.tell("copies", bytes=size, ways=name, gigabytes_a_second_each_way=
                          count * size / taken / 1e9)
        self._beside_compute(move, up, down)

    def _beside_compute(self, move: Callable, up, down) -> None:
        """The last move again, of 256 MiB each way, while the GPU computes."""
        for name, kind in (("bf16 product", torch.bfloat16), ("fp32 sum", torch.float32)):
            a = torch.randn(8192, 8192, device="cuda", dtype=kind)
            b = torch.empty_like(a)
            compute = ((lambda: [torch.matmul(a, a, out=b) for _ in range(20)])
                       if kind is torch.bfloat16 else
                       (lambda: [torch.add(a, a, out=b) for _ in range(60)]))

            def both() -> None:
                compute()
                move(True, True)

            alone, beside = self.seconds(compute, 5), self.seconds(both, 5)
            self.tell("beside", what=name, compute_seconds=alone,
                      copies_seconds=self.seconds(lambda: move(True, True), 5),
                      together_seconds=beside)

    # ---- whole steps

    def steps(self) -> None:
        for model, batch, seq, precision in _STEPS if self.on_gpu else (("gpt2", 2, 16, "fp32"),):
            for mode in ("resident", "checkpointed", "save_on_cpu", "streams"):
                try:
                    self._step(model, batch, seq, precision, mode)
                except torch.OutOfMemoryError:
                    self.tell("step", model=model, batch=batch, mode=mode, status="out-of-memory")
                if self.on_gpu:
                    torch.cuda.empty_cache()

    def _step(self, model: str, batch: int, seq: int | None, precision: str, mode: str) -> None:
        trainer = self.trainer(model, batch, seq, precision)
        if mode == "checkpointed":
            offload.checkpoint_blocks(trainer.network)
        streams = offload.Streams(self.device) if mode == "streams" else None

        def around():
            if mode == "save_on_cpu":
                return torch.autograd.graph.save_on_cpu(pin_memory=self.on_gpu)
            return streams.step() if streams else contextlib.nullcontext()

        def run() -> None:
            with around():
                trainer.step()

        for _ in range(3):
            run()
        self.wait()
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()
        taken = self.seconds(run, 5)
        peaks = ({"allocated": torch.cuda.max_memory_allocated(),
                  "reserved": torch.cuda.max_memory_reserved()} if self.on_gpu else {})
        moved = {"bytes_each_way": streams.moved, "tensors": streams.tensors} if streams else {}
        self.tell("step", model=model, batch=batch, seq=seq, precision=precision, mode=mode,
                  seconds=taken, **peaks, **moved)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = ("hooks", "calls", "pinned", "copies", "steps")
    parser.add_argument("--only", default=",".join(kinds))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("-o", "--output")
    asked = parser.parse_args(words)
    chosen = asked.only.split(",")
    if not set(chosen) <= set(kinds):
        parser.error(f"--only takes {', '.join(kinds)}")
    bench = Bench(asked.device, asked.output)
    if bench.on_gpu:
        bench.tell("card", name=torch.cuda.get_device_name(), torch=torch.__version__)
    for kind in kinds:
        if kind in chosen:
            getattr(bench, kind)()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
