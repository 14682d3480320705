// Group normalisation. With one channel a group it is instance normalisation.
#include "gpu_probe/kernels/bodies/group_norm.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/row_shape.hpp"

namespace stowage::kernels {
namespace {

struct NormGroups {
  body::Planes planes;
  body::ChannelGroups of;

  [[nodiscard]] std::int64_t count() const { return planes.images * of.groups; }
  [[nodiscard]] Sizes per_channel() const { return {planes.channels}; }
};

NormGroups groups_of(const KernelCall& call, const TensorArgument& x) {
  const body::Planes planes = planes_of(x);
  const std::int64_t groups = integer(call, "groups");
  require(groups >= 1 && planes.channels % groups == 0, "{} channels do not part into {} groups",
          planes.channels, groups);
  return {planes, {groups, planes.channels / groups, planes.area}};
}

void require_statistics(const NormGroups& g, const TensorArgument& mean,
                        const TensorArgument& rstd) {
  require_shape("mean", mean, {g.planes.images, g.of.groups});
  require_shape("rstd", rstd, {g.planes.images, g.of.groups});
}

}  // namespace

Launches group_norm_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const NormGroups g = groups_of(call, x);
  require_same_shape("y", y, x);
  require_statistics(g, call.writes[1], call.writes[2]);
  const bool affine = call.reads.size() == 3;
  for (std::size_t i = 1; i < call.reads.size(); ++i) {
    require_shape(i == 1 ? "weight" : "bias", call.reads[i], g.per_channel());
  }
  const double eps = real(call, "eps");
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_group(
        body::GroupNormForward<T, Real>{
            elements<T>(x), elements<T>(y), g.of, affine ? any_floats(call.reads[1]) : no_floats,
            affine ? any_floats(call.reads[2]) : no_floats, any_floats(call.writes[1]),
            any_floats(call.writes[2]), static_cast<Real>(eps)},
        g.count(), threads_for(g.of.elements()));
  })};
}

Launches group_norm_backward(const KernelCall& call, Arithmetic arithmetic) {
  const bool affine = call.reads.size() == 5;
  require_writes(call, affine ? 3 : 1);
  const auto &x = call.reads[0], &dy = call.reads[1], &dx = call.writes[0];
  const NormGroups g = groups_of(call, x);
  require_same_shape("dy", dy, x);
  require_same_shape("dx", dx, x);
  const auto &mean = call.reads[affine ? 3 : 2], &rstd = call.reads[affine ? 4 : 3];
  require_statistics(g, mean, rstd);
  if (affine) {
    require_shape("weight", call.reads[2], g.per_channel());
    require_shape("dw", call.writes[1], g.per_channel());
    require_shape("db", call.writes[2], g.per_channel());
  }
  Launches launches;
  in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    if (affine) {
      launches.push_back(each_group(
          body::GroupNormWeights<T, Real>{elements<T>(x), elements<T>(dy), g.planes, g.of.groups,
                                          g.of.channels, any_floats(mean), any_floats(rstd),
                                          any_floats(call.writes[1]), any_floats(call.writes[2])},
          g.planes.channels, threads_for(g.planes.of_channel())));
    }
    launches.push_back(each_group(
        body::GroupNormBackward<T, Real>{elements<T>(x), elements<T>(dy), elements<T>(dx), g.of,
                                         affine ? any_floats(call.reads[2]) : no_floats,
                                         any_floats(mean), any_floats(rstd)},
        g.count(), threads_for(g.of.elements())));
  });
  return launches;
}

}  // namespace stowage::kernels
