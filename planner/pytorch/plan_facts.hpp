// Facts of a step as a plan for PyTorch has them.
#pragma once

#include <cstdint>

#include "estimator/step/step_graph.hpp"
#include "planner/pytorch/pytorch_plan.hpp"

namespace stowage {

/// The inputs and the output of an inference in so many parts. Labels, which a source of recordings
/// makes besides, are no inputs.
[[nodiscard]] InferenceChunks chunks_of(const StepGraph& step, std::int64_t parts);

}  // namespace stowage
