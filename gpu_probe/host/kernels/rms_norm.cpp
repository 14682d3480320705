// Root mean square normalisation: y = w x / sqrt(mean(x^2) + eps) over the trailing axes.
#include <cmath>

#include "gpu_probe/host/kernels/kernels.hpp"
#include "gpu_probe/kernels/rows/row_shape.hpp"

namespace stowage::host {

void rms_norm_forward(const KernelCall& call) {
  const RowShape r = row_shape(call, call.reads[0]);
  require_same_shape("y", call.writes[0], call.reads[0]);
  require_row_statistic("rstd", call.writes[1], r);
  const bool weighted = call.reads.size() == 2;
  if (weighted) require_shape("weight", call.reads[1], r.width_shape);
  const float* x = floats(call.reads[0]);
  const float* w = weighted ? floats(call.reads[1]) : nullptr;
  float *y = mutable_floats(call.writes[0]), *rstds = mutable_floats(call.writes[1]);
  const double eps = real(call, "eps");
  for (std::int64_t row = 0; row < r.rows; ++row, x += r.width, y += r.width) {
    double squares = 0;
    for (std::int64_t i = 0; i < r.width; ++i) squares += double{x[i]} * x[i];
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(r.width) + eps);
    for (std::int64_t i = 0; i < r.width; ++i) {
      y[i] = static_cast<float>(weighted ? x[i] * rstd * w[i] : x[i] * rstd);
    }
    rstds[row] = static_cast<float>(rstd);
  }
}

void rms_norm_backward(const KernelCall& call) {
  const bool weighted = call.reads.size() == 4;
  require_writes(call, weighted ? 2 : 1);
  const RowShape r = row_shape(call, call.reads[0]);
  require_same_shape("dy", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  require_row_statistic("rstd", call.reads.back(), r);
  if (weighted) {
    require_shape("weight", call.reads[2], r.width_shape);
    require_shape("dw", call.writes[1], r.width_shape);
  }
  const float *x = floats(call.reads[0]), *dy = floats(call.reads[1]);
  const float* w = weighted ? floats(call.reads[2]) : nullptr;
  const float* rstds = floats(call.reads.back());
  float* dx = mutable_floats(call.writes[0]);
  std::vector<double> dw(weighted ? static_cast<std::size_t>(r.width) : 0);
  for (std::int64_t row = 0; row < r.rows; ++row, x += r.width, dy += r.width, dx += r.width) {
    const double rstd = rstds[row];
    double product = 0;
    for (std::int64_t i = 0; i < r.width; ++i) {
      const double normal = x[i] * rstd;
      product += (weighted ? double{dy[i]} * w[i] : dy[i]) * normal;
      if (weighted) dw[static_cast<std::size_t>(i)] += dy[i] * normal;
    }
    const double share = product / static_cast<double>(r.width);
    for (std::int64_t i = 0; i < r.width; ++i) {
      const double gradient = weighted ? double{dy[i]} * w[i] : dy[i];
      dx[i] = static_cast<float>(rstd * (gradient - x[i] * rstd * share));
    }
  }
  if (!weighted) return;
  float* out = mutable_floats(call.writes[1]);
  for (std::size_t i = 0; i < dw.size(); ++i) out[i] = static_cast<float>(dw[i]);
}

}  // namespace stowage::host
