// Gradients against differences of the loss: whether a step's backward pass is the derivative of
// its forward pass, however its rows put kernels together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage::test {

struct GradientCheck {
  std::string parameter;
  /// How far the loss's slopes along the gradient and along a random direction are from what the
  /// gradient says; over the gradient's length, or a tenth of the step's longest gradient's, below
  /// which a float32 loss says nothing.
  double along_error = 0, random_error = 0;
};

/// Of every parameter that has a gradient other than 0. Central differences of a step run with
/// everything resident; `length` is how far the parameter is moved each way. Precondition: one
/// micro-batch.
[[nodiscard]] std::vector<GradientCheck> check_gradients(const StepGraph& graph, std::int64_t batch,
                                                         double length);

}  // namespace stowage::test
