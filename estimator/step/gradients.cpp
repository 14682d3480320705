// The backward half of a StepBuilder: rules run latest operator first, their gradients are
// delivered and summed.
#include <fmt/format.h>

#include <algorithm>

#include "estimator/step/step_builder.hpp"

namespace stowage {

void StepBuilder::find_what_needs_gradients() {
  if (graph_.settings.mode != Mode::train) return;
  for (const Operator& op : model_.operators) {
    if (rules_of(op).backward == nullptr) continue;
    const bool needed =
        std::any_of(op.inputs.begin(), op.inputs.end(),
                    [&](TensorId t) { return tensor_needs_gradient_[t.index()]; }) ||
        std::any_of(op.parameters.begin(), op.parameters.end(), [&](ParameterId p) {
          return model_.parameter(p).trainable && !model_.parameter(p).is_buffer;
        });
    if (!needed) continue;
    for (const TensorId output : op.outputs) tensor_needs_gradient_[output.index()] = true;
  }
}

void StepBuilder::run_backward(OperatorId op) {
  const Operator& oper = model_.op(op);
  const LowerRule rule = rules_of(oper).backward;
  const auto arrived = [&](TensorId t) { return gradients_[t.index()].present; };
  const bool wanted = is_loss(op) || std::any_of(oper.outputs.begin(), oper.outputs.end(), arrived);
  if (rule != nullptr && wanted && tensor_needs_gradient_[oper.outputs.front().index()]) {
    run_backward_rule(op, rule);
  }
  run_casts_backward(op);
  finish_parameters(op);
  saved_[op.index()] = {};
}

void StepBuilder::run_backward_rule(OperatorId op, LowerRule rule) {
  const std::size_t first_node = graph_.nodes.size();
  OperatorLowering lowering(*this, op);
  held_by_hand_ = !kernel_set_.frees_by_reference;
  const std::optional<OverwrittenView> overwritten = enter_overwritten_view(op);
  rule(lowering);
  convert_pending(op);
  if (graph_.nodes.size() > first_node) {
    if (!held_by_hand_) hold_until_done(op);
    if (overwritten) leave_overwritten_view(*overwritten, op);
  }
  for (const TensorId output : model_.op(op).outputs) release(gradients_[output.index()]);
  deliver_pending(op);
}

// An autograd node lets go of its saved tensors and of its incoming gradients when its own have
// been converted.
void StepBuilder::hold_until_done(OperatorId op) {
  std::vector<StorageId>& holds = graph_.nodes.back().holds;
  holds.reserve(holds.size() + saved_[op.index()].size() + model_.op(op).outputs.size());
  for (const Saved& saved : saved_[op.index()]) holds.push_back(saved.view.storage);
  for (const TensorId output : model_.op(op).outputs) {
    const Gradient& gradient = gradients_[output.index()];
    if (gradient.present) holds.push_back(gradient.view.storage);
  }
  std::sort(holds.begin(), holds.end());
  holds.erase(std::unique(holds.begin(), holds.end()), holds.end());
}

// The engine converts a gradient to its tensor's format where the two differ (validate_outputs in
// torch/csrc/autograd/engine.cpp): behind an addition of two formats, for one.
void StepBuilder::convert_pending(OperatorId op) {
  for (Pending& given : pending_) {
    const Destination& to = given.to;
    if (!is_wanted(to) || given.gradient.type == type_of(to)) continue;
    const bool of_parameter = to.parameter.valid();
    const std::string node = model_.op(op).name + ".cast_gradient";
    given.gradient = emit_cast(
        given.gradient, type_of(to), node,
        {.name = of_parameter ? model_.parameter(to.parameter).name + ".grad" : node,
         .storage_class = of_parameter ? StorageClass::gradient : StorageClass::activation_gradient,
         .op = op,
         .parameter = to.parameter});
  }
}

void StepBuilder::deliver_pending(OperatorId op) {
  convert_pending(op);
  for (Pending& given : pending_) deliver(given, op);
  pending_.clear();
}

void StepBuilder::deliver(const Pending& given, OperatorId op) {
  const Destination& to = given.to;
  if (!is_wanted(to)) return;
  if (to.parameter.valid()) return give_to_parameter(to.parameter, given.gradient, op);
  Gradient& slot = to.cast >= 0 ? casts_[static_cast<std::size_t>(to.cast)].gradient
                                : gradients_[to.tensor.index()];
  add_gradient(slot, given.gradient, op);
}

bool StepBuilder::is_wanted(const Destination& to) const {
  const TensorId tensor =
      to.cast >= 0 ? casts_[static_cast<std::size_t>(to.cast)].tensor : to.tensor;
  return !tensor.valid() || tensor_needs_gradient_[tensor.index()];
}

DataType StepBuilder::type_of(const Destination& to) const {
  if (to.cast >= 0) return casts_[static_cast<std::size_t>(to.cast)].type;
  if (to.tensor.valid()) return model_.tensor(to.tensor).type.type;
  return model_.parameter(to.parameter).type.type;
}

void StepBuilder::add_gradient(Gradient& slot, const TensorView& gradient, OperatorId op) {
  if (!slot.present) {
    slot = {gradient, true};
    ++holders_[gradient.storage.index()];
    return;
  }
  // A view keeps its base alive, so that its storage has two holders (can_accumulate_inplace).
  const bool own = !kernel_set_.frees_by_reference || !slot.view.is_view;
  if (own && holders_[slot.view.storage.index()] == 1 && is_dense(slot.view)) {
    emit_accumulation(slot.view, gradient, op);
    return;
  }
  const std::string name = fmt::format("{}.sum_gradients", model_.op(op).name);
  TensorView sum = ordered_like(layouts_.view(gradient.shape, gradient.type), slot.view);
  sum.storage = add_storage({.name = name,
                             .storage_class = StorageClass::activation_gradient,
                             .bytes = byte_count(sum),
                             .op = op});
  add_node({.name = name,
            .kernel = Kernel::add,
            .phase = Phase::backward,
            .op = op,
            .reads = {slot.view, gradient},
            .writes = {sum},
            .flops = element_count(gradient.shape)});
  release(slot);
  slot = {sum, true};
  ++holders_[sum.storage.index()];
}

void StepBuilder::emit_accumulation(const TensorView& sum, const TensorView& more, OperatorId op) {
  add_node({.name = fmt::format("{}.sum_gradients", model_.op(op).name),
            .kernel = Kernel::accumulate,
            .phase = Phase::backward,
            .op = op,
            .reads = {sum, more},
            .writes = {sum},
            .flops = element_count(more.shape)});
}

void StepBuilder::release(Gradient& slot) {
  if (!slot.present) return;
  --holders_[slot.view.storage.index()];
  slot = {};
}

}  // namespace stowage
