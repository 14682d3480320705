// A small model with each operator, and one with each loss, for tests that run them one by one,
// forward and backward.
#pragma once

#include <span>
#include <string>

namespace stowage::test {

struct OperatorModel {
  const char* name;
  const char* input;   ///< x's shape without the batch
  const char* layers;  ///< lines of `layers:`; the first reads `stem`, whose inputs have gradients
};

[[nodiscard]] std::span<const OperatorModel> operator_models();
[[nodiscard]] std::string operator_description(const OperatorModel& model);

struct LossModel {
  const char* name;
  const char* target;  ///< the input's shape and type
  const char* layers;  ///< that follow `head`, [batch, 4]
  const char* loss;
};

[[nodiscard]] std::span<const LossModel> loss_models();
[[nodiscard]] std::string loss_description(const LossModel& model);

}  // namespace stowage::test
