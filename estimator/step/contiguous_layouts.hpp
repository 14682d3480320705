// ContiguousLayouts: contiguous strides, made once for each shape.
#pragma once

#include <unordered_map>

#include "estimator/base/shape.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// A large step has a million contiguous tensors of a few shapes: their views share dimensions and
/// strides (base/shape.hpp), which takes less memory and lets equality be seen at a glance.
class ContiguousLayouts {
 public:
  /// contiguous_view (operator_lowering.hpp) of no storage yet.
  [[nodiscard]] TensorView view(const Shape& shape, DataType type);

 private:
  std::unordered_map<Shape, Shape, ShapeHash> strides_;
};

}  // namespace stowage
