// The attribute `axis` of operators that work along one axis.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// The axis, counted from 0. Error: `shape` has no such axis.
[[nodiscard]] tl::expected<std::size_t, InferenceError> axis_attribute(const Attributes& attributes,
                                                                       const Shape& shape);
/// A kernel's attributes: the axis of the first input, counted from 0.
[[nodiscard]] Attributes axis_from_zero(const OperatorLowering& lowering);
[[nodiscard]] AttributeSpec axis_spec(std::optional<std::int64_t> value, std::string_view doc);

}  // namespace stowage
