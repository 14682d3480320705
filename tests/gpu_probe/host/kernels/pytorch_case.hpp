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
  std::vector<Tensor> input_gradients;  ///< empty shape and no values: none

  [[nodiscard]] Tensor* parameter(const std::string& name);  ///< null: there is none
};

struct OptimizerStep {
  Tensor gradient, parameter;
  std::vector<std::pair<std::string, Tensor>> state;
};
struct OptimizerCase {
  std::string name, op;
  Attributes attributes;  ///< under our names: learning_rate, beta1, ...
  Tensor parameter;
  std::vector<OptimizerStep> steps;
};

/// A JSON object's; what is null is left out.
[[nodiscard]] Attributes json_attributes(const nlohmann::json& object);

[[nodiscard]] std::vector<Case> cases_of(const std::string& op);
[[nodiscard]] std::vector<std::string> reference_operators();  ///< each once, sorted
[[nodiscard]] std::vector<OptimizerCase> optimizer_cases();
/// `values` of tests/reference/optimizers.json; `op` is a row of the optimizer table.
[[nodiscard]] std::vector<OptimizerCase> table_optimizer_cases();

/// The largest absolute difference over the largest absolute value of `expected`; the worst seen
/// in the program's life is kept and printed by the last test. NaN counts as infinite.
[[nodiscard]] double distance(const Tensor& actual, const Tensor& expected);
[[nodiscard]] double worst_distance();

}  // namespace stowage::test
