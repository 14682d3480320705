"""The cases of fine_tuning.py, as a table. No torch here.

Models are the published configurations under tests/hf, by folder, or `torchvision/NAME` and
`timm/NAME`. Adapters are written as `stowage check --lora` takes them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

GROUPS = ("train", "checkpoint", "lora", "serve", "inference", "vision", "recorded", "eager",
          "eager inference", "quantised", "quantised inference")
_TRAINING = ("train", "checkpoint", "lora", "recorded", "eager", "quantised")


@dataclass(frozen=True)
class Case:
    """One set-up. `batch` is the users where a cache is served, `seq` their context."""

    group: str  # what results are grouped by
    model: str
    batch: int
    seq: int | None = None  # None for images
    precision: str = "bf16"  # fp32, bf16 (weights too) or amp-bf16 (autocast)
    layers: int | None = None  # None: as many as the configuration has
    checkpoint: bool = False
    lora: str | None = None
    cache: str | None = None  # dynamic or static: prefill and decode are measured apart
    encoder_seq: int | None = None  # served encoder-decoders of tokens: the encoder's length
    attention: str | None = None  # eager; None: the library's own choice
    base: str | None = None  # weights under adapters, in the words of `stowage check --base`
    torchao: str | None = None  # NAME[,setting=value]: weights as torchao's configuration makes them
    record: bool = False  # also asked about as a recorded step

    def training(self) -> bool:
        return self.group in _TRAINING

    def key(self) -> str:
        """`field=value` of all that is set, for people and for the journal."""
        pairs = [(name, value) for name, value in asdict(self).items()
                 if value not in (None, False) and name != "record"]
        return ";".join(f"{name}={'on' if value is True else value}" for name, value in pairs)

    def torchao_settings(self) -> tuple[str, dict[str, str]]:
        """torchao's class and what it is made with."""
        name, *settings = (self.torchao or "").split(",")
        return name, dict(setting.split("=", 1) for setting in settings)

    def file_name(self) -> str:
        """The key, fit for a file."""
        return "".join(letter if letter.isalnum() or letter in "=-." else "_"
                       for letter in self.key())

    def from_hub(self) -> bool:
        """Whether it is one of transformers' configurations."""
        return "/" not in self.model


def _rows(group: str, *rows: tuple, **options) -> list[Case]:
    return [Case(group, *row[:4], **{**options, **(row[4] if len(row) > 4 else {})})
            for row in rows]


TRAIN = _rows(
    "train",
    ("llama-3.2-1b", 2, 1024, "bf16", {"record": True}), ("llama-3.2-1b", 4, 512, "bf16"),
    ("llama-3.2-1b", 1, 512, "fp32"), ("llama-3.2-1b", 1, 1024, "amp-bf16"),
    ("gpt2", 4, 1024, "fp32", {"record": True}), ("gpt2", 8, 1024, "amp-bf16", {"record": True}),
    ("gpt2", 8, 512, "bf16"),
    ("llama-3-8b", 1, 2048, "bf16", {"layers": 2}), ("llama-3-8b", 2, 512, "bf16", {"layers": 2}),
    ("mistral-7b-v0.1", 1, 2048, "bf16", {"layers": 4}),
    ("mistral-7b-v0.1", 1, 6144, "bf16", {"layers": 2}),
    ("qwen2.5-0.5b", 4, 512, "bf16"), ("qwen2.5-0.5b", 2, 1024, "amp-bf16"),
    ("qwen3-0.6b", 4, 512, "bf16", {"record": True}), ("qwen3-0.6b", 2, 256, "fp32"),
    ("gemma-2b", 1, 512, "bf16", {"layers": 6}), ("gemma-2b", 2, 1024, "bf16", {"layers": 6}),
    ("bert-base", 8, 512, "fp32"), ("bert-base", 32, 128, "amp-bf16"),
    ("t5-small", 8, 512, "fp32"), ("t5-small", 16, 256, "bf16", {"record": True}),
    ("t5-base", 4, 512, "bf16"), ("t5-base", 8, 256, "amp-bf16"),
    ("whisper-small", 2, 128, "fp32"), ("whisper-small", 4, 64, "amp-bf16"),
    ("vit-base-in21k", 32, None, "fp32"), ("vit-base-in21k", 64, None, "amp-bf16"))

