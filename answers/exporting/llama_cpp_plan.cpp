// Names of tensors: gguf-py/gguf/tensor_mapping.py and constants.py of gguf 0.19.0, held against
// them by tests/engines/check_exports.py. Overrides: parse_tensor_buffer_overrides of llama.cpp's
// common/arg.cpp, which parts them by commas and searches each name for the pattern.
#include "answers/exporting/llama_cpp_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/exporting/llama_cpp_flags.hpp"
#include "estimator/model/repeated_blocks.hpp"
#include "planner/export/layer_placement.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

/// The name of a layer's weight within a block by the end of its path, in configurations of
/// transformers or in descriptions of ours. The first row that fits counts.
struct GgufName {
  std::string_view path;
  std::vector<std::string_view> names;  ///< several: GGUF parts the weight, by its release
};

const std::vector<GgufName>& names_in_block() {
  static const std::vector<GgufName> names{
      {"q_proj", {"attn_q"}},
      {"q.proj", {"attn_q"}},
      {"k_proj", {"attn_k"}},
      {"k.proj", {"attn_k"}},
      {"v_proj", {"attn_v"}},
      {"v.proj", {"attn_v"}},
      {"o_proj", {"attn_output"}},
      {"out_proj", {"attn_output"}},
      {"self_attn.dense", {"attn_output"}},
      {"attention.dense", {"attn_output"}},
      {"self_attention.dense", {"attn_output"}},
      {"qkv_proj", {"attn_qkv"}},
      {"c_attn", {"attn_qkv"}},
      {"query_key_value", {"attn_qkv"}},
      {"mlp.gate", {"ffn_gate_inp"}},
      {"mlp.router", {"ffn_gate_inp"}},
      {"shared_expert.gate_proj", {"ffn_gate_shexp"}},
      {"shared_expert.up_proj", {"ffn_up_shexp"}},
      {"shared_expert.down_proj", {"ffn_down_shexp"}},
      {"shared_expert_gate", {"ffn_gate_inp_shexp"}},
      {"gate_proj", {"ffn_gate"}},
      {"gate_up_proj", {"ffn_up"}},
      {"up_proj", {"ffn_up"}},
      {"fc1", {"ffn_up"}},
      {"c_fc", {"ffn_up"}},
      {"mlp_c_fc", {"ffn_up"}},
      {"dense_h_to_4h", {"ffn_up"}},
      {"down_proj", {"ffn_down"}},
      {"fc2", {"ffn_down"}},
      {"mlp.c_proj", {"ffn_down"}},
      {"mlp_c_proj", {"ffn_down"}},
      {"dense_4h_to_h", {"ffn_down"}},
      {"c_proj", {"attn_output"}},
      {"sinks", {"attn_sinks"}},
  };
  return names;
}

/// The same of the weights of all experts together.
const std::vector<GgufName>& names_of_experts() {
  static const std::vector<GgufName> names{
      {"gate_up_proj", {"ffn_gate_exps", "ffn_gate_up_exps", "ffn_up_exps"}},
      {"down_proj", {"ffn_down_exps"}},
      {"experts", {"ffn_down_exps", "ffn_gate_exps", "ffn_gate_up_exps", "ffn_up_exps"}},
  };
  return names;
}

bool ends_as(std::string_view path, std::string_view end) {
  if (!path.ends_with(end)) return false;
  return path.size() == end.size() || path[path.size() - end.size() - 1] == '.';
}

/// null: none is known.
const GgufName* gguf_name(std::string_view path, bool of_experts) {
  constexpr std::string_view bias = "_bias";  // a parameter of its own, in the same tensor's name
  if (path.ends_with(bias)) {
    path.remove_suffix(bias.size());
    of_experts = true;
  }
  const std::vector<GgufName>& names = of_experts ? names_of_experts() : names_in_block();
  const auto found =
      std::ranges::find_if(names, [&](const GgufName& row) { return ends_as(path, row.path); });
  return found == names.end() ? nullptr : &*found;
}

/// Where the weights of a layer lie.
struct LayerBytes {
  Bytes on_gpu, on_host;
  bool is_table = false;    ///< an embedding reads it by rows
  bool is_stacked = false;  ///< one weight for each expert: three axes

  [[nodiscard]] bool is_on_host() const { return on_host > on_gpu; }
};

class LlamaPlacement {
 public:
  explicit LlamaPlacement(const Plan& plan) : plan_(plan), resident_(resident_throughout(plan)) {}

