// The whole files of training engines, and what is said beside them.
#include <doctest/doctest.h>

#include "tests/answers/exporting/export_questions.hpp"

namespace stowage {

using testing::exported_body;
using testing::sharded_llama;
using testing::small_llama;

namespace {

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("DeepSpeed: ZeRO 3 with everything on the host") {
  ExportQuestion question = sharded_llama(ExportForm::deepspeed, 3, false);
  question.step.wishes.parallel.offload = Offload::all;
  question.step.wishes.parallel.pinned = false;
  question.step.wishes.accumulation = 4;
  question.step.wishes.master_gradients = true;
  question.step.model.options.fine_tuning.checkpoint = "all";
  const auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK(found->body ==
        R"({
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 4,
  "train_batch_size": 64,
  "zero_optimization": {
    "stage": 3,
    "contiguous_gradients": true,
    "overlap_comm": true,
    "reduce_bucket_size": 500000000,
    "stage3_max_live_parameters": 1000000000,
    "stage3_param_persistence_threshold": 100000,
    "sub_group_size": 1000000000,
    "offload_optimizer": {
      "device": "cpu",
      "pin_memory": false,
      "ratio": 1.0
    },
    "offload_param": {
      "device": "cpu",
      "pin_memory": false
    }
  },
  "bf16": {
    "enabled": true
  },
  "fp16": {
    "enabled": false
  },
  "data_types": {
    "grad_accum_dtype": "fp32"
  },
  "optimizer": {
    "type": "AdamW",
    "params": {}
  },
  "activation_checkpointing": {
    "partition_activations": false,
    "cpu_checkpointing": false,
    "contiguous_memory_optimization": false
  }
}
)");
  CHECK(whole_text(*found) == found->body);  // JSON has no comments
  CHECK(found->fits());
  CHECK(found->unsaid ==
        Lines{"`gpus` 8: torchrun or another launcher starts one process a GPU",
              "`seq` 64: the length of the data's samples",
              "`checkpoint` all: torch.utils.checkpoint(use_reentrant=False), which transformers' "
              "models call after gradient_checkpointing_enable()",
              "`set` layers=2: the model's own configuration"});
  CHECK(found->remarks ==
        Lines{"learning rate, betas and weight decay change no memory: they are the optimizer's "
              "defaults"});
  CHECK(found->uncounted == Lines{"what stage 3 prefetches beyond stage3_max_live_parameters",
                                  "what DeepSpeed takes before the first step"});
}

TEST_CASE("DeepSpeed: ZeRO 1 under autocast, with an optimizer that it did not test") {
  ExportQuestion question = sharded_llama(ExportForm::deepspeed, 1, false);
  question.step.model.options.precision = Precision::amp_fp16;
  question.step.wishes.optimizer = "nesterov";
  CHECK(exported_body(question) ==
        R"({
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 1,
  "train_batch_size": 16,
  "zero_optimization": {
    "stage": 1,
    "contiguous_gradients": true,
    "overlap_comm": false,
    "reduce_bucket_size": 500000000,
    "allgather_bucket_size": 500000000
  },
  "bf16": {
    "enabled": false
  },
  "fp16": {
    "enabled": false
  },
  "torch_autocast": {
    "enabled": true,
    "dtype": "float16"
  },
  "optimizer": {
    "type": "SGD",
    "params": {
      "momentum": 0.9,
      "nesterov": true
    }
  },
  "zero_allow_untested_optimizer": true
}
)");
}

TEST_CASE("accelerate: FSDP2 in mixed precision, checkpointed") {
  ExportQuestion question = sharded_llama(ExportForm::fsdp, 0, true);
  question.step.wishes.parallel.offload = Offload::all;
  question.step.model.options.fine_tuning.checkpoint = "all";
  const auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK(found->body ==
        R"(compute_environment: "LOCAL_MACHINE"
distributed_type: "FSDP"
mixed_precision: "bf16"
num_machines: 1
num_processes: 8
machine_rank: 0
main_training_function: "main"
use_cpu: false
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: "TRANSFORMER_BASED_WRAP"
  fsdp_reshard_after_forward: true
  fsdp_offload_params: true
  fsdp_activation_checkpointing: true
)");
  // accelerate reduces in 16 bits, and so it is counted.
  const auto& sizes = std::get<CheckAnswer>(found->sizes);
  CHECK(sizes.step.lowering.parallel.fsdp.reduce_type == DataType::bfloat16);
  question.form = ExportForm::accelerate;
  CHECK(exported_body(question) == found->body);
}

