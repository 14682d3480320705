// The rule of thumb that people work out by hand, to be printed beside the real figures.
//
// Stanford CS231n, "Convolutional Neural Networks: Architectures", Computational Considerations:
// the activations of every layer and, in training, as much for their gradients; the parameters,
// in training times three for their gradients and a step cache of the optimizer; and a row for
// miscellaneous memory, here the step's inputs. No workspace, no context, no allocator.
// In-place results and views are no activations of their own.
#pragma once

#include <cstdint>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/document/step_document.hpp"

namespace stowage {

struct RuleOfThumb {
  Bytes activations;  ///< and their gradients
  Bytes parameters;   ///< with gradients and step cache
  Bytes miscellaneous;
  [[nodiscard]] Bytes total() const { return activations + parameters + miscellaneous; }
};

/// Of a step that trains or infers. Errors: a document without `result_bytes`, a size past 64 bits.
[[nodiscard]] Result<RuleOfThumb> rule_of_thumb(const StepDocument& document, std::int64_t batch);

}  // namespace stowage
