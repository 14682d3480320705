// The catalogue's operators as text: what `stowage ops` prints and docs/model-description.md holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/kernel_table.hpp"

namespace stowage {

[[nodiscard]] std::string type_text(const AttributeSpec& attribute);     ///< "2 integers"
[[nodiscard]] std::string bounds_text(const AttributeSpec& attribute);   ///< "at least 1", ""
[[nodiscard]] std::string default_text(const AttributeSpec& attribute);  ///< or "required"
[[nodiscard]] std::string inputs_text(const OperatorRow& row);           ///< "1", "2 or more"
/// "lower precision", "fp32", "that of its inputs".
[[nodiscard]] std::string autocast_text(const OperatorRow& row);
/// In which types the device has the kernel: "float32", "any type", "none".
[[nodiscard]] std::string types_text(Kernel kernel, KernelDevice device);
[[nodiscard]] std::string types_text(std::span<const DataType> types);
/// The lines without their '\n'.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

/// The section `## Operators` of docs/model-description.md. A test holds the file to it.
[[nodiscard]] std::string operator_reference();

}  // namespace stowage
