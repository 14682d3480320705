#include "gpu_probe/kernels/bodies/local_response_norm.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/row_shape.hpp"

namespace stowage::kernels {
namespace {

std::int64_t neighbourhood_size(const KernelCall& call) {
  const std::int64_t size = integer(call, "size");
  require(size >= 1, "attribute 'size' is {}", size);
  return size;
}

template <class Body>
Launch each_plane(const Body& body, const body::Planes& p) {
  return each_group(body, p.images * p.channels, threads_for(p.area));
}

}  // namespace

Launches local_response_norm_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0], &scale = call.writes[1];
  require_same_shape("y", y, x);
  require_same_shape("scale", scale, x);
  const body::Planes p = planes_of(x);
  const std::int64_t size = neighbourhood_size(call);
  const double share = real(call, "alpha") / static_cast<double>(size), beta = real(call, "beta"),
               k = real(call, "k");
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_plane(
        body::LocalResponseNormForward<T, Real>{elements<T>(x), elements<T>(y), elements<T>(scale),
                                                body::Neighbours{p, size / 2, (size - 1) / 2},
                                                static_cast<Real>(share), static_cast<Real>(beta),
                                                static_cast<Real>(k)},
        p);
  })};
}

Launches local_response_norm_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &dx = call.writes[0];
  for (std::size_t i = 1; i < 4; ++i) {
    require_same_shape(fmt::format("read {}", i), call.reads[i], x);
  }
  require_same_shape("dx", dx, x);
  const body::Planes p = planes_of(x);
  const std::int64_t size = neighbourhood_size(call);
  const double beta = real(call, "beta"),
               share = 2 * real(call, "alpha") * beta / static_cast<double>(size);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    // Backward needs the channels that have c among their neighbours: those of c with `below` and
    // `above` exchanged.
    return each_plane(
        body::LocalResponseNormBackward<T, Real>{elements<T>(x), elements<T>(call.reads[1]),
                                                 elements<T>(call.reads[2]),
                                                 elements<T>(call.reads[3]), elements<T>(dx),
                                                 body::Neighbours{p, (size - 1) / 2, size / 2},
                                                 static_cast<Real>(share), static_cast<Real>(beta)},
        p);
  })};
}

}  // namespace stowage::kernels
