#include "estimator/model/model_graph.hpp"

#include "estimator/base/bytes.hpp"

namespace stowage {

DataType promoted(const TensorType& a, const TensorType& b) {
  const bool same_kind = is_floating_point(a.type) == is_floating_point(b.type);
  if (same_kind && a.shape.empty() != b.shape.empty()) return a.shape.empty() ? b.type : a.type;
  return promoted(a.type, b.type);
}

namespace {

template <typename Predicate>
std::int64_t count_elements(const ModelGraph& model, Predicate counted) {
  std::int64_t total = 0;
  for (const Parameter& parameter : model.parameters) {
    if (!counted(parameter)) continue;
    const std::int64_t elements = element_count(parameter.type.shape).constant;
    total = checked_add(total, parameter.values > 0 ? parameter.values : elements);
  }
  return total;
}

}  // namespace

std::int64_t parameter_count(const ModelGraph& model) {
  return count_elements(model, [](const Parameter& p) { return !p.is_buffer; });
}

std::int64_t trainable_parameter_count(const ModelGraph& model) {
  return count_elements(model, [](const Parameter& p) { return !p.is_buffer && p.trainable; });
}

std::string_view to_string(ZeroGrad zero_grad) {
  return zero_grad == ZeroGrad::to_none ? "to_none" : "to_zero";
}

}  // namespace stowage
