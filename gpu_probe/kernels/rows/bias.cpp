#include "gpu_probe/kernels/rows/bias.hpp"

#include "gpu_probe/kernels/bodies/bias.hpp"
#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/row_shape.hpp"

namespace stowage::kernels {

Launch rows_of_bias(const TensorArgument& y, const TensorArgument& bias, Arithmetic arithmetic) {
  return in_formats(y.type, arithmetic, [&]<class T, class Real>() {
    return each_index(body::RowsOfBias<T, Real>{elements<T>(y), y.shape.back(), any_floats(bias)},
                      count(y.shape));
  });
}

Launch bias_of_channels(const TensorArgument& y, const TensorArgument& bias,
                        Arithmetic arithmetic) {
  const body::Planes p = planes_of(y);
  return in_formats(y.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::BiasOfChannels<T, Real>{elements<T>(y), p.channels, p.area, any_floats(bias)},
        count(y.shape));
  });
}

}  // namespace stowage::kernels
