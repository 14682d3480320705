// The equation of an einsum, "bhid,bhjd->bhij", and how PyTorch runs it (ATen/native/Linear.cpp,
// einsum and sumproduct_pair): a letter that stands twice in an operand means its diagonal, an axis
// of one element is no axis, and operands are taken together one after the other, from the left. A
// label that no later operand and not the result has is summed over as soon as it can be.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "estimator/base/shape.hpp"

namespace stowage {

/// A label an axis: a letter, or a digit for an axis of the ellipsis, the last of them '9'.
struct EinsumEquation {
  std::vector<std::string> operands;
  std::string result;
};

/// `ranks`: how many axes each operand has. Refused, in words: what is no equation of them. Without
/// an arrow the result has the ellipsis' axes and the labels that stand once, in the alphabet's
/// order.
[[nodiscard]] tl::expected<EinsumEquation, std::string> read_equation(
    std::string_view text, std::span<const std::size_t> ranks);

/// Each label once, in order.
[[nodiscard]] std::string distinct_labels(std::string_view labels);
/// What is left when diagonals are taken and axes of one element are dropped, from the result too
/// where no operand keeps them. `shapes`: of the operands.
[[nodiscard]] EinsumEquation reduced_equation(const EinsumEquation& equation,
                                              std::span<const Shape> shapes);

/// What has been taken together so far (`left`), or the first operand, with the next one.
struct EinsumStep {
  std::string left, right;                               ///< labels, before sums
  std::string left_sums, right_sums;                     ///< summed within one alone, first
  std::string batch, left_only, right_only, contracted;  ///< of the product; contracted empty: one
                                                         ///< element by element, of all labels
  std::string result;                                    ///< the product's labels in order
};
/// Precondition: no label stands twice in an operand.
[[nodiscard]] std::vector<EinsumStep> einsum_steps(const EinsumEquation& equation);

}  // namespace stowage
