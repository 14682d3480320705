// What autograd does where an operator overwrites a view (CopySlices in
// torch/csrc/autograd/functions/tensor.cpp): the gradient of the view's base is a tensor of its
// own, into which the incoming gradient is copied; the operator's backward gets a contiguous copy
// of that, and what it returns is copied back. Instance norm and pooling of one axis give views, so
// that an in-place activation behind them costs this.
//
// Views of a part of their base are lowered without it.
#include <fmt/format.h>

#include "estimator/step/step_builder.hpp"

namespace stowage {

namespace {

bool covers(const TensorView& view, const Storage& storage) {
  return byte_count(view) == storage.bytes && is_dense(view);
}

}  // namespace

std::optional<StepBuilder::OverwrittenView> StepBuilder::enter_overwritten_view(OperatorId op) {
  const Operator& oper = model_.op(op);
  if (!kernel_set_.autograd || oper.inputs.empty()) return std::nullopt;
  const TensorId input = oper.inputs.front();
  const TensorId output = oper.outputs.front();
  const TensorView& view = values_[input.index()];
  Gradient& slot = gradients_[output.index()];
  if (!oper.attributes.has("in_place") || !view.is_view || !slot.present ||
      !tensor_needs_gradient_[input.index()] || values_[output.index()].storage != view.storage ||
      !covers(view, graph_.storages[view.storage.index()])) {
    return std::nullopt;
  }
  const auto copied = [&](const TensorView& from, std::string_view suffix, Shape strides) {
    TensorView to = from;
    to.strides = std::move(strides);
    to.offset = 0;
    to.is_view = false;
    const std::string name = fmt::format("{}.{}", oper.name, suffix);
    to.storage = add_storage({.name = name,
                              .storage_class = StorageClass::activation_gradient,
                              .bytes = byte_count(to),
                              .op = op});
    emit_copy(from, to, name, op);
    return to;
  };
  OverwrittenView result{.input = input, .incoming = slot.view.storage};
  result.base_gradient = copied(slot.view, "grad_base", view.strides);
  const TensorView given =
      copied(result.base_gradient, "grad_view", contiguous_strides(view.shape));
  release(slot);
  slot = {given, true};
  ++holders_[given.storage.index()];
  return result;
}

void StepBuilder::leave_overwritten_view(const OverwrittenView& overwritten, OperatorId op) {
  for (Pending& given : pending_) {
    if (given.to.tensor != overwritten.input) continue;
    const std::string name = fmt::format("{}.grad_base.filled", model_.op(op).name);
    KernelNode& node = emit_copy(given.gradient, overwritten.base_gradient, name, op);
    node.holds.push_back(overwritten.incoming);
    for (const Saved& saved : saved_[op.index()]) node.holds.push_back(saved.view.storage);
    given.gradient = overwritten.base_gradient;
    given.gradient.is_view = true;
    return;
  }
}

KernelNode& StepBuilder::emit_copy(const TensorView& from, const TensorView& to,
                                   const std::string& name, OperatorId op) {
  return add_node({.name = name,
                   .kernel = Kernel::copy,
                   .phase = phase_,
                   .op = op,
                   .reads = {from},
                   .writes = {to}});
}

}  // namespace stowage
