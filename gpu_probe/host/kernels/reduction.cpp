// Sums and averages over axes, and their opposite: one value repeated along axes.
#include "gpu_probe/host/kernels/kernels.hpp"
#include "gpu_probe/kernels/rows/strides.hpp"

namespace stowage::host {
namespace {

Sizes without_ones(Sizes shape) {
  std::erase(shape, 1);
  return shape;
}

template <typename Element>
void repeat(const Element* in, Element* out, const Sizes& shape, const Sizes& strides) {
  walk(shape, strides, [&](std::int64_t i, std::int64_t at) { out[i] = in[at]; });
}

}  // namespace

void reduce(const KernelCall& call) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const std::string operation = text(call, "operation", "");
  require(operation == "sum" || operation == "mean", "attribute 'operation' is '{}'", operation);
  Sizes kept = x.shape;
  const auto rank = static_cast<std::int64_t>(kept.size());
  std::int64_t together = 1;
  for (std::int64_t axis : list(call, "axes")) {
    if (axis < 0) axis += rank;
    require(axis >= 0 && axis < rank, "attribute 'axes' names axis {} of {}", axis,
            shape_text(x.shape));
    together *= kept[static_cast<std::size_t>(axis)];
    kept[static_cast<std::size_t>(axis)] = 1;
  }
  Sizes strides = row_major_strides(kept);
  for (std::size_t axis = 0; axis < kept.size(); ++axis) {
    if (kept[axis] != x.shape[axis]) strides[axis] = 0;
  }
  // The reduced axes are ones or are not there.
  require(without_ones(y.shape) == without_ones(kept), "{} over its axes does not give {}",
          shape_text(x.shape), shape_text(y.shape));
  std::vector<double> sums(static_cast<std::size_t>(count(kept)), 0);
  const float* in = floats(x);
  walk(x.shape, strides,
       [&](std::int64_t i, std::int64_t at) { sums[static_cast<std::size_t>(at)] += in[i]; });
  const double divisor = operation == "mean" ? static_cast<double>(together) : 1;
  float* out = mutable_floats(y);
  for (std::size_t i = 0; i < sums.size(); ++i) out[i] = static_cast<float>(sums[i] / divisor);
}

void expand(const KernelCall& call) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const double factor = real(call, "factor", 1);
  const Sizes strides = broadcast_strides(x.shape, y.shape);
  if (y.type == DataType::float32) {
    const float* in = floats(x);
    float* out = mutable_floats(y);
    return walk(y.shape, strides, [&](std::int64_t i, std::int64_t at) {
      out[i] = static_cast<float>(factor * in[at]);
    });
  }
  require(factor == 1, "a factor of {} in {}", factor, to_string(y.type));
  if (y.type == DataType::int64) return repeat(integers(x), mutable_integers(y), y.shape, strides);
  require(y.type == DataType::boolean, "{} is not repeated", to_string(y.type));
  repeat(mask_bytes(x), mutable_mask_bytes(y), y.shape, strides);
}

}  // namespace stowage::host
