// Options and what they do: common/arg.cpp, common/common.h and src/llama-model.cpp of llama.cpp as
// llama-cpp-python 0.3.36 ships it.
//
// Layers are counted from the end: with -ngl N the output layer and the last N - 1 blocks lie on
// the GPU, with the cache of each (llama_model::load_tensors, i_gpu_start). The token embedding
// always lies on the host; where the output layer shares its weight, llama.cpp keeps a second copy
// on the GPU, which is the one that is counted. --n-cpu-moe N keeps the experts of the first N
// blocks on the host.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "answers/exporting/engine_files.hpp"
#include "answers/exporting/llama_cpp_flags.hpp"
#include "answers/question/question_error.hpp"
#include "estimator/model/repeated_blocks.hpp"

namespace stowage {

namespace {

/// The bytes of a block that can lie on the host.
struct BlockBytes {
  Bytes weights, experts, cache;  ///< `experts` are among the weights

  [[nodiscard]] Bytes all() const { return weights + cache; }
};

/// What of a served model can lie on the host instead.
struct MovableBytes {
  std::vector<BlockBytes> blocks;  ///< in their order
  Bytes embeddings;                ///< read by row alone
  Bytes output;                    ///< all other weights outside of the blocks

  [[nodiscard]] bool has_experts() const {
    return std::ranges::any_of(blocks, [](const BlockBytes& b) { return b.experts > Bytes(); });
  }
};

/// By storage: what kernels do with a weight.
struct WeightUse {
  bool by_row = false;      ///< an embedding reads it
  bool otherwise = false;   ///< another kernel does
  bool is_stacked = false;  ///< one weight for each expert: three axes
};

std::vector<WeightUse> weight_uses(const StepGraph& graph) {
  std::vector<WeightUse> uses(graph.storages.size());
  for (const KernelNode& node : graph.nodes) {
    for (const TensorView& view : node.reads) {
      WeightUse& use = uses[view.storage.index()];
      const bool by_row = node.kernel == Kernel::embedding_forward;
      use.by_row = use.by_row || by_row;
      use.otherwise = use.otherwise || !by_row;
      use.is_stacked = use.is_stacked || view.shape.size() > 2;
    }
  }
  return uses;
}

MovableBytes movable_bytes(const CheckedPass& pass) {
  const StepGraph& graph = *pass.report.footprint.graph;
  const std::vector<WeightUse> uses = weight_uses(graph);
  std::map<std::int64_t, BlockBytes> blocks;
  MovableBytes found;
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const Storage& storage = graph.storages[i];
    const bool is_cache = storage.storage_class == StorageClass::kv_cache;
    if (!is_weight(storage) && !is_cache) continue;
    const Bytes bytes(storage.bytes.at(pass.batch));
    const std::string_view block = block_of(storage.name);
    if (block.empty()) {
      if (!is_weight(storage)) continue;
      (uses[i].by_row && !uses[i].otherwise ? found.embeddings : found.output) += bytes;
      continue;
    }
    BlockBytes& own = blocks[block_number(block)];
    (is_cache ? own.cache : own.weights) += bytes;
    if (is_weight(storage) && uses[i].is_stacked) own.experts += bytes;
  }
  for (const auto& [number, bytes] : blocks) found.blocks.push_back(bytes);
  return found;
}

/// What lies on the host: the first blocks, the experts of the first ones, the output layer.
struct LayersOnHost {
  std::int64_t blocks = 0;   ///< whole, on the host
  std::int64_t experts = 0;  ///< blocks whose experts alone are on the host
  bool output = false;       ///< the output layer, too
};

Bytes bytes_on_host(const MovableBytes& movable, const LayersOnHost& placement) {
  Bytes sum = movable.embeddings;
  for (std::int64_t i = 0; i < std::ssize(movable.blocks); ++i) {
    const BlockBytes& block = movable.blocks[static_cast<std::size_t>(i)];
    if (i < placement.blocks) {
      sum += block.all();
    } else if (i < placement.experts) {
      sum += block.experts;
    }
  }
  return placement.output ? sum + movable.output : sum;
}

class LayerPlacer {
 public:
  explicit LayerPlacer(const ServingAnswer& sizes)
      : sizes_(sizes),
        prefill_(movable_bytes(sizes.prefill)),
        decode_(movable_bytes(sizes.decode)) {}

  [[nodiscard]] const MovableBytes& movable() const { return decode_; }

  /// What the process takes of the card in the larger pass.
  [[nodiscard]] Bytes needed(const LayersOnHost& placement) const {
    return std::max(sizes_.prefill.report.device_bytes - bytes_on_host(prefill_, placement),
                    sizes_.decode.report.device_bytes - bytes_on_host(decode_, placement));
  }
  [[nodiscard]] bool fits(const LayersOnHost& placement) const {
    return needed(placement) <= sizes_.larger().report.available_bytes;
  }

