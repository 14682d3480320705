// What a step's storages hold before it: the same values wherever the step is executed.
//
// Values depend on the storage's name, on what its first readers take it for, and on nothing else:
// weights are uniform with variance 1 / fan-in, normalisation weights near 1, biases near 0,
// running means 0 and variances 1, optimizer state 0 (float32 copies of parameters: what those
// are), inputs of unit variance; targets are classes of their logits and tokens are rows of every
// table that they are looked up in; what a logarithm or a root is taken of, and divisors, are
// positive; what a loss takes for probabilities lies between 0 and 1. They are rounded to the
// storage's format; under autocast a parameter is what its copies in 16 bits are taken for.
#pragma once

#include <cstddef>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// By StorageId; empty for what holds nothing before the step. `batch` is of one micro-batch.
[[nodiscard]] std::vector<std::vector<std::byte>> initial_values(const StepGraph& graph,
                                                                 std::int64_t batch);

}  // namespace stowage
