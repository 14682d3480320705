#include "gpu_probe/kernels/bodies/rms_norm.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/row_shape.hpp"

namespace stowage::kernels {

Launches rms_norm_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const RowShape r = row_shape(call, x);
  require_same_shape("y", y, x);
  require_row_statistic("rstd", call.writes[1], r);
  const bool weighted = call.reads.size() == 2;
  if (weighted) require_shape("weight", call.reads[1], r.width_shape);
  const double eps = real(call, "eps");
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_group(
        body::RmsNormForward<T, Real>{elements<T>(x), elements<T>(y), r.width,
                                      weighted ? any_floats(call.reads[1]) : no_floats,
                                      any_floats(call.writes[1]), static_cast<Real>(eps)},
        r.rows, threads_for(r.width));
  })};
}

Launches rms_norm_backward(const KernelCall& call, Arithmetic arithmetic) {
  const bool weighted = call.reads.size() == 4;
  require_writes(call, weighted ? 2 : 1);
  const auto &x = call.reads[0], &dy = call.reads[1], &dx = call.writes[0];
  const RowShape r = row_shape(call, x);
  require_same_shape("dy", dy, x);
  require_same_shape("dx", dx, x);
  const auto& rstd = call.reads.back();
  require_row_statistic("rstd", rstd, r);
  if (weighted) {
    require_shape("weight", call.reads[2], r.width_shape);
    require_shape("dw", call.writes[1], r.width_shape);
  }
  Launches launches;
  in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    if (weighted) {
      launches.push_back(
          each_group(body::RmsNormWeights<T, Real>{elements<T>(x), elements<T>(dy), r.rows, r.width,
                                                   any_floats(rstd), any_floats(call.writes[1])},
                     body::tiles_of(r.width), body::largest_group));
    }
    launches.push_back(each_group(
        body::RmsNormBackward<T, Real>{elements<T>(x), elements<T>(dy), elements<T>(dx), r.width,
                                       weighted ? any_floats(call.reads[2]) : no_floats,
                                       any_floats(rstd)},
        r.rows, threads_for(r.width)));
  });
  return launches;
}

}  // namespace stowage::kernels
