#include "planner/pytorch/module_regions.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace stowage {

std::string_view numbered_module(std::string_view path) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    const bool is_number = !part.empty() && std::ranges::all_of(part, [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0;
    });
    if (is_number) return path.substr(0, end);
    begin = end + 1;
  }
  return {};
}

namespace {

struct Block {
  std::string module;
  std::size_t first = 0, last = 0;  ///< forward nodes
  std::set<OperatorId> operators;
  std::set<StorageId> made;
  double seconds = 0;
  bool can_run_again = true;
};

class Blocks {
 public:
  Blocks(const SizedStep& step, const Rates& rates) : step_(step), rates_(rates) {}

  std::vector<ModuleRegion> run() && {
    for (std::size_t n = 0; n < graph().nodes.size(); ++n) {
      const KernelNode& node = graph().nodes[n];
      if (node.phase == Phase::forward || node.phase == Phase::loss) add(n, node);
    }
    std::vector<ModuleRegion> regions;
    for (const Block& block : blocks_) {
      if (!block.can_run_again) continue;
      if (auto region = region_of(block)) regions.push_back(*std::move(region));
    }
    return regions;
  }

 private:
  [[nodiscard]] const StepGraph& graph() const { return *step_.graph; }

  void add(std::size_t n, const KernelNode& node) {
    leave_out_written(node);
    const std::string_view name = numbered_module(graph().layer(node.op));
    if (name.empty()) {
      open_ = nullptr;
    } else {
      add_to_block(name, n, node);
    }
    for (const TensorView& view : node.writes) last_written_[view.storage] = NodeId::of(n);
  }

  void add_to_block(std::string_view name, std::size_t n, const KernelNode& node) {
    if (open_ == nullptr || open_->module != name) begin(name, n);
    Block& block = *open_;
    block.last = n;
    block.operators.insert(node.op);
    block.seconds += gpu_seconds(rates_, step_, NodeId::of(n));
    for (const TensorView& view : node.reads) {
      if (!persists(view.storage) && !block.made.contains(view.storage))
        given_[view.storage].insert(&block - blocks_.data());
    }
    for (const TensorView& view : node.writes) {
      const bool reads =
          std::ranges::find(node.reads, view.storage, &TensorView::storage) != node.reads.end();
      const bool was_there = reads || last_written_.contains(view.storage);
      if (!persists(view.storage) && was_there && !block.made.contains(view.storage))
        block.can_run_again = false;
      block.made.insert(view.storage);
    }
  }

  /// A second run would read what the node writes: blocks that were given it are left out.
  void leave_out_written(const KernelNode& node) {
    for (const TensorView& view : node.writes) {
      const auto found = given_.find(view.storage);
      if (found == given_.end()) continue;
      for (const std::ptrdiff_t block : found->second)
        blocks_[static_cast<std::size_t>(block)].can_run_again = false;
      given_.erase(found);
    }
  }

  /// A second run ends where its last tensor is saved, before a kernel would write to it (RReLU's
  /// noise). Running statistics are copies then.
  [[nodiscard]] bool is_written_after(const SavedTensor& saved) const {
    const auto found = last_written_.find(saved.storage);
    return saved.call && !persists(saved.storage) && found != last_written_.end() &&
           found->second > saved.call->packed_after;
  }

  [[nodiscard]] bool persists(StorageId id) const {
    return graph().storage(id).persistence == Persistence::persistent;
  }

  void begin(std::string_view name, std::size_t n) {
    const auto [at, is_new] = by_name_.try_emplace(std::string(name), blocks_.size());
    if (is_new) {
      blocks_.push_back({.module = at->first, .first = n});
    } else {
      blocks_[at->second].can_run_again = false;  // it ran before, and another one in between
    }
    open_ = &blocks_[at->second];
  }

  [[nodiscard]] std::optional<ModuleRegion> region_of(const Block& block) const {
    ModuleRegion result{.module = block.module, .seconds = block.seconds};
    std::set<StorageId> counted;
    for (const SavedTensor& saved : graph().saved) {
      if (block.operators.contains(saved.op) && is_written_after(saved)) return std::nullopt;
      if (!block.operators.contains(saved.op) || !block.made.contains(saved.storage)) continue;
      if (!persists(saved.storage) && counted.insert(saved.storage).second)
        result.saved += step_.bytes(saved.storage);
    }
    if (result.saved == Bytes()) return std::nullopt;
    result.region.operators.assign(block.operators.begin(), block.operators.end());
    return result;
  }

  const SizedStep& step_;
  const Rates& rates_;
  std::vector<Block> blocks_;
  std::map<std::string, std::size_t> by_name_;
  std::map<StorageId, NodeId> last_written_;  ///< in forward
  std::map<StorageId, std::set<std::ptrdiff_t>>
      given_;  ///< blocks that read it and did not make it
  Block* open_ = nullptr;
};

}  // namespace

std::vector<ModuleRegion> module_regions(const SizedStep& step, const Rates& rates) {
  return Blocks(step, rates).run();
}

}  // namespace stowage
