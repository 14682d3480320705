// The optimizer's part of a step: one kernel call a parameter (`stowage`), or PyTorch's
// multi-tensor
// ("foreach") call over all of them, with its temporaries.
#include <fmt/format.h>

#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/step_builder.hpp"

namespace stowage {

namespace {

std::vector<std::string_view> state_names(const OptimizerSettings& optimizer) {
  if (optimizer.name == "sgd") {
    if (optimizer.momentum > 0) return {"momentum_buffer"};
    return {};
  }
  return {"exp_avg", "exp_avg_sq"};
}

Attributes update_attributes(const OptimizerSettings& optimizer) {
  Attributes attributes;
  attributes.set("learning_rate", optimizer.learning_rate);
  attributes.set("weight_decay", optimizer.weight_decay);
  if (optimizer.name == "sgd") {
    attributes.set("momentum", optimizer.momentum);
    attributes.set("nesterov", optimizer.nesterov);
  } else {
    attributes.set("beta1", optimizer.beta1);
    attributes.set("beta2", optimizer.beta2);
    attributes.set("epsilon", optimizer.epsilon);
    attributes.set("decoupled", optimizer.name == "adamw");
  }
  return attributes;
}

// torch/optim/{sgd,adam}.py, multi-tensor path: what a call holds beside state, in copies of all
// parameters. Adam: the square root of the second moment; with L2 decay a decayed copy of the
// gradients, freed before the root is taken. SGD: a decayed copy of the gradients.
bool needs_foreach_temporary(const OptimizerSettings& optimizer) {
  if (optimizer.name == "sgd") return optimizer.weight_decay != 0;
  return true;
}

struct Update {
  ParameterId parameter;
  TensorView value;
  TensorView gradient;
  std::vector<TensorView> state;
};

StorageId add(StepGraph& graph, Storage storage) {
  graph.storages.push_back(std::move(storage));
  return StorageId::of(graph.storages.size() - 1);
}

std::vector<Update> updates_of(StepGraph& graph, const ModelGraph& model,
                               const std::vector<StorageId>& parameter_storage) {
  std::vector<Update> updates;
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    if (!graph.gradients[i].storage.valid()) continue;
    const Parameter& parameter = model.parameters[i];
    Update update{
        .parameter = ParameterId::of(i),
        .value = contiguous_view(parameter_storage[i], parameter.type.shape, parameter.type.type),
        .gradient = graph.gradients[i],
        .state = {}};
    for (const std::string_view name : state_names(graph.settings.optimizer)) {
      TensorView state = update.value;
      state.storage = add(graph, {.name = fmt::format("{}.{}", parameter.name, name),
                                  .storage_class = StorageClass::optimizer_state,
                                  .persistence = Persistence::persistent,
                                  .bytes = byte_count(state),
                                  .op = graph.storages[parameter_storage[i].index()].op,
                                  .parameter = ParameterId::of(i),
                                  .carries_over = true});
      update.state.push_back(state);
    }
    updates.push_back(std::move(update));
  }
  return updates;
}

double flops_per_element(const OptimizerSettings& optimizer) {
  return optimizer.name == "sgd" ? 4 : 14;
}

void append(KernelNode& node, const Update& update) {
  node.reads.push_back(update.value);
  node.reads.push_back(update.gradient);
  node.reads.insert(node.reads.end(), update.state.begin(), update.state.end());
  node.writes.push_back(update.value);
  node.writes.insert(node.writes.end(), update.state.begin(), update.state.end());
}

}  // namespace

void lower_update(StepGraph& graph, const ModelGraph& model,
                  const std::vector<StorageId>& parameter_storage) {
  const OptimizerSettings& optimizer = graph.settings.optimizer;
  const std::vector<Update> updates = updates_of(graph, model, parameter_storage);
  const Affine rate = static_cast<std::int64_t>(flops_per_element(optimizer));
  if (graph.settings.kernels == KernelSet::stowage) {
    for (const Update& update : updates) {
      KernelNode node{.name = "update." + model.parameter(update.parameter).name,
                      .kernel = optimizer.name == "sgd" ? Kernel::sgd_update : Kernel::adam_update,
                      .phase = Phase::update,
                      .attributes = update_attributes(optimizer),
                      .flops = element_count(update.value.shape) * rate};
      append(node, update);
      graph.nodes.push_back(std::move(node));
    }
    return;
  }
  KernelNode node{.name = "optimizer.step",
                  .kernel = Kernel::foreach_update,
                  .phase = Phase::update,
                  .attributes = update_attributes(optimizer)};
  for (const Update& update : updates) {
    append(node, update);
    node.flops = node.flops + element_count(update.value.shape) * rate;
    if (!needs_foreach_temporary(optimizer)) continue;
    node.temporaries.push_back(
        add(graph, {.name = model.parameter(update.parameter).name + ".foreach_temporary",
                    .storage_class = StorageClass::temporary,
                    .bytes = byte_count(update.value),
                    .parameter = update.parameter}));
  }
  if (!updates.empty()) graph.nodes.push_back(std::move(node));
}

}  // namespace stowage