  Result<PlanText> text(std::string_view cache_type) {
    gather();
    if (blocks_.empty()) return failure("the model has no repeated blocks, which llama.cpp counts");
    place_caches();
    if (auto mistake = place_weights()) return failure(*std::move(mistake));
    const Bytes peak = fit();
    FlagList flags("LLAMA_ARGS");
    flags.add("ngl", static_cast<std::int64_t>(blocks_.size() - whole_blocks_ + 1));
    const std::string overridden = overrides();
    if (!overridden.empty()) flags.add("override-tensor", fmt::format("'{}'", overridden));
    if (no_cache_on_gpu_) flags.add("no-kv-offload");
    add_context(*plan_.inputs.serving, cache_type, flags);
    PlanText text{.body = flags.text(), .remarks = std::move(remarks_)};
    text.gpu_peak = peak;
    return text;
  }

 private:
  [[nodiscard]] const StepGraph& graph() const { return *plan_.step.graph; }
  [[nodiscard]] std::string_view layer_of(const Storage& storage) const {
    return graph().layer(storage.op);
  }

  void gather() {
    for (std::size_t i = 0; i < graph().storages.size(); ++i) {
      const Storage& storage = graph().storages[i];
      const std::string_view path = layer_of(storage);
      const std::string_view block = block_of(path);
      if (storage.storage_class == StorageClass::kv_cache) {
        bool& on_gpu = caches_.try_emplace(block, true).first->second;
        on_gpu = on_gpu && resident_[i];
      } else if (is_weight(storage) && storage.op.valid()) {
        LayerBytes& layer = layers_[path];
        (resident_[i] ? layer.on_gpu : layer.on_host) += plan_.bytes(StorageId::of(i));
        if (!block.empty()) blocks_.insert(block_number(block));
      }
    }
    note_readers();
  }

  void note_readers() {
    for (const KernelNode& node : graph().nodes) {
      for (const TensorView& view : node.reads) {
        const Storage& storage = graph().storage(view.storage);
        if (!is_weight(storage) || !storage.op.valid()) continue;
        LayerBytes& layer = layers_.at(layer_of(storage));
        layer.is_table = layer.is_table || node.kernel == Kernel::embedding_forward;
        layer.is_stacked = layer.is_stacked || view.shape.size() > 2;
      }
    }
  }

  // llama.cpp has a block's cache where -ngl has the block, or all caches on the host.
  void place_caches() {
    std::set<std::int64_t> on_host;
    for (const auto& [block, on_gpu] : caches_) {
      if (!on_gpu && !block.empty()) on_host.insert(block_number(block));
    }
    if (on_host.empty()) return;
    if (on_host.size() == caches_.size()) {
      no_cache_on_gpu_ = true;
      return;
    }
    const bool are_first = *on_host.rbegin() + 1 == std::ssize(on_host);
    if (are_first) {
      whole_blocks_ = on_host.size();
      return;
    }
    remarks_.push_back(fmt::format(
        "the caches of {} blocks that the plan has on the host: these are not the first ones, and "
        "llama.cpp has them on the GPU",
        on_host.size()));
    set_resident(true, [&](const Storage& storage) {
      return storage.storage_class == StorageClass::kv_cache;
    });
  }

  std::optional<Diagnostic> place_weights() {
    for (const auto& [path, layer] : layers_) {
      const std::string_view block = block_of(path);
      if (block.empty()) {
        place_outside(path, layer);
        continue;
      }
      if (block_number(block) < static_cast<std::int64_t>(whole_blocks_)) {
        move_layer(path, false);
        continue;
      }
      const GgufName* name = gguf_name(path, layer.is_stacked);
      if (!layer.is_on_host() || is_norm(path)) {
        move_layer(path, true);
        continue;
      }
      if (name == nullptr) {
        return Diagnostic{.message = fmt::format("GGUF has no name that is known for '{}', which "
                                                 "the plan has on the host",
                                                 path)};
      }
      override_layer(path);
    }
    return std::nullopt;
  }

