"""What stands around a step that a plan is carried out in: DistributedDataParallel, FSDP2, transformers'
Trainer."""

from __future__ import annotations

import tempfile
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed
from torch import nn

import stowage
from applied_case import AppliedCase, mean_square, plan_of
from planned import Planner, planned_bytes, write_plan
from references import has


def small() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4))


def sharded(model: nn.Module) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (1,))
    for part in model.children():
        if isinstance(part, nn.Linear):
            fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def local(tensor: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return found.clone()


class Distributed(AppliedCase):
    def setUp(self) -> None:
        super().setUp()
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0,
                                             world_size=1)
        self.addCleanup(torch.distributed.destroy_process_group)

    def trained(self, wrap: Callable[[nn.Module], nn.Module], plan: dict[str, Any] | None) -> Any:
        torch.manual_seed(0)
        model = wrap(small())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        applied = None if plan is None else stowage.apply(model, optimizer, write_plan(plan, self.path))
        values = []
        for size in (4, 4, 3):
            optimizer.zero_grad()
            loss = mean_square(model(torch.ones(size, 8)))
            loss.backward()
            optimizer.step()
            values += [loss.detach(), *(local(p.grad) for p in model.parameters() if p.grad is not None)]
        if applied is not None:
            applied.remove()
        return values, applied

    def test_replicas_and_shards(self) -> None:
        plan = plan_of(small(), torch.zeros(4, 8))
        for wrap in (nn.parallel.DistributedDataParallel, sharded):
            with self.subTest(wrap=wrap.__name__):
                unplanned, _ = self.trained(wrap, None)
                planned, applied = self.trained(wrap, plan)
                self.assert_equal_bits(unplanned, planned)
                moved = sum(planned_bytes(plan, size) for size in (4, 4, 3))
                self.assertEqual((applied.bytes_out, applied.bytes_back, applied.first_reason),
                                 (moved, moved, ""))


@unittest.skipUnless(has("transformers") and has("accelerate"), "needs transformers and accelerate")
class Trainers(AppliedCase):
    def model(self) -> nn.Module:
        from transformers import GPT2Config, GPT2LMHeadModel

        torch.manual_seed(0)
        return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4,
                                          use_cache=False, bos_token_id=0, eos_token_id=0))

    def rows(self) -> Iterator[dict[str, torch.Tensor]]:
        torch.manual_seed(2)
        for _ in range(11):
            row = torch.randint(50, (12,))
            yield {"input_ids": row, "labels": row}

    def trained(self, plan: str | None) -> tuple[list[torch.Tensor], Any]:
        from transformers import Trainer, TrainingArguments

        model = self.model()
        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(model, TrainingArguments(
                folder, per_device_train_batch_size=4, gradient_accumulation_steps=2, num_train_epochs=2,
                report_to=[], save_strategy="no", logging_strategy="no", use_cpu=True, disable_tqdm=True,
                seed=3), train_dataset=list(self.rows()))
            applied = None if plan is None else stowage.apply(model, None, plan)
            trainer.train()
        if applied is not None:
            applied.remove()
        return [value.clone() for value in model.state_dict().values()], applied

    def test_a_trainer_that_accumulates(self) -> None:
        ids = torch.zeros(4, 12, dtype=torch.int64)
        document = stowage.record(self.model(), {"input_ids": ids, "labels": ids}).document
        plan = write_plan(Planner(document).plan(checkpoint=("transformer.h.0",)), self.path)
        unplanned, _ = self.trained(None)
        planned, applied = self.trained(plan)
        self.assert_equal_bits(unplanned, planned)
        self.assertEqual(applied.events.passes, 6)
        self.assertEqual(applied.bytes_out, applied.bytes_back)
        self.assertGreater(applied.bytes_out, 0)


if __name__ == "__main__":
    unittest.main()
