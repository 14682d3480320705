#include "bench/accuracy/torchtune.hpp"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "bench/accuracy/csv.hpp"

namespace stowage::accuracy {

namespace {

// torchtune's model builders; layers are called as transformers' here (output_proj is o_proj
// there).
const std::map<std::string, std::string> llama_3_2_3b{
    {"hidden", "3072"}, {"layers", "28"}, {"heads", "24"},     {"kv_heads", "8"},   {"head", "128"},
    {"inner", "8192"},  {"tied", "true"}, {"vocab", "128256"}, {"base", "500000.0"}};
constexpr const char* attention = "q_proj+v_proj+o_proj";
constexpr const char* attention_and_mlp = "q_proj+k_proj+v_proj+o_proj+gate_proj+up_proj+down_proj";

// CEWithChunkedOutputLoss's default, with the loss compiled as `compile: True` has it.
constexpr const char* chunks = "8,compiled";

// Of the recipe's configuration (recipes/configs): adapters in the model's format, AdamW fused.
void with_lora(Job& job, int rank, const char* targets) {
  job.fine_tuning.lora =
      fmt::format("r={},alpha={},dtype=bf16,targets={}", rank, 2 * rank, targets);
  job.optimizer = "adamw";
  job.implementation = OptimizerImplementation::fused;
}

// PagedAdamW8bit in backward: its state is CUDA's managed memory, which the allocator's figures do
// not have; what is left of it on the GPU is an update without state, parameter by parameter.
void with_paged_optimizer(Job& job) {
  job.optimizer = "sgd";
  job.implementation = OptimizerImplementation::for_loop;
  job.fine_tuning.optimizer_in_backward = "true";
}

FineTune llama_3_1_8b(const CsvRow& row) {
  FineTune tune{.lacking = "torch.compile of the layers"};
  tune.job = {.model = "llama-3-8b", .seq = 2048, .batch = 2, .precision = Precision::bf16};
  tune.job.gpu = row.at("hardware") == "1x RTX4090" ? "rtx-4090" : "rtx-a6000";
  tune.job.fine_tuning.chunked_loss = chunks;
  // The smaller card's runs are the recipes as they are; the larger one's keep activations.
  const bool small = tune.job.gpu == "rtx-4090";
  if (small) tune.job.fine_tuning.checkpoint = "all";
  const std::string& method = row.at("method");
  if (method == "full finetune") {
    with_paged_optimizer(tune.job);
    if (!small) {
      tune.job.fine_tuning.checkpoint = "all";
      tune.job.fine_tuning.optimizer_in_backward = {};
    }
  } else if (method == "LoRA") {
    with_lora(tune.job, 8, attention);
  } else if (method == "QLoRA") {
    with_lora(tune.job, 8, attention_and_mlp);
    tune.job.fine_tuning.base = "nf4";
  } else {
    throw std::runtime_error(fmt::format("torchtune_readme.csv: unknown method {}", method));
  }
  return tune;
}

// The second table adds one setting after the other; what it says of each is all that is recorded.
std::optional<FineTune> llama_3b(const CsvRow& row) {
  const std::string& method = row.at("method");
  if (method == "baseline full") return std::nullopt;  // rows of the data set's own lengths
  FineTune tune;
  tune.job = {.model = "llama-3-8b",
              .arguments = llama_3_2_3b,
              .seq = 4096,
              .gpu = "a100-sxm4-80gb",
              .batch = 2,
              .optimizer = "adamw",
              .precision = Precision::bf16};
  if (method == "+packed dataset") return tune;
  tune.lacking = "torch.compile of the layers";
  if (method == "+compile") return tune;
  tune.job.fine_tuning.chunked_loss = chunks;
  if (method == "+chunked cross entropy") return tune;
  tune.job.fine_tuning.checkpoint = "all";
  if (method == "+activation checkpointing") return tune;
  tune.job.implementation = OptimizerImplementation::for_loop;
  tune.job.fine_tuning.optimizer_in_backward = "true";
  if (method == "+optimizer in backward") return tune;
  tune.job.fine_tuning.offload_activations = "all";
  if (method == "+activation offloading") return tune;
  tune.job.optimizer = "adamw8bit";
  tune.job.implementation = OptimizerImplementation::fused;
  if (method == "+8-bit AdamW") return tune;
  tune.job.fine_tuning.optimizer_in_backward = {};
  with_lora(tune.job, 8, attention_and_mlp);
  if (method == "QLoRA") tune.job.fine_tuning.base = "nf4";
  if (method == "LoRA" || method == "QLoRA") return tune;
  throw std::runtime_error(fmt::format("torchtune_readme.csv: unknown method {}", method));
}

/// "18.9 GiB".
double gib_of(const CsvRow& row) {
  const std::string& text = row.at("peak_memory_per_gpu");
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos || text.substr(blank) != " GiB") {
    throw std::runtime_error(fmt::format("torchtune_readme.csv: {} is no number of GiB", text));
  }
  return std::stod(text.substr(0, blank));
}

}  // namespace

std::vector<FineTune> read_fine_tunes(const std::filesystem::path& folder) {
  std::vector<FineTune> tunes;
  for (const CsvRow& row : read_csv(folder / "torchtune_readme.csv")) {
    const std::string& hardware = row.at("hardware");
    if (hardware.starts_with("8x")) continue;
    const bool large = row.at("model") == "Llama 3.1 8B";
    std::optional<FineTune> tune = large ? std::optional(llama_3_1_8b(row)) : llama_3b(row);
    if (!tune) continue;
    tune->name = fmt::format("{}, {}, {}", row.at("model"), row.at("method"), hardware);
    tune->measured_gib = gib_of(row);
    tunes.push_back(*std::move(tune));
  }
  return tunes;
}

}  // namespace stowage::accuracy
