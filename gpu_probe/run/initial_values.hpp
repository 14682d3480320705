// The values that a step's storages hold before it. They are the same wherever the step is
// executed.
//
// Values depend only on the storage's name and on how its first readers use it:
//
//   weights                 uniform with variance 1 / fan-in
//   normalisation weights   near 1
//   biases                  near 0
//   running means           0
//   running variances       1
//   optimizer state         0; a float32 copy of a parameter has the parameter's values
//   inputs                  unit variance
//   targets                 classes of their logits
//   tokens                  rows of every table that they are looked up in
//   arguments of logarithms and roots, divisors   positive
//   probabilities of a loss                       between 0 and 1
//
// Values are rounded to the storage's format. Under autocast a parameter has the values that its
// 16-bit copies need.
#pragma once

#include <cstddef>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// By StorageId; empty for storages that hold nothing before the step. `batch`: of one micro-batch.
[[nodiscard]] std::vector<std::vector<std::byte>> initial_values(const StepGraph& graph,
                                                                 std::int64_t batch);

}  // namespace stowage