TEST_CASE("accelerate: several GPUs without shards, and DeepSpeed's keys with ZeRO") {
  ExportQuestion question = small_llama(ExportForm::accelerate);
  question.step.wishes.parallel.gpus = 2;
  question.step.model.options.precision = Precision::amp_bf16;
  CHECK(exported_body(question) ==
        R"(compute_environment: "LOCAL_MACHINE"
distributed_type: "MULTI_GPU"
mixed_precision: "bf16"
num_machines: 1
num_processes: 2
machine_rank: 0
main_training_function: "main"
use_cpu: false
)");
  ExportQuestion sharded = sharded_llama(ExportForm::accelerate, 2, false);
  sharded.step.wishes.parallel.offload = Offload::optimizer;
  CHECK(exported_body(sharded) ==
        R"(compute_environment: "LOCAL_MACHINE"
distributed_type: "DEEPSPEED"
mixed_precision: "bf16"
num_machines: 1
num_processes: 8
machine_rank: 0
main_training_function: "main"
use_cpu: false
deepspeed_config:
  zero_stage: 2
  gradient_accumulation_steps: 1
  offload_optimizer_device: "cpu"
  offload_param_device: "none"
  zero3_init_flag: false
)");
}

TEST_CASE("TRL: adapters beside a base of 4 bits, saved tensors on the host") {
  ExportQuestion question = small_llama(ExportForm::trl);
  question.step.model.options.precision = Precision::bf16;
  question.step.model.options.fine_tuning = {.lora = "r=16,alpha=32,targets=q_proj+v_proj",
                                             .base = "nf4",
                                             .checkpoint = "all",
                                             .offload_activations = "all"};
  const auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK(found->body ==
        R"(per_device_train_batch_size: 2
gradient_accumulation_steps: 1
max_length: 64
packing: false
bf16: false
fp16: false
dtype: "bfloat16"
optim: "adamw_torch"
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: false
activation_offloading: true
use_peft: true
lora_r: 16
lora_alpha: 32
lora_dropout: 0.0
lora_target_modules: ["q_proj", "v_proj"]
use_rslora: false
use_dora: false
load_in_4bit: true
bnb_4bit_quant_type: "nf4"
use_bnb_nested_quant: true
)");
  CHECK(found->unsaid == Lines{"`set` layers=2: the model's own configuration"});
}

TEST_CASE("TRL: DeepSpeed's settings, whose rates the Trainer fills in") {
  ExportQuestion question = sharded_llama(ExportForm::trl, 2, false);
  question.step.wishes.parallel.offload = Offload::optimizer;
  CHECK(exported_body(question) ==
        R"(per_device_train_batch_size: 2
gradient_accumulation_steps: 1
max_length: 64
packing: false
bf16: true
fp16: false
dtype: "float32"
optim: "adamw_torch_fused"
gradient_checkpointing: false
activation_offloading: false
deepspeed:
  train_micro_batch_size_per_gpu: 2
  gradient_accumulation_steps: 1
  train_batch_size: 16
  zero_optimization:
    stage: 2
    contiguous_gradients: true
    overlap_comm: false
    reduce_bucket_size: 500000000
    allgather_bucket_size: 500000000
    offload_optimizer:
      device: "cpu"
      pin_memory: true
      ratio: 1.0
  bf16:
    enabled: true
  fp16:
    enabled: false
  optimizer:
    type: "AdamW"
    params:
      lr: "auto"
      weight_decay: "auto"
      betas: "auto"
      eps: "auto"
)");
}