  /// Moves weights of the last blocks to the host until what is live without the plan's own copies
  /// keeps within its budget. Gives what is live then.
  Bytes fit() {
    Bytes peak = peak_without_plan(plan_, resident_);
    std::vector<std::string_view> movable;  // those of the last blocks at the end
    for (const auto& [path, layer] : layers_) {
      const std::string_view block = block_of(path);
      const bool stays = !layer.is_on_host() && layer.on_gpu > Bytes() &&
                         gguf_name(path, layer.is_stacked) != nullptr;
      if (block.empty() || !stays || is_norm(path)) continue;
      if (block_number(block) >= static_cast<std::int64_t>(whole_blocks_)) movable.push_back(path);
    }
    std::ranges::stable_sort(movable, {},
                             [](std::string_view path) { return block_number(block_of(path)); });
    std::size_t moved = 0;
    while (plan_.inputs.budget.excess(peak) > Bytes() && !movable.empty()) {
      Bytes excess = plan_.inputs.budget.excess(peak);
      for (; excess > Bytes() && !movable.empty(); movable.pop_back(), ++moved) {
        const std::string_view path = movable.back();
        override_layer(path);
        excess -= layers_.at(path).on_gpu;
      }
      peak = peak_without_plan(plan_, resident_);
    }
    if (moved > 0) {
      remarks_.push_back(
          fmt::format("{} layers' weights lie on the host that the plan has on the "
                      "GPU: llama.cpp makes none of the plan's copies",
                      moved));
    }
    return peak;
  }

  /// Precondition: GGUF has a name for it.
  void override_layer(std::string_view path) {
    for (const std::string_view name : gguf_name(path, layers_.at(path).is_stacked)->names) {
      by_name_[name].insert(block_number(block_of(path)));
    }
    move_layer(path, false);
  }

  static bool is_norm(std::string_view path) {
    const std::string_view last = path.substr(path.rfind('.') + 1);
    return last.find("norm") != std::string_view::npos || last.starts_with("ln_");
  }

  void place_outside(std::string_view path, const LayerBytes& layer) {
    if (layer.is_table) {
      const bool is_positions =
          ends_as(path, "wpe") || path.find("position") != std::string_view::npos;
      move_layer(path, is_positions);
      return;
    }
    if (layer.is_on_host() && ends_as(path, "lm_head")) {
      has_output_on_host_ = true;
      move_layer(path, false);
      return;
    }
    move_layer(path, true);
  }

  void move_layer(std::string_view path, bool on_gpu) {
    set_resident(on_gpu, [&](const Storage& storage) {
      return is_weight(storage) && storage.op.valid() && layer_of(storage) == path;
    });
  }

  template <typename Matches>
  void set_resident(bool on_gpu, const Matches& matches) {
    for (std::size_t i = 0; i < resident_.size(); ++i) {
      if (matches(graph().storages[i])) resident_[i] = on_gpu;
    }
  }

  /// Names that lie on the host in the same blocks stand together.
  [[nodiscard]] std::string overrides() const {
    std::map<std::set<std::int64_t>, std::vector<std::string_view>> by_blocks;
    for (const auto& [name, blocks] : by_name_) by_blocks[blocks].push_back(name);
    std::vector<std::string> patterns;
    for (const auto& [blocks, names] : by_blocks) {
      const std::string numbers = blocks.size() == blocks_.size()
                                      ? std::string("[0-9]+")
                                      : fmt::format("({})", fmt::join(blocks, "|"));
      patterns.push_back(fmt::format(R"(^blk\.{}\.({})\.=CPU)", numbers, fmt::join(names, "|")));
    }
    if (has_output_on_host_) patterns.emplace_back(R"(^output\.weight=CPU)");
    return fmt::format("{}", fmt::join(patterns, ","));
  }

  const Plan& plan_;
  std::vector<bool> resident_;  // by storage: as the plan has it, then as llama.cpp will
  std::map<std::string_view, LayerBytes> layers_;
  std::map<std::string_view, bool> caches_;  // by block: on the GPU
  std::set<std::int64_t> blocks_;
  std::size_t whole_blocks_ = 0;  // on the host, with their caches, the first ones
  bool no_cache_on_gpu_ = false, has_output_on_host_ = false;
  std::map<std::string_view, std::set<std::int64_t>> by_name_;  // blocks where it is on the host
  std::vector<std::string> remarks_;
};

}  // namespace

Result<PlanText> llama_cpp_plan(const Plan& plan) {
  if (std::string why = two_sides_mismatch(plan.machine); !why.empty()) return failure(why);
  const auto& serving = plan.inputs.serving;
  if (!serving) {
    return failure("llama.cpp serves, and this plan is of one step without a cache",
                   "`context_length` N of stowage plan makes a plan of serving");
  }
  const auto type = ggml_cache_type(serving->format, plan.document.precision);
  if (!type) return tl::unexpected(type.error());
  return LlamaPlacement(plan).text(*type);
}

}  // namespace stowage
