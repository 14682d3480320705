// A step's file is read before it is written, by the reader that everybody's files go through.
#pragma once

#include <string>

#include "estimator/base/diagnostic.hpp"
#include "estimator/document/step_document.hpp"

namespace stowage {

/// write_step's text, once read_step has read the same step from it. O(text), like reading it.
/// Errors: the step is larger than a step file may be. Throws std::logic_error where the step
/// cannot be read for any other reason: then it is a mistake of the program.
[[nodiscard]] Result<std::string> write_readable_step(const StepDocument& document);

}  // namespace stowage
