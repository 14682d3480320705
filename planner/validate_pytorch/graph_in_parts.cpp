#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "estimator/base/data_type.hpp"
#include "estimator/rewrite/renumber.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "planner/validate_pytorch/hooked_graph.hpp"

namespace stowage {

namespace {

/// A result of a part, and the result of the whole batch that it becomes a share of.
struct SharedResult {
  StorageId of_part, whole;
  TensorView view;  ///< of the part's
};

class RunInParts {
 public:
  RunInParts(StepGraph step, std::int64_t parts)
      : step_(std::move(step)), parts_(parts), once_(std::exchange(step_.nodes, {})) {}

  StepGraph run() && {
    const std::size_t old = step_.storages.size();
    add_wholes(old);
    share_.assign(step_.storages.size(), Affine(0));
    for (TensorView& input : step_.inputs) grow(input);
    for (std::int64_t part = 0; part < parts_; ++part) add_part(part, old);
    const NodeId end = NodeId::of(step_.nodes.size() - 1);
    for (const SharedResult& result : results_) {
      step_.script_holds.set(result.whole, {.replaced_after = end});
      if (result.of_part != step_.output.storage) continue;
      Shape shape = step_.output.shape;
      shape.front() = shape.front() * Affine(parts_);
      step_.output = contiguous_view(result.whole, std::move(shape), step_.output.type);
    }
    step_.micro_batch = {};
    renumber_convolutions(step_);
    return std::move(step_);
  }

 private:
  [[nodiscard]] bool is_transient(std::size_t s) const {
    return step_.storages[s].persistence == Persistence::transient;
  }

  void add_wholes(std::size_t old) {
    for (std::size_t s = 0; s < old; ++s) {
      const StorageId id = StorageId::of(s);
      const bool is_output = id == step_.output.storage;
      if (!is_transient(s) || (!is_output && !step_.script_holds.of(id).outlives_step())) continue;
      const TensorView view = is_output
                                  ? step_.output
                                  : contiguous_view(id, {step_.storages[s].bytes}, DataType::uint8);
      Storage whole = step_.storages[s];
      whole.bytes = element_count(view.shape) * Affine(element_size(view.type) * parts_);
      step_.storages.push_back(std::move(whole));
      results_.push_back({id, StorageId::of(step_.storages.size() - 1), view});
      step_.script_holds.set(id, {});
    }
  }

  /// The input of the whole batch is there from the begin.
  void grow(TensorView& input) {
    if (std::ranges::all_of(input.shape, &Affine::is_constant)) return;
    input.shape.front() = input.shape.front() * Affine(parts_);
    Affine& share = share_[input.storage.index()];
    if (share != Affine(0)) return;  // one tensor for two inputs
    Storage& storage = step_.storages[input.storage.index()];
    share = storage.bytes;
    storage.bytes = storage.bytes * Affine(parts_);
  }

  void add_part(std::int64_t part, std::size_t old) {
    std::vector<StorageId> own(old);
    for (std::size_t s = 0; s < old; ++s) {
      own[s] = StorageId::of(s);
      const bool is_input = share_[s] != Affine(0);
      if (part == 0 || is_input || !is_transient(s)) continue;
      step_.storages.push_back(Storage(step_.storages[s]));
      own[s] = StorageId::of(step_.storages.size() - 1);
    }
    for (KernelNode node : once_) {
      for (auto* views : {&node.reads, &node.writes}) {
        for (TensorView& view : *views) {
          const std::int64_t elements =
              share_[view.storage.index()].slope / element_size(view.type);
          view.offset = view.offset + Affine(0, elements * part);
          view.storage = own[view.storage.index()];
        }
      }
      for (auto* ids : {&node.temporaries, &node.holds}) {
        for (StorageId& id : *ids) id = own[id.index()];
      }
      step_.nodes.push_back(std::move(node));
    }
    for (const SharedResult& result : results_) {
      TensorView from = result.view;
      from.storage = own[result.of_part.index()];
      step_.nodes.push_back({.name = "a part's copy",
                             .kernel = Kernel::copy,
                             .phase = Phase::forward,
                             .op = step_.storage(result.of_part).op,
                             .reads = {from},
                             .writes = {contiguous_view(result.whole, from.shape, from.type)}});
    }
    // All of a part's results are let go together.
    for (const SharedResult& result : results_) {
      step_.nodes.back().holds.push_back(own[result.of_part.index()]);
    }
  }

  StepGraph step_;
  std::int64_t parts_;
  std::vector<KernelNode> once_;
  std::vector<Affine> share_;  // by storage: of an input that follows the batch, a part's bytes
  std::vector<SharedResult> results_;
};

}  // namespace

StepGraph graph_in_parts(StepGraph step, std::int64_t parts) {
  return RunInParts(std::move(step), parts).run();
}

}  // namespace stowage
