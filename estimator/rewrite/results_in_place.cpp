#include "estimator/rewrite/results_in_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/rewrite/renumber.hpp"
#include "estimator/step/kernel_table.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

/// The uses of a storage and of those that were merged into it.
struct Uses {
  std::int32_t first = -1, last = -1;  // nodes
  bool kept = false;                   // beyond its last use, or found by its own number
  std::int32_t readers = 0;            // that do not write it
};

std::ptrdiff_t times_in(const std::vector<TensorView>& views, StorageId id) {
  return std::ranges::count(views, id, &TensorView::storage);
}

bool before_backward(const KernelNode& node) {
  return node.phase == Phase::forward || node.phase == Phase::loss;
}

class Merging {
 public:
  explicit Merging(const StepGraph& step) : step_(step), uses_(step.storages.size()) {
    into_.reserve(step.storages.size());
    for (std::size_t s = 0; s < step.storages.size(); ++s) into_.push_back(StorageId::of(s));
    find_uses();
    find_kept();
  }

  /// By storage: the one that it is merged into, or itself.
  std::vector<StorageId> run() && {
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      const KernelNode& node = step_.nodes[n];
      const auto at = static_cast<std::int32_t>(n);
      for (std::size_t written = 0; written < node.writes.size(); ++written) {
        if (const auto over = overwritten(node, at, written)) {
          join(node.writes[written].storage, node.reads[*over].storage);
        }
      }
    }
    return std::move(into_);
  }

 private:
  Uses& uses(StorageId id) { return uses_[id.index()]; }

  void find_uses() {
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      const KernelNode& node = step_.nodes[n];
      const auto use = [&](StorageId id) {
        Uses& of = uses(id);
        if (of.first < 0) of.first = static_cast<std::int32_t>(n);
        of.last = static_cast<std::int32_t>(n);
      };
      for (const TensorView& view : node.reads) {
        use(view.storage);
        if (times_in(node.writes, view.storage) == 0) ++uses(view.storage).readers;
      }
      for (const TensorView& view : node.writes) use(view.storage);
      for (const StorageId id : node.holds) use(id);
      for (const StorageId id : node.temporaries) use(id);
    }
  }

  void find_kept() {
    const auto keep = [&](StorageId id) {
      if (id.valid()) uses(id).kept = true;
    };
    for (std::size_t s = 0; s < step_.storages.size(); ++s) {
      const StorageId id = StorageId::of(s);
      const bool is_transient = step_.storage(id).persistence == Persistence::transient;
      if (!is_transient || step_.script_holds.of(id).outlives_step()) keep(id);
    }
    for (const auto* views : {&step_.inputs, &step_.losses, &step_.gradients}) {
      for (const TensorView& view : *views) keep(view.storage);
    }
    keep(step_.output.storage);
    for (const SavedTensor& saved : step_.saved) keep(saved.storage);
    for (const GradientArrival& arrival : step_.micro_batch.arrivals) {
      keep(arrival.gradient.storage);
    }
    for (const ScriptVariable& variable : step_.micro_batch.variables) keep(variable.storage);
  }

  /// The argument of the node that its result number `written` may overwrite.
  std::optional<std::size_t> overwritten(const KernelNode& node, std::int32_t at,
                                         std::size_t written) {
    const TensorView& result = node.writes[written];
    if (!is_new(node, at, result)) return std::nullopt;
    for (std::size_t read = 0; read < node.reads.size(); ++read) {
      if (may_write_over(node.kernel, written, read) &&
          is_whole_alike(node, node.reads[read], result) && is_over(node, at, node.reads[read])) {
        return read;
      }
    }
    return std::nullopt;
  }

  /// Whether the node makes the result's storage, so that it can be merged.
  bool is_new(const KernelNode& node, std::int32_t at, const TensorView& result) {
    const Uses& of = uses(result.storage);
    return of.first == at && !of.kept && times_in(node.reads, result.storage) == 0 &&
           times_in(node.writes, result.storage) == 1;
  }

  /// Whether it is the model's output, in backward: no result of a training step, and never
  /// recomputed.
  [[nodiscard]] bool is_trained_output(const KernelNode& node, StorageId id) const {
    return node.phase == Phase::backward && id == step_.output.storage &&
           step_.storage(id).storage_class == StorageClass::activation;
  }

  /// Whether the node is the last that needs the argument.
  bool is_over(const KernelNode& node, std::int32_t at, const TensorView& argument) {
    const StorageId id = into_[argument.storage.index()];
    const Uses& of = uses(id);
    if (of.last != at) return false;
    if (of.kept && !is_trained_output(node, id)) return false;
    const auto alike = [&](const TensorView& view) { return into_[view.storage.index()] == id; };
    if (std::ranges::count_if(node.reads, alike) != 1) return false;
    if (std::ranges::any_of(node.writes, alike)) return false;
    const bool alone = of.readers == 1;
    return alone || step_.settings.mode != Mode::train || !before_backward(node);
  }

  [[nodiscard]] bool is_whole_alike(const KernelNode& node, const TensorView& argument,
                                    const TensorView& result) const {
    const Storage& a = step_.storage(argument.storage);
    const Storage& b = step_.storage(result.storage);
    const bool gradient = b.storage_class == StorageClass::activation_gradient;
    const bool served = a.storage_class == b.storage_class
                            ? gradient || a.storage_class == StorageClass::activation
                            : gradient && is_trained_output(node, argument.storage);
    return served && argument.type == result.type && argument.shape == result.shape &&
           is_contiguous(argument) && is_contiguous(result) && argument.offset == Affine(0) &&
           result.offset == Affine(0) && a.bytes == b.bytes && a.bytes == byte_count(argument);
  }

  // From here on only the result's readers count: earlier readers of the argument read a value that
  // is then overwritten.
  void join(StorageId result, StorageId argument) {
    const StorageId id = into_[argument.index()];
    into_[result.index()] = id;
    uses(id).last = uses(result).last;
    uses(id).readers = uses(result).readers;
  }

  const StepGraph& step_;
  std::vector<Uses> uses_;       // by storage
  std::vector<StorageId> into_;  // by storage: the one that it has become one with
};

std::string in_place_problem(const StepGraph& step) {
  const LoweringSettings& settings = step.settings;
  if (!step.kernel_set().executable) {
    return fmt::format("its kernels are those of {}, which makes room for every result",
                       step.kernel_set().name);
  }
  if (settings.in_place) return "it does already";
  if (settings.micro_batches != 1) return "it has several micro-batches";
  if (settings.early_updates) return "its updates are early";
  if (!settings.recomputed.empty()) return "it recomputes values";
  if (!settings.order.empty()) return "its nodes have been reordered";
  return {};
}

}  // namespace

Result<StepGraph> with_results_in_place(StepGraph step) {
  if (const std::string problem = in_place_problem(step); !problem.empty()) {
    return failure(fmt::format("the step of '{}' cannot work in place: {}", step.model, problem));
  }
  join_storages(step, Merging(step).run());
  step.settings.in_place = true;
  return step;
}

}  // namespace stowage
