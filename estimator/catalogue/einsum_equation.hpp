// The equation of an einsum, "bhid,bhjd->bhij", and how PyTorch runs it: operands are taken
// together one after the other, from the left (ATen/native/Linear.cpp, einsum and sumproduct_pair).
// A label that no later operand and not the result has is summed over as soon as it can be.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "estimator/base/shape.hpp"

namespace stowage {

/// A letter an axis.
struct EinsumEquation {
  std::vector<std::string> operands;
  std::string result;
};

/// Refused, in words: what is no equation of `operands` operands, ellipses, and a label twice in
/// one of them. Without an arrow the result has the labels that stand once, in the alphabet's
/// order.
[[nodiscard]] tl::expected<EinsumEquation, std::string> read_equation(std::string_view text,
                                                                      std::size_t operands);

/// What has been taken together so far (`left`), or the first operand, with the next one.
struct EinsumStep {
  std::string left, right;                               ///< labels, before sums
  std::string left_sums, right_sums;                     ///< summed within one alone, first
  std::string batch, left_only, right_only, contracted;  ///< of the product; contracted empty: one
                                                         ///< element by element, of all labels
  std::string result;                                    ///< the product's labels in order
};
[[nodiscard]] std::vector<EinsumStep> einsum_steps(const EinsumEquation& equation);

}  // namespace stowage