CHECKPOINT = _rows(
    "checkpoint",
    ("llama-3.2-1b", 4, 1024, "bf16", {"record": True}), ("llama-3.2-1b", 1, 8192, "bf16"),
    ("llama-3.2-1b", 2, 512, "amp-bf16"), ("llama-3.2-1b", 1, 1024, "fp32"),
    ("gpt2", 8, 1024, "amp-bf16"), ("gpt2", 16, 512, "fp32"),
    ("llama-3-8b", 2, 2048, "bf16", {"layers": 4}),
    ("mistral-7b-v0.1", 2, 2048, "bf16", {"layers": 4}),
    ("qwen2.5-0.5b", 8, 512, "bf16"), ("qwen3-0.6b", 4, 1024, "bf16"),
    ("gemma-2b", 2, 512, "bf16", {"layers": 6}),
    ("bert-base", 32, 512, "fp32"), ("bert-base", 64, 128, "amp-bf16"),
    ("t5-small", 16, 512, "fp32"), ("t5-base", 8, 512, "bf16"),
    ("whisper-small", 4, 128, "fp32"), ("whisper-small", 8, 64, "amp-bf16"),
    ("vit-base-in21k", 64, None, "fp32"), ("vit-base-in21k", 128, None, "amp-bf16"),
    checkpoint=True)

_QV, _QKVO = "targets=q_proj+v_proj", "targets=q_proj+k_proj+v_proj+o_proj"
LORA = _rows(
    "lora",
    ("llama-3.2-1b", 4, 1024, "bf16", {"lora": f"r=16,alpha=32,{_QV}", "record": True}),
    ("llama-3.2-1b", 4, 1024, "bf16", {"lora": f"r=16,alpha=32,{_QV}", "checkpoint": True}),
    ("llama-3.2-1b", 4, 1024, "bf16", {"lora": f"r=8,dropout=0.05,{_QKVO}"}),
    ("llama-3.2-1b", 4, 1024, "bf16", {"lora": "r=64,alpha=64,targets=all-linear"}),
    ("llama-3.2-1b", 4, 1024, "bf16", {"lora": "r=64,dropout=0.1,targets=all-linear",
                                       "checkpoint": True, "record": True}),
    ("llama-3.2-1b", 4, 1024, "bf16", {"lora": "r=16,targets=all-linear,dtype=bf16"}),
    ("llama-3.2-1b", 2, 1024, "bf16", {"lora": f"r=16,use_dora=true,{_QV}"}),
    ("llama-3.2-1b", 2, 1024, "bf16", {"lora": "r=16,use_dora=true,targets=all-linear",
                                       "checkpoint": True}),
    ("llama-3.2-1b", 2, 1024, "bf16", {"lora": f"r=16,use_dora=true,dropout=0.05,{_QV}"}),
    ("llama-3.2-1b", 4, 512, "bf16",
     {"lora": "r=8,targets=all-linear,rank_pattern=q_proj:32+down_proj:4"}),
    ("llama-3.2-1b", 2, 512, "fp32", {"lora": f"r=16,{_QV}"}),
    ("llama-3.2-1b", 2, 512, "amp-bf16", {"lora": f"r=16,dropout=0.05,{_QV}"}),
    ("llama-3-8b", 1, 2048, "bf16", {"layers": 8, "lora": f"r=16,alpha=32,{_QV}"}),
    ("llama-3-8b", 2, 2048, "bf16", {"layers": 8, "lora": "r=16,dropout=0.05,targets=all-linear",
                                     "checkpoint": True}),
    ("llama-3-8b", 1, 1024, "bf16", {"layers": 8, "lora": f"r=64,use_dora=true,{_QKVO}"}),
    ("mistral-7b-v0.1", 1, 2048, "bf16", {"layers": 8, "lora": f"r=16,{_QKVO}"}),
    ("mistral-7b-v0.1", 2, 2048, "bf16", {"layers": 8, "lora": f"r=8,{_QV}", "checkpoint": True}),
    ("qwen2.5-0.5b", 4, 1024, "bf16", {"lora": "r=8,targets=all-linear"}),
    ("qwen3-0.6b", 4, 1024, "bf16", {"lora": f"r=16,dropout=0.05,{_QV}", "checkpoint": True}),
    ("gemma-2b", 2, 512, "bf16", {"lora": f"r=16,{_QV}"}),
    ("gpt2", 8, 1024, "fp32", {"lora": "r=8,alpha=16,targets=c_attn"}),
    ("gpt2", 8, 1024, "bf16", {"lora": "r=16,dropout=0.1,targets=c_attn", "checkpoint": True}),
    ("bert-base", 16, 256, "fp32", {"lora": "r=8,targets=query+value"}),
    ("t5-base", 8, 256, "bf16", {"lora": "r=16,targets=q+v"}),
    ("whisper-small", 2, 64, "fp32", {"lora": "r=16,dropout=0.05,targets=q_proj+v_proj"}),
    ("vit-base-in21k", 64, None, "fp32", {"lora": f"r=16,dropout=0.1,{_QV}"}))

