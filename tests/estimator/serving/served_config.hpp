// A configuration that a row of a reference has, as it is served.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "estimator/memory/step_memory.hpp"
#include "estimator/serving/serving_passes.hpp"

namespace stowage::testing {

/// `row`: config, precision, context_length, users, cache, [prefill_chunk, encoder_length].
[[nodiscard]] Result<ServingPasses> passes_of_config(const nlohmann::json& row,
                                                     const std::string& attention);

/// As PyTorch runs it on an A100, as which the reference's shim answers.
[[nodiscard]] SizedStep sized_pass(const ServingPass& pass);

/// As PyTorch's allocator counts.
[[nodiscard]] std::int64_t peak_of_step(const SizedStep& step);

[[nodiscard]] inline std::int64_t peak_of_pass(const ServingPass& pass) {
  return peak_of_step(sized_pass(pass));
}

/// Rounded up as PyTorch's allocator does.
[[nodiscard]] std::int64_t in_blocks_of_512(std::int64_t bytes);

/// What Python's variables hold while a layer runs and our graph of an inference lets go of: named
/// here, so that the rest is equal to the byte.
struct HeldByCallers {
  std::int64_t others = 0;  ///< position ids, a window's mask
  /// Ours is a step among others, whose last output is still there; the trace's is the first.
  std::int64_t last_output = 0;
};

/// `row`: of serving.json or serving_quantised.json.
[[nodiscard]] HeldByCallers held_by_callers(const nlohmann::json& row, const ServingPass& pass);

}  // namespace stowage::testing
