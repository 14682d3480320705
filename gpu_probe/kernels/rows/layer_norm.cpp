#include "gpu_probe/kernels/bodies/layer_norm.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/row_shape.hpp"

namespace stowage::kernels {

Launches layer_norm_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const RowShape r = row_shape(call, x);
  require_same_shape("y", y, x);
  require_row_statistic("mean", call.writes[1], r);
  require_row_statistic("rstd", call.writes[2], r);
  const bool affine = call.reads.size() == 3;
  if (affine) {
    require_shape("weight", call.reads[1], r.width_shape);
    require_shape("bias", call.reads[2], r.width_shape);
  }
  const double eps = real(call, "eps");
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_group(
        body::LayerNormForward<T, Real>{
            elements<T>(x), elements<T>(y), r.width, affine ? any_floats(call.reads[1]) : no_floats,
            affine ? any_floats(call.reads[2]) : no_floats, any_floats(call.writes[1]),
            any_floats(call.writes[2]), static_cast<Real>(eps)},
        r.rows, threads_for(r.width));
  })};
}

Launches layer_norm_backward(const KernelCall& call, Arithmetic arithmetic) {
  const bool affine = call.reads.size() == 5;
  require_writes(call, affine ? 3 : 1);
  const auto &x = call.reads[0], &dy = call.reads[1], &dx = call.writes[0];
  const RowShape r = row_shape(call, x);
  require_same_shape("dy", dy, x);
  require_same_shape("dx", dx, x);
  if (affine) {
    require_shape("weight", call.reads[2], r.width_shape);
    require_shape("dw", call.writes[1], r.width_shape);
    require_shape("db", call.writes[2], r.width_shape);
  }
  const auto &mean = call.reads[affine ? 3 : 2], &rstd = call.reads[affine ? 4 : 3];
  require_row_statistic("mean", mean, r);
  require_row_statistic("rstd", rstd, r);
  Launches launches;
  in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    if (affine) {
      launches.push_back(each_group(
          body::LayerNormWeights<T, Real>{elements<T>(x), elements<T>(dy), r.rows, r.width,
                                          any_floats(mean), any_floats(rstd),
                                          any_floats(call.writes[1]), any_floats(call.writes[2])},
          body::tiles_of(r.width), body::largest_group));
    }
    launches.push_back(each_group(
        body::LayerNormBackward<T, Real>{elements<T>(x), elements<T>(dy), elements<T>(dx), r.width,
                                         affine ? any_floats(call.reads[2]) : no_floats,
                                         any_floats(mean), any_floats(rstd)},
        r.rows, threads_for(r.width)));
  });
  return launches;
}

}  // namespace stowage::kernels