SERVE = _rows(
    "serve",
    ("llama-3.2-1b", 8, 2048, "bf16"), ("llama-3.2-1b", 8, 2048, "bf16", {"cache": "static"}),
    ("llama-3.2-1b", 32, 512, "bf16"), ("llama-3.2-1b", 1, 16384, "bf16"),
    ("llama-3.2-1b", 4, 1024, "fp32"), ("llama-3.2-1b", 4, 1024, "fp32", {"cache": "static"}),
    ("llama-3-8b", 4, 4096, "bf16", {"layers": 8}),
    ("llama-3-8b", 16, 1024, "bf16", {"layers": 8, "cache": "static"}),
    ("mistral-7b-v0.1", 2, 8192, "bf16", {"layers": 8}),
    ("mistral-7b-v0.1", 2, 8192, "bf16", {"layers": 8, "cache": "static"}),
    ("mistral-7b-v0.1", 8, 2048, "bf16", {"layers": 8}),
    ("qwen2.5-0.5b", 16, 2048, "bf16"), ("qwen2.5-0.5b", 16, 1024, "bf16", {"cache": "static"}),
    ("qwen3-0.6b", 8, 2048, "bf16"), ("gemma-2b", 8, 1024, "bf16"),
    ("gpt2", 16, 1024, "fp32"), ("gpt2", 32, 512, "bf16", {"cache": "static"}),
    ("t5-small", 32, 64, "fp32", {"encoder_seq": 512}),
    ("t5-base", 16, 128, "bf16", {"encoder_seq": 512}),
    ("whisper-small", 16, 448, "bf16"), ("whisper-small", 8, 128, "fp32"),
    cache="dynamic")

INFERENCE = _rows(
    "inference",
    ("llama-3.2-1b", 4, 1024, "bf16"), ("gpt2", 16, 1024, "fp32"), ("gpt2", 16, 1024, "amp-bf16"),
    ("qwen3-0.6b", 4, 1024, "bf16"), ("bert-base", 64, 512, "fp32"), ("t5-base", 16, 512, "bf16"),
    ("vit-base-in21k", 128, None, "bf16"))

VISION = _rows(
    "vision",
    ("torchvision/resnet50", 128, None, "fp32"), ("torchvision/resnet50", 128, None, "bf16"),
    ("torchvision/vgg16", 64, None, "fp32"), ("torchvision/vit_b_16", 128, None, "amp-bf16"),
    ("torchvision/convnext_tiny", 128, None, "fp32"), ("torchvision/swin_t", 64, None, "bf16"),
    ("torchvision/efficientnet_b0", 128, None, "fp32"),
    ("timm/vit_base_patch16_224", 128, None, "fp32"))

RECORDED = _rows(
    "recorded",
    ("timm/swinv2_tiny_window8_256", 16, None, "fp32"),
    ("timm/convnextv2_tiny", 16, None, "amp-bf16"), ("timm/maxvit_tiny_rw_224", 16, None, "fp32"),
    ("torchvision/resnet50", 64, None, "fp32"), ("torchvision/swin_v2_t", 32, None, "amp-bf16"),
    ("timm/deit3_base_patch16_384", 48, None, "fp32"),
    ("timm/deit3_base_patch16_384", 48, None, "fp32", {"attention": "eager"}),
    record=True)

