// Kernels that go element by element: accumulation, scaling.
#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {

void scale(const KernelCall& call) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  const double factor = real(call, "factor", 1), offset = real(call, "offset", 0);
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) {
    y[i] = static_cast<float>(factor * x[i] + offset);
  }
}

void accumulate(const KernelCall& call) {
  require_same_shape("b", call.reads[1], call.reads[0]);
  require_same_shape("the result", call.writes[0], call.reads[0]);
  const float *a = floats(call.reads[0]), *b = floats(call.reads[1]);
  float* result = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) result[i] = a[i] + b[i];
}

}  // namespace stowage::host