  /// The first that fits of: everything on the GPU; the experts of as few blocks as possible on the
  /// host; as few whole blocks; the output layer, too.
  [[nodiscard]] LayersOnHost place() const {
    const auto count = static_cast<std::int64_t>(decode_.blocks.size());
    if (decode_.has_experts()) {
      for (std::int64_t n = 0; n <= count; ++n) {
        if (fits({.experts = n})) return {.experts = n};
      }
    }
    const std::int64_t experts = decode_.has_experts() ? count : 0;
    for (std::int64_t n = 0; n <= count; ++n) {
      if (fits({.blocks = n, .experts = experts})) return {.blocks = n, .experts = experts};
    }
    return {.blocks = count, .experts = experts, .output = true};
  }

 private:
  const ServingAnswer& sizes_;
  MovableBytes prefill_, decode_;
};

std::vector<std::string> llama_uncounted(const ServingAnswer& sizes, const StepQuestion& question) {
  std::vector<std::string> lines{
      "llama.cpp's own buffers for a graph: counted are the activations of eager PyTorch",
      "its CUDA context and kernels: counted are PyTorch's"};
  if (question.model.options.fine_tuning.base) {
    lines.push_back(
        fmt::format("GGUF's own quantised formats (Q4_0 takes 18 bytes for 32 values, Q4_K 144 for "
                    "256): counted "
                    "is `base` {}",
                    *question.model.options.fine_tuning.base));
  }
  if (is_packed(sizes.serving.format) || sizes.serving.format == CacheFormat::int8) {
    lines.emplace_back(
        "the scales of q8_0 and q4_0, 2 bytes for each 32 values: counted are the scales of "
        "`kv_dtype`");
  }
  if (sizes.serving.cache != CacheKind::paged) {
    lines.push_back(fmt::format(
        "llama.cpp allocates its cache once and writes it in place: counted is a {} cache",
        to_string(sizes.serving.cache)));
  }
  return lines;
}

std::vector<std::string> llama_unsaid(const ServingAnswer& sizes, const StepQuestion& question) {
  const FineTuningTexts& tuning = question.model.options.fine_tuning;
  std::vector<std::string> lines{
      fmt::format("`precision` {}: the format of the GGUF file", to_string(sizes.step.precision))};
  if (tuning.base) {
    lines.push_back(
        fmt::format("`base` {}: llama-quantize makes a file of that size", *tuning.base));
  }
  if (tuning.lora) {
    lines.push_back(fmt::format("`lora` {}: a GGUF file of the adapter", *tuning.lora));
  }
  if (tuning.layer_dtype) {
    lines.push_back(
        fmt::format("`layer_dtype` {}: the GGUF file's own types", *tuning.layer_dtype));
  }
  for (const auto& [name, value] : question.model.options.arguments) {
    lines.push_back(fmt::format("`set` {}={}: the model's own configuration", name, value));
  }
  if (question.process.allocator) {
    lines.emplace_back("`alloc_conf`: llama.cpp has no such allocator");
  }
  return lines;
}

}  // namespace

Result<PlacedModel> llama_cpp_file(const ServingAnswer& sizes, const StepQuestion& question) {
  if (sizes.prefill.encoded > 0 || sizes.decode.encoded > 0) {
    return failure(question_error("an encoder-decoder is not exported to llama.cpp"));
  }
  if (question.wishes.parallel.gpus > 1) {
    return failure(question_error("`gpus`: what is exported to llama.cpp is for one GPU"));
  }
  const auto type = ggml_cache_type(sizes.serving.format, sizes.step.precision);
  if (!type) return tl::unexpected(type.error());
  const LayerPlacer placer(sizes);
  const auto count = static_cast<std::int64_t>(placer.movable().blocks.size());
  if (count == 0) return failure("the model has no repeated blocks, which llama.cpp counts");
  const LayersOnHost placement = placer.place();
  const Bytes needed = placer.needed(placement);
  const Bytes available = sizes.larger().report.available_bytes;

  FlagList flags("LLAMA_ARGS");
  flags.add("ngl", placement.output ? 0 : count - placement.blocks + 1);
  if (placement.experts > placement.blocks) flags.add("n-cpu-moe", placement.experts);
  add_context(sizes.serving, *type, flags);

  PlacedModel placed{.verdict = {.fits = needed <= available,
                                 .device_bytes = needed,
                                 .available_bytes = available,
                                 .headroom_bytes = available - needed},
                     .layers = count,
                     .layers_on_gpu = count - placement.blocks,
                     .layers_with_experts_on_host =
                         std::max(placement.experts - placement.blocks, std::int64_t{0})};
  placed.file.body = flags.text();
  placed.file.unsaid = llama_unsaid(sizes, question);
  placed.file.uncounted = llama_uncounted(sizes, question);
  placed.file.remarks = {fmt::format(
      "on the GPU: {} of {} blocks{}{}; on the host: the token embedding ({}){}",
      placed.layers_on_gpu, count, placement.output ? "" : " and the output layer",
      placed.layers_with_experts_on_host > 0
          ? fmt::format(", the first {} of them without their experts",
                        placed.layers_with_experts_on_host)
          : "",
      format_bytes(placer.movable().embeddings), placement.output ? " and the output layer" : "")};
  return placed;
}

}  // namespace stowage
