// What becomes of the gradients of parameters (torch/csrc/autograd/functions/accumulate_grad.h).
//
// Within one backward() all uses of a parameter give their gradients to one sum, which goes into
// .grad when the last of them has: taken over as it is where .grad is empty and nothing else holds
// it, copied where something does. (A later micro-batch's is added to it:
// rewrite/micro_batches.hpp.) Our own executor adds each to .grad at once. Under
// zero_grad(set_to_none=False) .grad outlives the step: it is zeroed at the step's start and only
// ever added to; in the first step it appears as it does otherwise.
#include <fmt/format.h>

#include <algorithm>

#include "estimator/step/step_builder.hpp"

namespace stowage {

void StepBuilder::find_first_users() {
  first_user_.assign(model_.parameters.size(), OperatorId{});
  for (std::size_t i = model_.operators.size(); i-- > 0;) {
    if (rules_of(model_.operators[i]).backward == nullptr) continue;
    for (const ParameterId id : model_.operators[i].parameters) {
      first_user_[id.index()] = OperatorId::of(i);
    }
  }
}

void StepBuilder::give_to_parameter(ParameterId id, const TensorView& gradient, OperatorId op) {
  if (kernel_set_.autograd) {
    add_gradient(arriving_[id.index()], gradient, op);
  } else {
    accumulate(id, gradient, op);
  }
}

void StepBuilder::finish_parameters(OperatorId op) {
  for (const ParameterId id : model_.op(op).parameters) finish_parameter(id, op);
}

void StepBuilder::finish_parameter(ParameterId id, OperatorId op) {
  Gradient& sum = arriving_[id.index()];
  if (first_user_[id.index()] != op || !sum.present) return;
  const TensorView gradient = sum.view;
  release(sum);
  accumulate(id, gradient, op);
}

void StepBuilder::accumulate(ParameterId id, const TensorView& gradient, OperatorId op) {
  Gradient& slot = parameter_gradients_[id.index()];
  if (!slot.present) {
    const bool persists = graph_.settings.step.zero_grad == ZeroGrad::to_zero;
    if (!persists) record_arrival(id, gradient, op);
    slot = {persists ? add_persistent_gradient(id) : made_to_stay(gradient, id, op), true};
    ++holders_[slot.view.storage.index()];
    if (!persists) return;
  }
  emit_accumulation(slot.view, gradient, op);
}

void StepBuilder::record_arrival(ParameterId id, const TensorView& gradient, OperatorId op) {
  graph_.micro_batch.arrivals.push_back({.parameter = id,
                                         .after = NodeId::of(graph_.nodes.size() - 1),
                                         .gradient = gradient,
                                         .op = op});
}

// Left as it is, the gradient lies as its parameter does (obeys_layout_contract,
// torch/csrc/autograd/utils/grad_layout_contract.h).
TensorView StepBuilder::made_to_stay(const TensorView& gradient, ParameterId id, OperatorId op) {
  const TensorView& parameter = parameter_views_[id.index()];
  if (holders_[gradient.storage.index()] == 0 && same_memory_format(gradient, parameter))
    return gradient;
  const std::string name = model_.parameter(id).name + ".grad";
  TensorView copy = layouts_.view(gradient.shape, gradient.type);
  copy.strides = parameter.strides;
  copy.storage = add_storage({.name = name,
                              .storage_class = StorageClass::gradient,
                              .bytes = byte_count(copy),
                              .op = op,
                              .parameter = id});
  add_node({.name = name + ".copy",
            .kernel = Kernel::copy,
            .phase = Phase::backward,
            .op = op,
            .reads = {gradient},
            .writes = {copy}});
  graph_.micro_batch.first_only.push_back(NodeId::of(graph_.nodes.size() - 1));
  return copy;
}

TensorView StepBuilder::add_persistent_gradient(ParameterId id) {
  const Parameter& parameter = model_.parameter(id);
  TensorView view = layouts_.view(parameter.type.shape, parameter.type.type);
  view.storage = add_storage({.name = parameter.name + ".grad",
                              .storage_class = StorageClass::gradient,
                              .persistence = Persistence::persistent,
                              .bytes = byte_count(view),
                              .op = first_user_[id.index()],
                              .parameter = id,
                              .carries_over = true});
  return view;
}

void StepBuilder::zero_persistent_gradients() {
  std::vector<KernelNode> nodes;
  for (std::size_t i = 0; i < parameter_gradients_.size(); ++i) {
    if (!parameter_gradients_[i].present) continue;
    KernelNode node{.name = fmt::format("zero_grad.{}", model_.parameters[i].name),
                    .kernel = Kernel::fill,
                    .phase = Phase::forward,
                    .writes = {parameter_gradients_[i].view}};
    node.attributes.set("value", 0.0);
    nodes.push_back(std::move(node));
  }
  graph_.nodes.insert(graph_.nodes.begin(), std::make_move_iterator(nodes.begin()),
                      std::make_move_iterator(nodes.end()));
  graph_.micro_batch.first_node = NodeId::of(nodes.size());
  graph_.micro_batch.end_node = NodeId::of(graph_.nodes.size());
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (graph_.nodes[i].kernel != Kernel::accumulate) continue;
    Storage& sum = graph_.storages[graph_.nodes[i].writes.front().storage.index()];
    const bool persists = sum.persistence == Persistence::persistent;
    if (persists && !sum.first_made_by.valid()) sum.first_made_by = NodeId::of(i);
  }
}

}  // namespace stowage
