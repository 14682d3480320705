// Extrema, variances and norms over axes.
#include "gpu_probe/kernels/bodies/statistics.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/reduced_axes.hpp"

namespace stowage::kernels {
namespace {

using body::Statistic;

struct StatisticCall {
  Statistic statistic;
  double number = 0;
};

StatisticCall statistic_of(const KernelCall& call) {
  const std::string operation = text(call, "operation", "");
  if (operation == "maximum") return {Statistic::maximum};
  if (operation == "minimum") return {Statistic::minimum};
  if (operation == "norm") return {Statistic::norm, real(call, "p")};
  if (operation == "deviation") return {Statistic::deviation, real(call, "correction", 1)};
  require(operation == "variance", "attribute 'operation' is '{}'", operation);
  return {Statistic::variance, real(call, "correction", 1)};
}

/// `make(over)` returns the body.
template <class T, class Real, class Make>
Launch over_axes(const KernelCall& call, const TensorArgument& y, Make make) {
  constexpr std::int64_t few = 32;
  const auto& x = call.reads[0];
  const Reduction axes = reduction(x.shape, reduced_axes(call, x, y));
  const StatisticCall wanted = statistic_of(call);
  require(axes.together > 0, "{} has no elements along its axes", shape_text(x.shape));
  const auto body =
      make(body::StatisticOver<T, Real>{elements<T>(x), axes.kept, axes.gone, axes.together,
                                        wanted.statistic, static_cast<Real>(wanted.number)});
  return axes.together < few ? each_index(body, axes.places)
                             : each_group(body, axes.places, threads_for(axes.together));
}

}  // namespace

Launches statistic_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto& y = call.writes[0];
  return {in_formats(call.reads[0].type, arithmetic, [&]<class T, class Real>() {
    return over_axes<T, Real>(call, y, [&](const auto& over) {
      return body::StatisticForward<T, Real>{over, any_floats(y)};
    });
  })};
}

Launches statistic_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.reads[1], &dy = call.reads[2], &dx = call.writes[0];
  require(count(dy.shape) == count(y.shape), "dy is {} where {} is needed", shape_text(dy.shape),
          shape_text(y.shape));
  require_same_shape("dx", dx, x);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return over_axes<T, Real>(call, y, [&](const auto& over) {
      return body::StatisticBackward<T, Real>{over, any_floats(y), any_floats(dy), elements<T>(dx)};
    });
  })};
}

}  // namespace stowage::kernels
