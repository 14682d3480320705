// The cases of tests/reference/operators.json, and how far our kernels' results are from them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {

struct Case {
  std::string name, op;
  Attributes attributes;
  std::vector<Tensor> inputs;
  std::vector<std::pair<std::string, Tensor>> parameters, buffers_before, buffers_after,
      parameter_gradients;
  Tensor output, output_gradient;
  std::vector<Tensor> input_gradients;  ///< without shape and values: no gradient

  [[nodiscard]] Tensor* parameter(const std::string& name);  ///< null: there is none
};

struct OptimizerStep {
  Tensor gradient, parameter;
  std::vector<std::pair<std::string, Tensor>> state;
};
struct OptimizerCase {
  std::string name, op;
  Attributes attributes;  ///< with our names: learning_rate, beta1, ...
  Tensor parameter;
  std::vector<OptimizerStep> steps;
};

/// The attributes of a JSON object, without those that are null.
[[nodiscard]] Attributes json_attributes(const nlohmann::json& object);

[[nodiscard]] std::vector<Case> cases_of(const std::string& op);
[[nodiscard]] std::vector<std::string> reference_operators();  ///< each once, sorted
[[nodiscard]] std::vector<OptimizerCase> optimizer_cases();
/// `values` of tests/reference/optimizers.json; `op` is a row of the optimizer table.
[[nodiscard]] std::vector<OptimizerCase> table_optimizer_cases();

/// The largest absolute difference divided by the largest absolute value of `expected`; NaN counts
/// as infinite. The last test prints the largest distance of all calls.
[[nodiscard]] double distance(const Tensor& actual, const Tensor& expected);
[[nodiscard]] double worst_distance();

}  // namespace stowage::test
