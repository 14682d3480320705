// Axes, permutations and slices that a file gives. Rules and constant folding take them from here,
// so that none is used before it is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "estimator/onnx/onnx_value.hpp"

namespace stowage {

/// The axis counted from the front; nullopt: out of range.
[[nodiscard]] std::optional<std::size_t> axis_in(std::int64_t axis, std::size_t rank);

/// A node's axes, from its attribute or, in later opsets, its second input. nullopt: they are not
/// constants, or more than a tensor can have.
[[nodiscard]] std::optional<std::vector<std::int64_t>> axes_of(
    const OnnxNode& node, const std::vector<const OnnxValue*>& inputs, std::size_t input = 1);

/// By axis of a tensor with `rank` axes: whether `axes` names it. nullopt: one is out of range or
/// named twice.
[[nodiscard]] std::optional<std::vector<bool>> marked_axes(const std::vector<std::int64_t>& axes,
                                                           std::size_t rank);

/// The order of a Transpose, counted from the front; without `perm` it is reversed. nullopt: `perm`
/// does not name each of the axes once.
[[nodiscard]] std::optional<std::vector<std::size_t>> permutation_of(const OnnxNode& node,
                                                                     std::size_t rank);

/// A slice of one axis, as the file gives it: bounds may be negative or beyond the axis.
struct OnnxSlice {
  std::size_t axis = 0;
  Affine start, end;
  std::int64_t step = 1;  ///< not 0
};

/// The slices of a Slice, each of another axis. Error: why they cannot be taken.
[[nodiscard]] tl::expected<std::vector<OnnxSlice>, std::string> slices_of(
    const OnnxNode& node, const std::vector<const OnnxValue*>& inputs);

/// The sizes of a Split's parts, from its attribute, its second input or in equal parts. nullopt:
/// they do not add up to `extent`, or are not one per output.
[[nodiscard]] std::optional<std::vector<std::int64_t>> split_sizes(
    const OnnxNode& node, const std::vector<const OnnxValue*>& inputs, std::int64_t extent);

}  // namespace stowage
