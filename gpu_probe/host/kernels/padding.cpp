// Padding and rolling: each axis has a map from the result's positions to x's, or to none.
#include <algorithm>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

constexpr std::int64_t nowhere = -1;

/// By axis and position of the result: the position of x.
using Maps = std::vector<Sizes>;

/// visit(i, at) for the elements of the result in row-major order: `at` is x's, or nowhere.
template <typename Visit>
class Sources {
 public:
  Sources(const Maps& maps, const Sizes& strides, Visit visit)
      : maps_(maps), strides_(strides), visit_(visit) {}

  void descend(std::size_t axis, std::int64_t at) {
    if (axis == maps_.size()) return visit_(next_++, at);
    for (const std::int64_t source : maps_[axis]) {
      const bool none = at == nowhere || source == nowhere;
      descend(axis + 1, none ? nowhere : at + source * strides_[axis]);
    }
  }

 private:
  const Maps& maps_;
  const Sizes& strides_;
  Visit visit_;
  std::int64_t next_ = 0;
};

template <typename Visit>
void each_source(const Maps& maps, const TensorArgument& x, Visit visit) {
  const Sizes strides = row_major_strides(x.shape);
  Sources<Visit>(maps, strides, visit).descend(0, 0);
}

std::int64_t wrapped(std::int64_t at, std::int64_t size) { return (at % size + size) % size; }

/// Where position `at` of an axis of `size`, which may lie outside, takes its value.
std::int64_t source_of(std::int64_t at, std::int64_t size, const std::string& mode) {
  if (at >= 0 && at < size) return at;
  if (mode == "constant") return nowhere;
  if (mode == "replicate") return std::clamp<std::int64_t>(at, 0, size - 1);
  if (mode == "circular") return wrapped(at, size);
  return at < 0 ? -at : 2 * (size - 1) - at;  // reflect: the border itself is not repeated
}

/// Negative widths cut off.
Maps padding_maps(const KernelCall& call, const TensorArgument& x, const TensorArgument& y) {
  const std::string mode = text(call, "mode", "constant");
  require(mode == "constant" || mode == "reflect" || mode == "replicate" || mode == "circular",
          "attribute 'mode' is '{}'", mode);
  const std::size_t rank = x.shape.size();
  const Sizes before = list(call, "before", rank, 0), after = list(call, "after", rank, 0);
  Sizes expected = x.shape;
  Maps maps(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t size = x.shape[axis], widest = std::max(before[axis], after[axis]);
    require(mode == "constant" || widest <= (mode == "reflect" ? size - 1 : size) ||
                mode == "replicate",
            "{} is too small along axis {} to be padded by {} in mode {}", shape_text(x.shape),
            axis, widest, mode);
    expected[axis] += before[axis] + after[axis];
    for (std::int64_t at = 0; at < expected[axis]; ++at) {
      maps[axis].push_back(source_of(at - before[axis], size, mode));
    }
  }
  require_shape("the padded tensor", y, expected);
  return maps;
}

}  // namespace

void pad(const KernelCall& call) {
  const Maps maps = padding_maps(call, call.reads[0], call.writes[0]);
  const auto value = static_cast<float>(real(call, "value", 0));
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  each_source(maps, call.reads[0],
              [&](std::int64_t i, std::int64_t at) { y[i] = at == nowhere ? value : x[at]; });
}

void pad_backward(const KernelCall& call) {
  const auto &dy = call.reads[0], &dx = call.writes[0];
  const Maps maps = padding_maps(call, dx, dy);
  std::vector<double> sums(static_cast<std::size_t>(count(dx.shape)), 0);
  const float* in = floats(dy);
  float* out = mutable_floats(dx);
  each_source(maps, dx, [&](std::int64_t i, std::int64_t at) {
    if (at != nowhere) sums[static_cast<std::size_t>(at)] += in[i];
  });
  for (std::size_t i = 0; i < sums.size(); ++i) out[i] = static_cast<float>(sums[i]);
}

void roll(const KernelCall& call) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_shape("y", y, x);
  const std::size_t rank = x.shape.size();
  const Sizes axes = list(call, "axes"), shifts = list(call, "shifts");
  require(axes.size() == shifts.size(), "attribute 'shifts' has {} numbers for {} axes",
          shifts.size(), axes.size());
  Sizes shift(rank, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + static_cast<std::int64_t>(rank) : axes[i];
    require(axis >= 0 && axis < static_cast<std::int64_t>(rank),
            "attribute 'axes' names axis {} of {}", axes[i], shape_text(x.shape));
    shift[static_cast<std::size_t>(axis)] += shifts[i];
  }
  Maps maps(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    for (std::int64_t at = 0; at < x.shape[axis]; ++at) {
      maps[axis].push_back(wrapped(at - shift[axis], x.shape[axis]));
    }
  }
  const float* in = floats(x);
  float* out = mutable_floats(y);
  each_source(maps, x, [&](std::int64_t i, std::int64_t at) { out[i] = in[at]; });
}

}  // namespace stowage::host