EAGER = _rows(
    "eager",
    ("gpt2", 4, 1024, "fp32"), ("gpt2", 1, 1024, "fp32"), ("llama-3.2-1b", 2, 1024, "bf16"),
    ("llama-3.2-1b", 4, 1024, "bf16", {"checkpoint": True}), ("bert-base", 8, 512, "fp32"),
    ("bert-base", 32, 128, "amp-bf16"), ("t5-base", 4, 512, "bf16"),
    ("vit-base-in21k", 32, None, "fp32"), ("whisper-small", 2, 128, "fp32"),
    ("mistral-7b-v0.1", 1, 1024, "bf16", {"layers": 2}), ("qwen3-0.6b", 4, 512, "bf16"),
    ("gemma-2b", 1, 512, "bf16", {"layers": 6}),
    ("llama-3.2-1b", 2, 1024, "bf16", {"lora": f"r=16,alpha=32,{_QV}"}),
    ("timm/vit_base_patch16_224", 64, None, "fp32"),
    attention="eager")

EAGER_INFERENCE = _rows(
    "eager inference",
    ("llama-3.2-1b", 8, 1024, "bf16", {"cache": "dynamic"}), ("gpt2", 16, 1024, "fp32"),
    ("mistral-7b-v0.1", 2, 2048, "bf16", {"layers": 4, "cache": "dynamic"}),
    ("bert-base", 32, 512, "fp32"), ("timm/vit_base_patch16_224", 128, None, "fp32"),
    attention="eager")

QUANTISED = _rows(
    "quantised",
    ("llama-3.2-1b", 4, 1024, "bf16", {"base": "nf4"}),
    ("llama-3.2-1b", 4, 1024, "bf16", {"base": "nf4", "checkpoint": True}),
    ("llama-3.2-1b", 2, 1024, "bf16", {"base": "nf4,double_quant=false",
                                       "lora": "r=8,dropout=0.05,targets=all-linear"}),
    ("llama-3.2-1b", 2, 1024, "bf16", {"base": "fp4"}),
    ("llama-3.2-1b", 4, 1024, "bf16", {"base": "int8"}),
    ("llama-3.2-1b", 4, 1024, "bf16", {"base": "int8", "checkpoint": True}),
    ("llama-3-8b", 1, 2048, "bf16", {"layers": 8, "base": "nf4", "checkpoint": True}),
    ("llama-3-8b", 1, 1024, "bf16", {"base": "nf4", "checkpoint": True}),
    ("mistral-7b-v0.1", 1, 2048, "bf16", {"layers": 8, "base": "nf4"}),
    ("qwen2.5-0.5b", 4, 1024, "bf16", {"base": "nf4"}),
    lora=f"r=16,alpha=32,{_QV}")

_TORCHAO = ("Int8WeightOnlyConfig", "Float8WeightOnlyConfig",
            "Int4WeightOnlyConfig,int4_packing_format=tile_packed_to_4d",
            "Int8DynamicActivationInt8WeightConfig", "Float8DynamicActivationFloat8WeightConfig")
QUANTISED_INFERENCE = _rows(
    "quantised inference",
    ("llama-3.2-1b", 8, 1024, "bf16", {"base": "nf4", "cache": "dynamic"}),
    ("llama-3.2-1b", 8, 1024, "bf16", {"base": "int8", "cache": "dynamic"}),
    ("llama-3.2-1b", 1, 512, "bf16", {"base": "nf4", "cache": "dynamic"}),
    ("llama-3-8b", 4, 2048, "bf16", {"base": "nf4", "cache": "static"}),
    ("qwen2.5-0.5b", 4, 1024, "bf16", {"base": "fp4"}),
    *(("llama-3.2-1b", 4, 1024, "bf16", {"torchao": name}) for name in _TORCHAO),
    *(("llama-3-8b", 4, 1024, "bf16", {"layers": 8, "torchao": name, "cache": "dynamic"})
      for name in _TORCHAO))


def _interleaved(tables: tuple) -> list[Case]:
    """A case of each table in turn, so that a run that is cut short has some of each."""
    rounds = max(map(len, tables))
    return [table[number] for number in range(rounds) for table in tables if number < len(table)]


CASES = _interleaved((LORA, SERVE, CHECKPOINT, TRAIN, INFERENCE, VISION, RECORDED, EAGER,
                      EAGER_INFERENCE, QUANTISED, QUANTISED_INFERENCE))


def chosen(words: list[str]) -> list[Case]:
    """The cases whose key has one of the words in it; all where none is given."""
    return [case for case in CASES if not words or any(word in case.key() for word in words)]


def find(key: str) -> Case:
    return next(case for case in CASES if case.key() == key)
