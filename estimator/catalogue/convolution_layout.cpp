// In which layout a convolution runs.
#include "estimator/catalogue/convolution.hpp"

namespace stowage {

bool convolves_channels_last(const TensorView& input, const TensorView& filter) {
  if (input.type == DataType::float64) return false;
  return suggests_channels_last(input) || suggests_channels_last(filter);
}

}  // namespace stowage
