// The sizes of an einsum's labels, and its shape rule.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "estimator/catalogue/einsum_equation.hpp"
#include "estimator/model/operator_row.hpp"

namespace stowage {

using LabelSizes = std::map<char, Affine>;

[[nodiscard]] Shape label_shape(std::string_view labels, const LabelSizes& sizes);
[[nodiscard]] std::vector<std::size_t> ranks_of(std::span<const Shape> shapes);
/// The size of each label; an axis of one element matches any size. Error: sizes that do not match.
[[nodiscard]] tl::expected<LabelSizes, InferenceError> label_sizes(const EinsumEquation& equation,
                                                                   std::span<const Shape> shapes);

[[nodiscard]] tl::expected<Inference, InferenceError> infer_einsum(
    const Attributes& attributes, std::span<const TensorType> inputs);

}  // namespace stowage
