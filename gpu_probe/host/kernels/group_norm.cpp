// Group normalisation: each image's channels in equal groups, normalised group by group. With one
// channel a group it is instance normalisation.
#include <cmath>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

/// x is [images, groups, channels of a group, area].
struct Groups {
  std::int64_t images, groups, channels, area;
  [[nodiscard]] std::int64_t elements() const { return channels * area; }
};

Groups groups_of(const KernelCall& call, const TensorArgument& x) {
  require(x.shape.size() >= 2, "{} has no channel axis", shape_text(x.shape));
  const std::int64_t groups = integer(call, "groups");
  require(groups >= 1 && x.shape[1] % groups == 0, "{} channels do not part into {} groups",
          x.shape[1], groups);
  return {x.shape[0], groups, x.shape[1] / groups, count(x.shape, 2, x.shape.size())};
}

void require_statistics(const Groups& g, const TensorArgument& mean, const TensorArgument& rstd) {
  require_shape("mean", mean, {g.images, g.groups});
  require_shape("rstd", rstd, {g.images, g.groups});
}

/// visit(offset in x, channel) for the elements of a group.
template <typename Visit>
void each_of_group(const Groups& g, std::int64_t group, Visit visit) {
  const std::int64_t begin = group * g.elements();
  for (std::int64_t i = 0; i < g.elements(); ++i) {
    visit(begin + i, group % g.groups * g.channels + i / g.area);
  }
}

}  // namespace

void group_norm_forward(const KernelCall& call) {
  const Groups g = groups_of(call, call.reads[0]);
  require_same_shape("y", call.writes[0], call.reads[0]);
  require_statistics(g, call.writes[1], call.writes[2]);
  const bool affine = call.reads.size() == 3;
  for (std::size_t i = 1; i < call.reads.size(); ++i) {
    require_shape(i == 1 ? "weight" : "bias", call.reads[i], {g.groups * g.channels});
  }
  const float* x = floats(call.reads[0]);
  const float* w = affine ? floats(call.reads[1]) : nullptr;
  const float* b = affine ? floats(call.reads[2]) : nullptr;
  float *y = mutable_floats(call.writes[0]), *means = mutable_floats(call.writes[1]),
        *rstds = mutable_floats(call.writes[2]);
  const double eps = real(call, "eps");
  const auto elements = static_cast<double>(g.elements());
  for (std::int64_t group = 0; group < g.images * g.groups; ++group) {
    double sum = 0, squares = 0;
    each_of_group(g, group, [&](std::int64_t i, std::int64_t) { sum += x[i]; });
    const double mean = sum / elements;
    each_of_group(g, group,
                  [&](std::int64_t i, std::int64_t) { squares += (x[i] - mean) * (x[i] - mean); });
    const double rstd = 1 / std::sqrt(squares / elements + eps);
    each_of_group(g, group, [&](std::int64_t i, std::int64_t channel) {
      const double normal = (x[i] - mean) * rstd;
      y[i] = static_cast<float>(affine ? normal * w[channel] + b[channel] : normal);
    });
    means[group] = static_cast<float>(mean);
    rstds[group] = static_cast<float>(rstd);
  }
}

void group_norm_backward(const KernelCall& call) {
  const bool affine = call.reads.size() == 5;
  require_writes(call, affine ? 3 : 1);
  const Groups g = groups_of(call, call.reads[0]);
  require_same_shape("dy", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  const auto &mean = call.reads[affine ? 3 : 2], &rstd = call.reads[affine ? 4 : 3];
  require_statistics(g, mean, rstd);
  const Sizes per_channel{g.groups * g.channels};
  if (affine) {
    require_shape("weight", call.reads[2], per_channel);
    require_shape("dw", call.writes[1], per_channel);
    require_shape("db", call.writes[2], per_channel);
  }
  const float *x = floats(call.reads[0]), *dy = floats(call.reads[1]);
  const float* w = affine ? floats(call.reads[2]) : nullptr;
  const float *means = floats(mean), *rstds = floats(rstd);
  float* dx = mutable_floats(call.writes[0]);
  std::vector<double> dw(static_cast<std::size_t>(per_channel[0])), db(dw.size());
  const auto elements = static_cast<double>(g.elements());
  for (std::int64_t group = 0; group < g.images * g.groups; ++group) {
    const double centre = means[group], scale = rstds[group];
    double sum = 0, product = 0;
    each_of_group(g, group, [&](std::int64_t i, std::int64_t channel) {
      const double normal = (x[i] - centre) * scale;
      const double gradient = affine ? double{dy[i]} * w[channel] : dy[i];
      sum += gradient;
      product += gradient * normal;
      dw[static_cast<std::size_t>(channel)] += dy[i] * normal;
      db[static_cast<std::size_t>(channel)] += dy[i];
    });
    each_of_group(g, group, [&](std::int64_t i, std::int64_t channel) {
      const double normal = (x[i] - centre) * scale;
      const double gradient = affine ? double{dy[i]} * w[channel] : dy[i];
      dx[i] = static_cast<float>(scale * (gradient - (sum + normal * product) / elements));
    });
  }
  if (!affine) return;
  float *out_w = mutable_floats(call.writes[1]), *out_b = mutable_floats(call.writes[2]);
  for (std::size_t i = 0; i < dw.size(); ++i) {
    out_w[i] = static_cast<float>(dw[i]);
    out_b[i] = static_cast<float>(db[i]);
  }
}

}  // namespace stowage::host
