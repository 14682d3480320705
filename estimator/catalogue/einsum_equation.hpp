// The equation of an einsum, "bhid,bhjd->bhij", and the products that PyTorch runs for it
// (ATen/native/Linear.cpp, einsum and sumproduct_pair). A letter that occurs twice in an operand
// means its diagonal; axes of one element are dropped; operands are multiplied pair by pair from
// the left. A label that occurs in no later operand and not in the result is summed over as early
// as possible.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "estimator/base/shape.hpp"

namespace stowage {

/// One label per axis: a letter, or a digit for an axis of the ellipsis, the last of which is '9'.
struct EinsumEquation {
  std::vector<std::string> operands;
  std::string result;
};

/// Reads an equation. `ranks`: the number of axes of each operand. Without an arrow the result has
/// the axes of the ellipsis and the labels that occur once, in alphabetical order. Error: a
/// sentence that says why it is not an equation for such operands.
[[nodiscard]] tl::expected<EinsumEquation, std::string> read_equation(
    std::string_view text, std::span<const std::size_t> ranks);

/// The labels without repetitions, in order of their first occurrence.
[[nodiscard]] std::string distinct_labels(std::string_view labels);
/// The equation after diagonals are taken and axes of one element are dropped; the result loses a
/// label that no operand keeps. `shapes`: of the operands.
[[nodiscard]] EinsumEquation reduced_equation(const EinsumEquation& equation,
                                              std::span<const Shape> shapes);

/// One product: the result of the products so far, or the first operand (`left`), with the next
/// operand (`right`).
struct EinsumStep {
  std::string left, right;            ///< labels, before sums
  std::string left_sums, right_sums;  ///< labels summed within one operand, before the product
  /// Labels of the product; without `contracted` it is element by element, over all labels.
  std::string batch, left_only, right_only, contracted;
  std::string result;  ///< the product's labels in order
};
/// The products of an equation, in order. Precondition: no label occurs twice in an operand.
[[nodiscard]] std::vector<EinsumStep> einsum_steps(const EinsumEquation& equation);

}  // namespace stowage
