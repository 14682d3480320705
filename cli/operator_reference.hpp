// The catalogue's operators as text: what `stowage ops` prints and docs/model-description.md holds.
#pragma once

#include <string>

#include "estimator/catalogue/operator_row.hpp"

namespace stowage {

[[nodiscard]] std::string type_text(const AttributeSpec& attribute);     ///< "2 integers"
[[nodiscard]] std::string bounds_text(const AttributeSpec& attribute);   ///< "at least 1", ""
[[nodiscard]] std::string default_text(const AttributeSpec& attribute);  ///< or "required"
[[nodiscard]] std::string inputs_text(const OperatorRow& row);           ///< "1", "2 or more"
/// "lower precision", "fp32", "the widest of its inputs", "that of its inputs".
[[nodiscard]] std::string autocast_text(const OperatorRow& row);

/// The section `## Operators` of docs/model-description.md. A test holds the file to it.
[[nodiscard]] std::string operator_reference();

}  // namespace stowage
