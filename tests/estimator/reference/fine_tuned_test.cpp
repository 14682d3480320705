// Models with adapters, quantised bases and checkpointed blocks, against peft, bitsandbytes and
// torchao: their parameters. What they save and their peaks are compared with all other variants
// (variant_test.cpp).
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/estimator/reference/reference_model.hpp"

namespace stowage::reference {

namespace {

std::int64_t state_bytes(const ModelGraph& model, bool buffers) {
  std::int64_t bytes = 0;
  for (const Parameter& parameter : model.parameters) {
    if (parameter.is_buffer != buffers) continue;
    bytes += element_count(parameter.type.shape).constant * element_size(parameter.type.type);
  }
  return bytes;
}

}  // namespace

TEST_CASE(
    "a fine-tuned model has peft's parameters: all, those that are trained, and their bytes") {
  int compared = 0;
  for (const ReferenceModel& reference : reference_models()) {
    if (!reference.is_fine_tuned) continue;
    CAPTURE(reference.file);
    const ModelGraph model = our_model(reference);
    CHECK(parameter_count(model) == reference.parameters);
    CHECK(trainable_parameter_count(model) == reference.trained_parameters);
    CHECK(state_bytes(model, false) == reference.parameter_bytes);
    CHECK(state_bytes(model, true) == reference.buffer_bytes);
    ++compared;
  }
  CHECK(compared >= 18);
}

}  // namespace stowage::reference
