// A small model of each operator, as a description.
#pragma once

#include <span>
#include <string>

namespace stowage::test {

struct OperatorModel {
  const char* name;
  const char* input;   ///< x's shape behind the batch
  const char* layers;  ///< lines of `layers:`; the first reads `stem`, whose inputs have gradients
};

/// Every operator of the catalogue that a kernel of ours runs, some of them in several ways.
[[nodiscard]] std::span<const OperatorModel> operator_models();

/// The stem makes x a tensor that needs a gradient; the head makes any result one of three numbers.
[[nodiscard]] std::string operator_description(const OperatorModel& model);

}  // namespace stowage::test