TEST_CASE("axolotl: FSDP, and its own names for adapters") {
  ExportQuestion question = sharded_llama(ExportForm::axolotl, 0, true);
  question.step.wishes.parallel.offload = Offload::all;
  question.step.wishes.optimizer = "momentum";
  CHECK(exported_body(question) ==
        R"(micro_batch_size: 2
gradient_accumulation_steps: 1
sequence_len: 64
pad_to_sequence_len: true
sample_packing: false
bf16: true
fp16: false
optimizer: "sgd"
optim_args: "momentum=0.9"
gradient_checkpointing: false
fsdp_version: 2
fsdp_config:
  auto_wrap_policy: "TRANSFORMER_BASED_WRAP"
  reshard_after_forward: true
  offload_params: true
  activation_checkpointing: false
  cpu_offload_pin_memory: true
)");
  ExportQuestion tuned = small_llama(ExportForm::axolotl);
  tuned.step.model.options.precision = Precision::bf16;
  tuned.step.model.options.fine_tuning = {.lora = "r=4,targets=all-linear", .base = "int8"};
  CHECK(exported_body(tuned) ==
        R"(micro_batch_size: 2
gradient_accumulation_steps: 1
sequence_len: 64
pad_to_sequence_len: true
sample_packing: false
bf16: false
fp16: false
bfloat16: true
optimizer: "adamw_torch"
gradient_checkpointing: false
adapter: "lora"
lora_r: 4
lora_alpha: 8
lora_dropout: 0.0
lora_target_linear: true
load_in_8bit: true
)");
}

TEST_CASE("torchtitan: a job in TOML, and the options of the release that reads none") {
  ExportQuestion question = sharded_llama(ExportForm::torchtitan, 0, true);
  question.step.wishes.accumulation = 2;
  question.step.model.options.fine_tuning.checkpoint = "all";
  const auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK(found->body ==
        R"([training]
local_batch_size = 2
global_batch_size = 32
seq_len = 64
dtype = "float32"
mixed_precision_param = "bfloat16"
mixed_precision_reduce = "float32"
enable_cpu_offload = false

[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = 8
fsdp_reshard_after_forward = "default"

[activation_checkpoint]
mode = "full"

[optimizer]
name = "AdamW"
implementation = "foreach"
)");
  const Lines options(found->head.end() - 13, found->head.end());
  CHECK(options == Lines{"torchtitan 0.2 reads this file; 0.3 takes the same as options:",
                         "  --training.local_batch_size 2", "  --training.global_batch_size 32",
                         "  --training.seq_len 64", "  --training.dtype \"float32\"",
                         "  --training.mixed_precision_param \"bfloat16\"",
                         "  --training.mixed_precision_reduce \"float32\"",
                         "  --training.no_enable_cpu_offload",
                         "  --parallelism.data_parallel_replicate_degree 1",
                         "  --parallelism.data_parallel_shard_degree 8",
                         "  --parallelism.fsdp_reshard_after_forward \"default\"",
                         "  --optimizer.implementation \"foreach\"",
                         "  activation-checkpoint:full"});
}

TEST_CASE("Megatron: sharded by its own FSDP, recomputed, the optimizer on the host") {
  ExportQuestion question = sharded_llama(ExportForm::megatron, 3, false);
  question.step.wishes.parallel.offload = Offload::optimizer;
  question.step.wishes.master_gradients = true;
  question.step.model.options.fine_tuning.checkpoint = "all";
  CHECK(exported_body(question) ==
        R"(MEGATRON_ARGS=(
  --micro-batch-size 2
  --global-batch-size 16
  --seq-length 64
  --bf16
  --recompute-granularity full
  --recompute-method uniform
  --recompute-num-layers 1
  --accumulate-allreduce-grads-in-fp32
  --optimizer adam
  --use-distributed-optimizer
  --use-megatron-fsdp
  --data-parallel-sharding-strategy optim_grads_params
  --optimizer-cpu-offload
  --use-precision-aware-optimizer
  --optimizer-offload-fraction 1.0
)
)");
}

TEST_CASE("what does not fit is written with that on its head") {
  ExportQuestion question = small_llama(ExportForm::axolotl);
  question.card = CardQuestion{.cuda_total = 1_GiB, .configs = question.card->configs};
  const auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK_FALSE(found->fits());
  CHECK(found->head[0] == "Written by stowage TEST for llama-3.2-1b on a generic 1.0 GiB card.");
  CHECK(found->head[1].starts_with("It does not fit: "));
  CHECK(found->head[1].ends_with(" wanted, 1.0 GiB available."));
  CHECK(
      whole_text(*found).starts_with("# Written by stowage TEST for llama-3.2-1b on a generic 1.0 "
                                     "GiB card.\n# It does not fit: "));
}

