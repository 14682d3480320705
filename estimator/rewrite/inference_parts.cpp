#include "estimator/rewrite/inference_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "estimator/rewrite/host_copies.hpp"
#include "estimator/rewrite/renumber.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

bool grows_with_batch_alone(const Storage& storage) {
  return storage.bytes.constant == 0 && storage.bytes.slope > 0;
}

bool follows_batch(const Shape& shape) {
  return std::ranges::any_of(shape, [](const Affine& size) { return !size.is_constant(); });
}

bool begins_with_batch(const Shape& shape) {
  return !shape.empty() && shape.front() == batch_symbol &&
         std::ranges::all_of(shape.begin() + 1, shape.end(),
                             [](const Affine& size) { return size.is_constant(); });
}

/// An output of one part, and the whole that it is copied to.
struct WholeResult {
  StorageId part, whole;
  TensorView view;  ///< of the part's
};

class InferenceParts {
 public:
  InferenceParts(StepGraph step, std::int64_t parts)
      : step_(std::move(step)), parts_(parts), old_storages_(step_.storages.size()) {}

  Result<StepGraph> run() && {
    if (auto wrong = problem()) return failure(*std::move(wrong));
    add_wholes();
    grow_inputs();
    const std::vector<KernelNode> once = std::exchange(step_.nodes, {});
    for (std::int64_t part = 0; part < parts_; ++part) add_part(once, part);
    set_results();
    number_repetitions(step_.nodes);
    number_repetitions(step_.storages, old_storages_);
    renumber_convolutions(step_);
    return std::move(step_);
  }

 private:
  [[nodiscard]] bool is_input(StorageId id) const {
    return std::ranges::find(step_.inputs, id, &TensorView::storage) != step_.inputs.end();
  }

  [[nodiscard]] bool is_kept(StorageId id) const {
    return id == step_.output.storage || step_.script_holds.of(id).outlives_step();
  }

  [[nodiscard]] std::optional<std::string> problem() const {
    if (step_.settings.mode == Mode::train) return "a training step is no inference";
    if (!begins_with_batch(step_.output.shape)) {
      return "the first axis of the model's output is not the batch";
    }
    if (step_.storage(step_.output.storage).persistence != Persistence::transient) {
      return "the model returns what it was given";
    }
    for (const TensorView& input : step_.inputs) {
      const Storage& storage = step_.storage(input.storage);
      if (!follows_batch(input.shape) && storage.bytes.is_constant()) continue;
      if (begins_with_batch(input.shape) && grows_with_batch_alone(storage)) continue;
      return fmt::format("the first axis of the input '{}' is not the batch", storage.name);
    }
    for (std::size_t i = 0; i < step_.storages.size(); ++i) {
      const Storage& storage = step_.storages[i];
      const StorageId id = StorageId::of(i);
      if (storage.persistence != Persistence::transient || !is_kept(id)) continue;
      if (!grows_with_batch_alone(storage)) {
        return fmt::format("'{}', which the script keeps, does not grow with the batch alone",
                           storage.name);
      }
    }
    for (const KernelNode& node : step_.nodes) {
      for (const TensorView& view : node.writes) {
        const Storage& storage = step_.storage(view.storage);
        if (storage.persistence == Persistence::transient) continue;
        return fmt::format("'{}' writes to '{}', which every part would find changed", node.name,
                           storage.name);
      }
    }
    return std::nullopt;
  }

  void add_wholes() {
    for (std::size_t i = 0; i < old_storages_; ++i) {
      const StorageId id = StorageId::of(i);
      if (step_.storages[i].persistence != Persistence::transient || !is_kept(id)) continue;
      const TensorView view = id == step_.output.storage ? step_.output : whole_storage(step_, id);
      Storage whole = step_.storages[i];
      whole.name = dotted(unnumbered(whole.name), "whole");
      whole.bytes = element_count(view.shape) * Affine(element_size(view.type) * parts_);
      step_.storages.push_back(std::move(whole));
      wholes_.push_back({id, StorageId::of(step_.storages.size() - 1), view});
      step_.script_holds.set(id, {});
    }
  }

  void grow_inputs() {
    for (TensorView& input : step_.inputs) {
      if (!follows_batch(input.shape)) continue;
      input.shape.front() = input.shape.front() * Affine(parts_);
      Storage& storage = step_.storages[input.storage.index()];
      if (part_of_input(input.storage) != Affine(0)) continue;  // given twice
      inputs_.emplace_back(input.storage, storage.bytes);
      storage.bytes = storage.bytes * Affine(parts_);
    }
  }

  /// The bytes of one part; 0: the input is the same for all parts, or it is none.
  [[nodiscard]] Affine part_of_input(StorageId id) const {
    const auto found = std::ranges::find(inputs_, id, &std::pair<StorageId, Affine>::first);
    return found == inputs_.end() ? Affine(0) : found->second;
  }

  void add_part(const std::vector<KernelNode>& once, std::int64_t part) {
    std::vector<StorageId> in_part(old_storages_);
    for (std::size_t i = 0; i < old_storages_; ++i) {
      in_part[i] = StorageId::of(i);
      const bool is_own = step_.storages[i].persistence == Persistence::transient;
      if (part == 0 || !is_own || is_input(in_part[i])) continue;
      step_.storages.push_back(Storage(step_.storages[i]));
      in_part[i] = StorageId::of(step_.storages.size() - 1);
    }
    const auto move = [&](TensorView& view) {
      const Affine bytes = part_of_input(view.storage);
      const std::int64_t elements = bytes.slope / element_size(view.type);
      if (bytes != Affine(0)) view.offset = view.offset + Affine(0, elements * part);
      view.storage = in_part[view.storage.index()];
    };
    for (KernelNode node : once) {
      for (TensorView& view : node.reads) move(view);
      for (TensorView& view : node.writes) move(view);
      for (StorageId& id : node.temporaries) id = in_part[id.index()];
      for (StorageId& id : node.holds) id = in_part[id.index()];
      step_.nodes.push_back(std::move(node));
    }
    for (const WholeResult& result : wholes_) {
      TensorView from = result.view;
      from.storage = in_part[result.part.index()];
      TensorView to = contiguous_view(result.whole, from.shape, from.type);
      to.offset = element_count(from.shape) * Affine(part);
      step_.nodes.push_back({.name = dotted(step_.storage(result.whole).name, "copy"),
                             .kernel = Kernel::copy,
                             .phase = Phase::forward,
                             .op = step_.storage(result.part).op,
                             .reads = {std::move(from)},
                             .writes = {std::move(to)}});
    }
    for (const WholeResult& result : wholes_) {
      step_.nodes.back().holds.push_back(in_part[result.part.index()]);
    }
  }

  void set_results() {
    for (const WholeResult& result : wholes_) {
      step_.script_holds.set(result.whole, {.replaced_after = NodeId::of(step_.nodes.size() - 1)});
      if (result.part != step_.output.storage) continue;
      Shape shape = step_.output.shape;
      shape.front() = shape.front() * Affine(parts_);
      step_.output = contiguous_view(result.whole, std::move(shape), step_.output.type);
    }
    step_.micro_batch = {};
  }

  StepGraph step_;
  std::int64_t parts_;
  std::size_t old_storages_;
  std::vector<WholeResult> wholes_;
  std::vector<std::pair<StorageId, Affine>> inputs_;  // with the bytes of one part
};

}  // namespace

Result<StepGraph> with_inference_parts(StepGraph step, std::int64_t parts) {
  return InferenceParts(std::move(step), parts).run();
}

}  // namespace stowage
