// check_gradients(): compares gradients with differences of the loss: whether a step's backward
// pass is the derivative of its forward pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage::test {

struct GradientCheck {
  std::string parameter;
  /// How far the slopes of the loss along the gradient and along a random direction are from the
  /// slopes that the gradient gives. Divided by the gradient's length, or by a tenth of the longest
  /// gradient's, below which a float32 loss is too coarse.
  double along_error = 0, random_error = 0;
};

/// Checks every parameter whose gradient is not 0, by central differences of a step with everything
/// resident. `length`: how far the parameter is moved in each direction. Precondition: one
/// micro-batch.
[[nodiscard]] std::vector<GradientCheck> check_gradients(const StepGraph& graph, std::int64_t batch,
                                                         double length);

}  // namespace stowage::test
