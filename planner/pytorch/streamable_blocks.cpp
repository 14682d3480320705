#include "planner/pytorch/streamable_blocks.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "planner/pytorch/module_regions.hpp"

namespace stowage {

namespace {

constexpr int in_no_block = -1, not_streamed = -2;

bool runs_forward(const KernelNode& node) {
  return node.phase == Phase::forward || node.phase == Phase::loss;
}

class StreamableBlocks {
 public:
  StreamableBlocks(const StepDocument& document, const StepGraph& step)
      : document_(document),
        step_(step),
        owner_(step.storages.size(), in_no_block),
        reader_(step.storages.size(), in_no_block) {}

  std::vector<StreamedBlock> run() && {
    for (std::size_t i = 0; i < owner_.size(); ++i) {
      if (!is_frozen(step_.storages[i])) owner_[i] = not_streamed;
    }
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) take(NodeId::of(n));
    std::vector<std::int64_t> all(blocks_.size(), 0), streamed(blocks_.size(), 0);
    for (std::size_t i = 0; i < owner_.size(); ++i) {
      const std::int64_t bytes = step_.storages[i].bytes.constant;
      if (reader_[i] >= 0) all[static_cast<std::size_t>(reader_[i])] += bytes;
      if (owner_[i] < 0) continue;
      const auto owner = static_cast<std::size_t>(owner_[i]);
      streamed[owner] += bytes;
      blocks_[owner].parameters.push_back(StorageId::of(i));
    }
    std::vector<StreamedBlock> found;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const bool is_worthwhile = streamed[b] > 0 && 2 * streamed[b] >= all[b];
      if (runs_once_[b] && is_worthwhile) found.push_back(std::move(blocks_[b]));
    }
    std::ranges::sort(found, {}, &StreamedBlock::first);
    return found;
  }

 private:
  [[nodiscard]] bool is_frozen(const Storage& storage) const {
    const ParameterId id = storage.parameter;
    if (storage.storage_class != StorageClass::parameter || !id.valid()) return false;
    if (!storage.bytes.is_constant() || storage.carries_over) return false;
    if (id.index() < step_.gradients.size() && step_.gradients[id.index()].storage.valid()) {
      return false;
    }
    const bool trains = step_.settings.mode == Mode::train;
    return !trains || (id.index() < document_.parameters.size() &&
                       !document_.parameters[id.index()].trainable);
  }

  void take(NodeId id) {
    const KernelNode& node = step_.node(id);
    const int block = runs_forward(node) ? block_at(id) : in_no_block;
    for (const TensorView& view : node.writes) owner_[view.storage.index()] = not_streamed;
    const bool is_recurrent = kernel_name(node).find("rnn") != std::string_view::npos;
    for (const TensorView& view : node.reads) {
      if (is_recurrent || !is_floating_point(view.type))
        owner_[view.storage.index()] = not_streamed;
      touch(view.storage, node.phase, block);
    }
    for (const StorageId held : node.holds) touch(held, node.phase, block);
  }

  void touch(StorageId storage, Phase phase, int block) {
    const bool is_parameter = step_.storage(storage).storage_class == StorageClass::parameter;
    int& reader = reader_[storage.index()];
    if (is_parameter && reader == in_no_block) reader = block;
    int& owner = owner_[storage.index()];
    if (owner == not_streamed || phase == Phase::backward) return;
    const bool is_another = owner != in_no_block && owner != block;
    owner = phase == Phase::update || block == in_no_block || is_another ? not_streamed : block;
  }

  /// The block that this forward kernel belongs to.
  int block_at(NodeId id) {
    const std::string_view module = numbered_module(step_.layer(step_.node(id).op));
    if (module.empty()) {
      open_ = in_no_block;
      return open_;
    }
    if (open_ == in_no_block || blocks_[static_cast<std::size_t>(open_)].module != module) {
      const auto [at, is_new] =
          by_name_.try_emplace(std::string(module), static_cast<int>(blocks_.size()));
      open_ = at->second;
      if (is_new) {
        blocks_.push_back({.module = at->first, .first = id, .last = id, .parameters = {}});
        runs_once_.push_back(true);
      } else {
        runs_once_[static_cast<std::size_t>(open_)] = false;
      }
    }
    blocks_[static_cast<std::size_t>(open_)].last = id;
    return open_;
  }

  const StepDocument& document_;
  const StepGraph& step_;
  std::vector<int> owner_;   // by storage: the block that alone reads it in forward
  std::vector<int> reader_;  // by parameter's storage: the first block that reads it
  std::vector<StreamedBlock> blocks_;
  std::vector<bool> runs_once_;  // by block
  std::map<std::string, int> by_name_;
  int open_ = in_no_block;
};

}  // namespace

std::vector<StreamedBlock> streamable_blocks(const StepDocument& document, const StepGraph& step) {
  return StreamableBlocks(document, step).run();
}

bool has_quantised_weights(const StepGraph& step) {
  return std::ranges::any_of(step.nodes, [&](const KernelNode& node) {
    return std::ranges::any_of(node.reads, [&](const TensorView& view) {
      return step.storage(view.storage).storage_class == StorageClass::parameter &&
             !is_floating_point(view.type);
    });
  });
}

std::vector<StreamedBlock> spread_blocks(const std::vector<StreamedBlock>& blocks,
                                         std::size_t count) {
  std::vector<StreamedBlock> chosen;
  chosen.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    chosen.push_back(blocks[(2 * i + 1) * blocks.size() / (2 * count)]);
  }
  return chosen;
}

}  // namespace stowage
