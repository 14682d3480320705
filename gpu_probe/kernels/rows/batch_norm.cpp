#include "gpu_probe/kernels/bodies/batch_norm.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/row_shape.hpp"
#include "gpu_probe/kernels/rows/unary_function.hpp"

namespace stowage::kernels {
namespace {

using body::Floats;
using body::Planes;

void require_per_channel(const KernelCall& call, std::size_t first_read, std::size_t first_write,
                         std::int64_t channels) {
  for (std::size_t i = first_read; i < call.reads.size(); ++i) {
    require_shape(fmt::format("read {}", i), call.reads[i], {channels});
  }
  for (std::size_t i = first_write; i < call.writes.size(); ++i) {
    require_shape(fmt::format("write {}", i), call.writes[i], {channels});
  }
}

/// The arguments of all forward kernels: x, [w, b] and two statistics.
struct ForwardCall {
  Planes planes;
  Floats w, b, mean, variance;
};

ForwardCall forward_call(const KernelCall& call) {
  const bool affine = call.reads.size() == 5;
  const Planes p = planes_of(call.reads[0]);
  require_same_shape("y", call.writes[0], call.reads[0]);
  require_per_channel(call, 1, 1, p.channels);
  return {p, affine ? any_floats(call.reads[1]) : no_floats,
          affine ? any_floats(call.reads[2]) : no_floats, any_floats(call.reads[affine ? 3 : 1]),
          any_floats(call.reads[affine ? 4 : 2])};
}

template <class T, class Real>
body::Normalised<T, Real> normalised(const KernelCall& call, const ForwardCall& r) {
  return {elements<T>(call.reads[0]), elements<T>(call.writes[0]), r.planes, r.w, r.b};
}

/// `make<T, Real>()` returns the body.
template <class Make>
Launches of_channels(const KernelCall& call, Arithmetic arithmetic, const Planes& p, Make make) {
  return {in_formats(call.reads[0].type, arithmetic, [&]<class T, class Real>() {
    return each_group(make.template operator()<T, Real>(), p.channels, threads_for(p.of_channel()));
  })};
}

}  // namespace

Launches batch_norm_forward(const KernelCall& call, Arithmetic arithmetic) {
  const ForwardCall r = forward_call(call);
  const double eps = real(call, "eps"), momentum = real(call, "momentum");
  require(r.planes.of_channel() > 1, "{} has one value a channel; a batch's variance needs more",
          shape_text(call.reads[0].shape));
  return of_channels(call, arithmetic, r.planes, [&]<class T, class Real>() {
    return body::BatchNormForward<T, Real>{normalised<T, Real>(call, r),
                                           r.mean,
                                           r.variance,
                                           any_floats(call.writes[1]),
                                           any_floats(call.writes[2]),
                                           any_floats(call.writes[3]),
                                           any_floats(call.writes[4]),
                                           static_cast<Real>(eps),
                                           static_cast<Real>(momentum)};
  });
}

Launches batch_norm_apply(const KernelCall& call, Arithmetic arithmetic) {
  const ForwardCall r = forward_call(call);
  const bool is_activated = !text(call, "function", "").empty();
  const body::Unary f = is_activated ? unary_function(call) : body::Unary{};
  return of_channels(call, arithmetic, r.planes, [&]<class T, class Real>() {
    return body::BatchNormApply<T, Real>{normalised<T, Real>(call, r), r.mean, r.variance,
                                         is_activated, f};
  });
}

Launches batch_norm_inference(const KernelCall& call, Arithmetic arithmetic) {
  const ForwardCall r = forward_call(call);
  const double eps = real(call, "eps");
  return of_channels(call, arithmetic, r.planes, [&]<class T, class Real>() {
    return body::BatchNormInference<T, Real>{normalised<T, Real>(call, r), r.mean, r.variance,
                                             static_cast<Real>(eps)};
  });
}

Launches batch_norm_backward(const KernelCall& call, Arithmetic arithmetic) {
  const bool affine = call.reads.size() == 5;
  require_writes(call, affine ? 3 : 1);
  const auto &x = call.reads[0], &dy = call.reads[1], &dx = call.writes[0];
  const Planes p = planes_of(x);
  require_same_shape("dy", dy, x);
  require_same_shape("dx", dx, x);
  require_per_channel(call, 2, 1, p.channels);
  return of_channels(call, arithmetic, p, [&]<class T, class Real>() {
    return body::BatchNormBackward<T, Real>{elements<T>(x),
                                            elements<T>(dy),
                                            elements<T>(dx),
                                            p,
                                            affine ? any_floats(call.reads[2]) : no_floats,
                                            any_floats(call.reads[affine ? 3 : 2]),
                                            any_floats(call.reads[affine ? 4 : 3]),
                                            affine ? any_floats(call.writes[1]) : no_floats,
                                            affine ? any_floats(call.writes[2]) : no_floats};
  });
}

}  // namespace stowage::kernels