TEST_CASE("a single GPU offloads its optimizer by DeepSpeed, and that is counted") {
  ExportQuestion question = small_llama(ExportForm::deepspeed);
  question.step.model.options.precision = Precision::bf16;
  question.step.wishes.optimizer = "adamw";
  question.step.wishes.parallel = {.zero = 2, .offload = Offload::optimizer};
  const auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK(found->body.find("\"train_batch_size\": 2,") != std::string::npos);
  CHECK(found->body.find("\"stage\": 2,") != std::string::npos);
  CHECK(found->body.find("\"offload_optimizer\"") != std::string::npos);
  CHECK(found->uncounted ==
        std::vector<std::string>{
            "what DeepSpeed takes before the first step",
            "what NCCL takes for a group of one GPU, which DeepSpeed opens too"});
  const auto& check = std::get<CheckAnswer>(found->sizes);
  CHECK(check.report.host_buffers.size() == 5);
}

TEST_CASE("settings that a program does not have are refused") {
  const std::string place = "<question>: error: ";
  CHECK(exported_body(sharded_llama(ExportForm::deepspeed, 0, true)) ==
        place +
            "`fsdp` is PyTorch's way to shard, and not DeepSpeed's\n"
            "  `zero` 3 shards parameters too; `to` fsdp writes FSDP's settings\n");
  CHECK(exported_body(sharded_llama(ExportForm::megatron, 0, true)) ==
        place +
            "`fsdp` is PyTorch's way to shard, and Megatron has its own\n"
            "  `zero` 3 is exported as Megatron's FSDP\n");
  CHECK(exported_body(sharded_llama(ExportForm::torchtitan, 2, false)) ==
        place +
            "`zero` is DeepSpeed's: torchtitan shards with FSDP\n"
            "  `fsdp` is torchtitan's way\n");
  CHECK(exported_body(sharded_llama(ExportForm::fsdp, 2, false)) ==
        place + "FSDP is not asked for\n  `fsdp` asks for it\n");
  ExportQuestion root = sharded_llama(ExportForm::axolotl, 0, true);
  root.step.wishes.parallel.fsdp.by_block = false;
  CHECK(exported_body(root) == place +
                                   "`fsdp` wrap=root: axolotl's auto_wrap_policy wraps blocks\n"
                                   "  `to` accelerate has NO_WRAP\n");
  ExportQuestion mixed = small_llama(ExportForm::trl);
  mixed.step.model.options.precision = Precision::mixed_bf16;
  CHECK(exported_body(mixed) ==
        place +
            "`precision` mixed-bf16: TRL keeps no float32 copies of 16-bit parameters on its "
            "own\n"
            "  `precision` amp-bf16 is its mixed precision; `zero` and `fsdp` keep such "
            "copies\n");
  ExportQuestion autocast = sharded_llama(ExportForm::accelerate, 0, true);
  autocast.step.model.options.precision = Precision::amp_bf16;
  CHECK(exported_body(autocast) ==
        place +
            "`precision` amp-bf16: accelerate gives FSDP 16-bit parameters wherever it mixes "
            "precisions\n"
            "  `precision` mixed-bf16 is that\n");
  ExportQuestion inference = small_llama(ExportForm::deepspeed);
  inference.step.wishes.mode = Mode::inference;
  CHECK(exported_body(inference) ==
        place + "DeepSpeed's settings are of training, and this is an inference\n");
  ExportQuestion ideal = small_llama(ExportForm::deepspeed);
  ideal.step.process.runtime = Runtime::ideal;
  CHECK(exported_body(ideal) == place + "`runtime` ideal: DeepSpeed runs PyTorch\n");
  CHECK(exported_body(small_llama(ExportForm::llama_cpp)) ==
        place + "llama.cpp serves: how long is a context?\n  `context_length` N says it\n");
  CHECK(exported_body(small_llama(ExportForm::json)) ==
        place +
            "json is written of a plan, and 'llama-3.2-1b' is none\n"
            "  stowage plan makes one\n");
}

}  // namespace stowage
