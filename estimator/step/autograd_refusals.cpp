#include "estimator/step/autograd_refusals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "estimator/base/cure.hpp"

namespace stowage {

namespace {

class InPlaceWrites {
 public:
  InPlaceWrites(const ModelGraph& model, const StepGraph& step)
      : model_(model), step_(step), first_saver_(step.storages.size()) {
    for (const SavedTensor& saved : step.saved) {
      OperatorId& first = first_saver_[saved.storage.index()];
      if (!first.valid() || saved.op.index() < first.index()) first = saved.op;
    }
  }

  [[nodiscard]] Diagnostics refusals() const {
    Diagnostics refused;
    OperatorId last;  // one complaint an operator, however many its kernel calls
    for (const KernelNode& node : step_.nodes) {
      if (node.phase != Phase::forward || node.micro_batch != 0 || node.op == last) continue;
      for (const TensorView& written : node.writes) {
        auto refusal = refusal_of(node.op, written.storage);
        if (!refusal) continue;
        refused.push_back(*std::move(refusal));
        last = node.op;
        break;
      }
    }
    return refused;
  }

 private:
  [[nodiscard]] std::optional<Diagnostic> refusal_of(OperatorId op, StorageId id) const {
    const Storage& storage = step_.storage(id);
    const Operator& writer = model_.op(op);
    if (storage.storage_class == StorageClass::parameter) {
      return Diagnostic{.message = fmt::format("'{}' may not overwrite '{}': it is trained",
                                               writer.name, storage.name),
                        .span = writer.span,
                        .hint = "PyTorch refuses this too; leave out 'in_place'"};
    }
    // Operators stand in the order in which they run.
    const OperatorId saver = first_saver_[id.index()];
    if (!saver.valid() || saver.index() >= op.index()) return std::nullopt;
    return Diagnostic{
        .message = fmt::format("'{}' may not overwrite what '{}' keeps for its backward pass",
                               writer.name, model_.op(saver).name),
        .span = writer.span,
        .hint = "PyTorch refuses this too; leave out 'in_place'",
        .notes = {{.severity = Severity::note,
                   .message = fmt::format("'{}' is here", model_.op(saver).name),
                   .span = model_.op(saver).span}}};
  }

  const ModelGraph& model_;
  const StepGraph& step_;
  std::vector<OperatorId> first_saver_;  // by storage
};

}  // namespace

Diagnostics autograd_refusals(const ModelGraph& model, const StepGraph& step) {
  const bool trains = std::any_of(step.gradients.begin(), step.gradients.end(),
                                  [](const TensorView& g) { return g.storage.valid(); });
  if (!trains) {
    return {{.message = fmt::format("nothing of the model '{}' is trained: no parameter that may "
                                    "change leads to its loss",
                                    model.name),
             .hint = hint_of(Cure::inference)}};
  }
  if (!step.kernel_set().autograd) return {};
  return InPlaceWrites(model, step).refusals();
}

}  // namespace stowage
