// In which layout a convolution runs.
#include "estimator/catalogue/convolution.hpp"

namespace stowage {

bool runs_channels_last(const OperatorLowering& lowering, const TensorView& view) {
  return lowering.pytorch() && suggests_channels_last(view);
}

bool convolves_channels_last(const OperatorLowering& lowering, const TensorView& input,
                             const TensorView& filter) {
  if (!lowering.pytorch() || input.type == DataType::float64) return false;
  return suggests_channels_last(input) || suggests_channels_last(filter);
}

}  // namespace stowage
