#!/usr/bin/env python3
"""A script with transformers' Trainer, and a plan applied in it.

    python -m stowage record bench/apply/trainer_script.py -o s.json -- gpt2
    stowage plan s.json --for pytorch --optimizer adamw --gpu-memory 2GiB -o p.json
    python bench/apply/trainer_script.py gpt2 --plan p.json

Trainer's training_step is forward and backward: its caller runs the optimizer, which the plan is told of.
Models are small, and have random weights; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from typing import Any

import torch
import transformers

import stowage

SIZES = {
    "gpt2": {"n_embd": 256, "n_layer": 4, "n_head": 4, "n_positions": 128},
    "bert": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
             "intermediate_size": 1024},
    "roberta": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
                "intermediate_size": 1024},
    "distilbert": {"dim": 256, "n_layers": 4, "n_heads": 4, "hidden_dim": 1024},
    "t5": {"d_model": 256, "d_kv": 64, "d_ff": 1024, "num_layers": 3, "num_heads": 4},
    "opt": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "ffn_dim": 1024,
            "word_embed_proj_dim": 256},
    "llama": {"hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 4,
              "num_attention_heads": 4},
    "qwen2": {"hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 4,
              "num_attention_heads": 4, "num_key_value_heads": 2}}
KINDS = {"gpt2": ("GPT2Config", "GPT2LMHeadModel"), "bert": ("BertConfig", "BertForMaskedLM"),
         "roberta": ("RobertaConfig", "RobertaForMaskedLM"),
         "distilbert": ("DistilBertConfig", "DistilBertForMaskedLM"),
         "t5": ("T5Config", "T5ForConditionalGeneration"), "opt": ("OPTConfig", "OPTForCausalLM"),
         "llama": ("LlamaConfig", "LlamaForCausalLM"), "qwen2": ("Qwen2Config", "Qwen2ForCausalLM")}
WORDS, TOKENS = 2000, 64


class RecordedTrainer(transformers.Trainer):
    """The only change that a recording needs."""

    losses: list[torch.Tensor]

    @stowage.step
    def training_step(self, *arguments: Any, **keywords: Any) -> torch.Tensor:
        loss = super().training_step(*arguments, **keywords)
        self.losses = [*getattr(self, "losses", []), loss]
        return loss


def model_of(kind: str) -> torch.nn.Module:
    config, model = (getattr(transformers, name) for name in KINDS[kind])
    torch.manual_seed(0)
    return model(config(vocab_size=WORDS, bos_token_id=0, eos_token_id=1, pad_token_id=2,
                        decoder_start_token_id=0, **SIZES[kind]))


def rows(count: int) -> list[dict[str, torch.Tensor]]:
    torch.manual_seed(2)
    return [{"input_ids": row, "labels": row}
            for row in (torch.randint(3, WORDS, (TOKENS,)) for _ in range(count))]


def trainer_of(kind: str, folder: str, batch: int, steps: int) -> RecordedTrainer:
    return RecordedTrainer(
        model_of(kind), transformers.TrainingArguments(
            folder, per_device_train_batch_size=batch, max_steps=steps, report_to=[], seed=3,
            save_strategy="no", logging_strategy="no", disable_tqdm=True, dataloader_pin_memory=False),
        train_dataset=rows(batch * steps))


def trained(kind: str, plan: Any, batch: int, steps: int) -> tuple[list[torch.Tensor], Any]:
    """([losses, then all parameters and buffers], what apply returned)"""
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_of(kind, folder, batch, steps)
        applied = stowage.apply(trainer.model, trainer.create_optimizer(), plan) if plan else None
        trainer.train()
        if applied is not None:
            applied.remove()
        return [*trainer.losses, *trainer.model.state_dict().values()], applied


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--plan")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=2)
    options = parser.parse_args()
    values, _ = trained(options.kind, options.plan, options.batch, options.steps)
    print(f"last loss {values[options.steps - 1].item():.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
