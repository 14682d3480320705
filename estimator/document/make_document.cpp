#include "estimator/document/make_document.hpp"

#include <fmt/format.h>

#include <set>

#include "estimator/model/operator_row.hpp"
#include "estimator/rewrite/cast_output.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/rewrite/packed_gradients.hpp"

namespace stowage {

namespace {

bool is_kept(StorageClass storage_class) {
  return storage_class == StorageClass::activation ||
         storage_class == StorageClass::saved_auxiliary;
}

// In a step lowered for inference each result with memory of its own is a storage with the tensor's
// name; in-place results, views and temporaries of kernels are not.
std::optional<Affine> result_bytes(const ModelGraph& model) {
  const auto step = lower_step(model, {.kernels = KernelSet::pytorch, .mode = Mode::inference});
  if (!step) return std::nullopt;
  std::set<std::string_view> results;
  for (const ModelTensor& tensor : model.tensors) {
    if (tensor.producer.valid()) results.insert(tensor.name);
  }
  try {
    Affine bytes;
    for (const Storage& storage : step->storages) {
      if (storage.storage_class != StorageClass::activation) continue;
      if (results.contains(storage.name)) bytes = bytes + storage.bytes;
    }
    return bytes;
  } catch (const ArithmeticOverflow&) {
    return std::nullopt;
  }
}

std::shared_ptr<const StepGraph> evaluation_of(const ModelGraph& model, LoweringSettings lowering) {
  lowering.mode = Mode::inference;
  lowering.micro_batches = 1;
  lowering.early_updates = false;
  lowering.recomputed.clear();
  lowering.order.clear();
  auto graph = lower_step(model, lowering);
  return graph ? std::make_shared<const StepGraph>(*std::move(graph)) : nullptr;
}

/// Keras's attention layer is products around a softmax, which our executor's lowering makes for
/// `math`. An attention that asks for one of PyTorch's kernels is left unchanged.
ModelGraph as_keras_has_it(ModelGraph model) {
  for (Operator& op : model.operators) {
    if (op.row->name != "scaled_dot_product_attention") continue;
    op.attributes.set("implementation", std::string("math"));
  }
  return model;
}

}  // namespace

// A tied parameter counts at its first owner, so that the rows add up to the model's.
std::vector<Layer> layers_of(const ModelGraph& model) {
  std::vector<Layer> layers;
  std::set<ParameterId> counted;
  for (const Operator& op : model.operators) {
    Layer layer{.name = op.name, .op = std::string(op.row->name)};
    if (!op.outputs.empty()) layer.output = model.tensor(op.outputs.front()).type.shape;
    for (const ParameterId id : op.parameters) {
      const Parameter& parameter = model.parameter(id);
      if (parameter.is_buffer || !counted.insert(id).second) continue;
      layer.parameters +=
          parameter.values > 0 ? parameter.values : element_count(parameter.type.shape).constant;
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

Result<void> add_costs(const ModelGraph& model, TensorLayout layout, std::vector<Layer>& layers) {
  const bool trains = model.loss.valid();
  const auto step = lower_step(model, {.kernels = KernelSet::pytorch,
                                       .mode = trains ? Mode::train : Mode::inference,
                                       .step = {.layout = layout}});
  if (!step) return tl::unexpected(step.error());
  std::vector<Layer*> by_operator;
  for (Layer& layer : layers) by_operator.push_back(&layer);
  add_step_costs(*step, by_operator);
  return {};
}

void add_step_costs(const StepGraph& step, const std::vector<Layer*>& layers) {
  const auto layer_of = [&](OperatorId op) { return op.valid() ? layers[op.index()] : nullptr; };
  for (const KernelNode& node : step.nodes) {
    if (node.phase != Phase::forward && node.phase != Phase::loss) continue;
    if (Layer* layer = layer_of(node.op)) layer->flops = layer->flops + node.flops;
  }
  std::set<StorageId> counted;
  for (const SavedTensor& saved : step.saved) {
    const Storage& storage = step.storage(saved.storage);
    if (!is_kept(storage.storage_class) || !counted.insert(saved.storage).second) continue;
    if (Layer* layer = layer_of(saved.op)) layer->saved_bytes = layer->saved_bytes + storage.bytes;
  }
}

/// Applies the runtime's changes to the model, lowers and rewrites the step, then fills in the
/// optional parts.
Result<StepDocument> make_document(const ModelGraph& model, const ChosenStep& chosen,
                                   Runtime runtime, std::optional<std::int64_t> seq,
                                   const DocumentParts& parts) {
  const LoweringSettings& lowering = chosen.lowering;
  const bool keras = traits(runtime).is_keras;
  std::optional<ModelGraph> changed;
  if (keras) changed = as_keras_has_it(model);
  if (const auto type = lowering.parallel.fsdp.output_type; type && lowering.mode == Mode::train) {
    auto cast = with_cast_output(model, *type);
    if (!cast) return tl::unexpected(std::move(cast.error()));
    changed = *std::move(cast);
  }
  const ModelGraph& lowered = changed ? *changed : model;
  auto graph = lower_step(lowered, lowering);
  if (graph && traits(runtime).has_theano_buffers) {
    graph = with_theano_buffers(*std::move(graph), parts.theano);
  }
  if (graph && keras && lowering.parallel.is_parallel() && lowering.mode == Mode::train) {
    graph = with_packed_gradients(*std::move(graph));
  }
  if (!graph) return tl::unexpected(std::move(graph.error()));
  StepDocument document;
  document.source = model.source;
  document.graph = std::make_shared<const StepGraph>(*std::move(graph));
  document.runtime = runtime;
  document.precision = model.precision;
  if (model.default_seq > 0) document.seq = seq.value_or(model.default_seq);
  document.accumulation = chosen.accumulation;
  document.parameters = model.parameters;
  document.layers = layers_of(lowered);
  if (parts.costs) {
    std::vector<Layer> layers = document.layers;
    if (add_costs(lowered, chosen.lowering.step.layout, layers)) {
      document.layers = std::move(layers);
      document.has_costs = true;
    }
  }
  if (parts.result_bytes) document.result_bytes = result_bytes(model);
  const bool trains = chosen.lowering.mode == Mode::train;
  if (parts.evaluation && trains) document.evaluation = evaluation_of(lowered, chosen.lowering);
  document.warnings = model.warnings;
  document.warnings.insert(document.warnings.end(), chosen.warnings.begin(), chosen.warnings.end());
  return document;
}

}  // namespace stowage
