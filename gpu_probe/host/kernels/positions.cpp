// Constants of positions: rotary tables, and T5's buckets of relative positions.
#include <algorithm>
#include <cmath>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

/// Half of the buckets hold one distance each, the others grow with its logarithm up to
/// max_distance (Raffel et al., 2020; transformers' T5Attention._relative_position_bucket).
std::int64_t bucket(std::int64_t distance, std::int64_t buckets, std::int64_t max_distance,
                    bool bidirectional) {
  std::int64_t first = 0;
  if (bidirectional) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<std::int64_t>(-distance, 0);
  }
  const std::int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const double ratio = static_cast<double>(distance) / static_cast<double>(exact);
  const double range = static_cast<double>(max_distance) / static_cast<double>(exact);
  const auto further = static_cast<std::int64_t>(std::log(ratio) / std::log(range) *
                                                 static_cast<double>(buckets - exact));
  return first + std::min(exact + further, buckets - 1);
}

}  // namespace

void rotary_table(const KernelCall& call) {
  const auto &cos = call.writes[0], &sin = call.writes[1];
  require_same_shape("sin", sin, cos);
  require(cos.shape.size() == 2 && cos.shape[1] % 2 == 0,
          "a table is [positions, features], not {}", shape_text(cos.shape));
  const double base = real(call, "base", 10000);
  const std::int64_t features = cos.shape[1], half = features / 2;
  float *cosines = mutable_floats(cos), *sines = mutable_floats(sin);
  for (std::int64_t at = 0; at < count(cos.shape); ++at) {
    const double exponent =
        2.0 * static_cast<double>(at % features % half) / static_cast<double>(features);
    const double angle = static_cast<double>(at / features) / std::pow(base, exponent);
    cosines[at] = static_cast<float>(std::cos(angle));
    sines[at] = static_cast<float>(std::sin(angle));
  }
}

void relative_buckets(const KernelCall& call) {
  const auto& y = call.writes[0];
  require(y.shape.size() == 2, "buckets are [queries, keys], not {}", shape_text(y.shape));
  const std::int64_t buckets = integer(call, "buckets", 32);
  const std::int64_t max_distance = integer(call, "max_distance", 128);
  const bool bidirectional = boolean(call, "bidirectional", true);
  std::int64_t* result = mutable_integers(y);
  for (std::int64_t at = 0; at < count(y.shape); ++at) {
    const std::int64_t query = at / y.shape[1], key = at % y.shape[1];
    result[at] = bucket(key - query, buckets, max_distance, bidirectional);
  }
}

}  // namespace stowage::host
