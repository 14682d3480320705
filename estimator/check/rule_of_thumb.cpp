#include "estimator/check/rule_of_thumb.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "estimator/step/lower.hpp"

namespace stowage {

namespace {

Bytes bytes_of(const TensorType& type, std::int64_t batch) {
  return Bytes(checked_multiply(element_count(type.shape).at(batch), element_size(type.type)));
}

// Outputs of operators that have memory of their own: lowered for inference, each is a storage of
// the tensor's name; in-place results and views are none, nor is what a kernel needs inside.
Bytes activation_bytes(const ModelGraph& model, const StepGraph& step, std::int64_t batch) {
  std::set<std::string_view> outputs;
  for (const ModelTensor& tensor : model.tensors) {
    if (tensor.producer.valid()) outputs.insert(tensor.name);
  }
  Bytes bytes;
  for (const Storage& storage : step.storages) {
    if (storage.storage_class != StorageClass::activation) continue;
    if (outputs.count(storage.name) != 0) bytes += Bytes(storage.bytes.at(batch));
  }
  return bytes;
}

}  // namespace

Result<RuleOfThumb> rule_of_thumb(const ModelGraph& model, Mode mode, std::int64_t batch) {
  const auto step = lower(model, {.kernels = KernelSet::pytorch, .mode = Mode::inference});
  if (!step) return tl::unexpected(step.error());
  const std::int64_t with_gradients = mode == Mode::train ? 2 : 1;
  const std::int64_t with_cache = mode == Mode::train ? 3 : 1;
  try {
    RuleOfThumb rule;
    rule.activations = activation_bytes(model, *step, batch) * with_gradients;
    for (const Parameter& parameter : model.parameters) {
      if (parameter.is_buffer) continue;
      rule.parameters += bytes_of(parameter.type, 1) * (parameter.trainable ? with_cache : 1);
    }
    for (const TensorId input : model.inputs) {
      rule.miscellaneous += bytes_of(model.tensor(input).type, batch);
    }
    return rule;
  } catch (const ArithmeticOverflow& overflow) {
    return failure(fmt::format("the rule of thumb for model '{}' leaves 64 bits: {}", model.name,
                               overflow.what()));
  }
}

}  // namespace stowage
