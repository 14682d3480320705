// Sums and averages over axes, and the reverse: one value repeated along axes.
#include "gpu_probe/kernels/bodies/reduction.hpp"

#include "gpu_probe/kernels/bodies/movement.hpp"
#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/reduced_axes.hpp"
#include "gpu_probe/kernels/rows/strided.hpp"
#include "gpu_probe/kernels/rows/strides.hpp"
#include "gpu_probe/kernels/rows/words.hpp"

namespace stowage::kernels {
namespace {

/// Some axes of a tensor.
struct Axes {
  Sizes sizes, strides;

  void add(std::int64_t size, std::int64_t stride) {
    sizes.push_back(size);
    strides.push_back(stride);
  }
  [[nodiscard]] body::Strided strided() const { return kernels::strided(sizes, strides); }
};

/// y = the sum of x over the axes that are `summed` (by axis of x), divided by `divisor`. y's
/// elements are in the order of the other axes.
Launches sums(const TensorArgument& x, const TensorArgument& y, const std::vector<bool>& summed,
              double divisor, Arithmetic arithmetic) {
  constexpr std::int64_t few = 32;
  const Sizes strides = row_major_strides(x.shape);
  // The last axes that are not summed form the columns.
  std::int64_t columns = 1;
  std::size_t end = x.shape.size();
  while (end > 0 && (x.shape[end - 1] == 1 || !summed[end - 1])) columns *= x.shape[--end];
  const bool in_columns = columns != 1;
  if (!in_columns) end = x.shape.size();
  Axes kept, gone;
  for (std::size_t axis = 0; axis < end; ++axis) {
    (summed[axis] ? gone : kept).add(x.shape[axis], strides[axis]);
  }
  const std::int64_t together = count(gone.sizes), places = count(kept.sizes);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    const auto by = static_cast<Real>(divisor);
    if (in_columns) {
      const std::int64_t tiles = body::tiles_of(columns);
      return each_group(body::SumOfColumns<T, Real>{elements<T>(x), any_floats(y), kept.strided(),
                                                    gone.strided(), columns, together, by},
                        places * tiles, threads_for(together * body::columns_a_tile));
    }
    const body::SumOfEach<T, Real> body{elements<T>(x), any_floats(y), kept.strided(),
                                        gone.strided(), together,      by};
    return together < few ? each_index(body, places)
                          : each_group(body, places, threads_for(together));
  })};
}

}  // namespace

Launches sum_to_shape(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const Sizes strides = broadcast_strides(y.shape, x.shape);
  std::vector<bool> summed;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    const std::size_t lacking = x.shape.size() - y.shape.size();
    summed.push_back(axis < lacking || y.shape[axis - lacking] != x.shape[axis]);
  }
  return sums(x, y, summed, 1, arithmetic);
}

Launches channel_sum(const KernelCall& call, Arithmetic arithmetic) {
  const auto &dy = call.reads[0], &db = call.writes[0];
  const std::size_t axis = axis_of(call, "axis", dy.shape.size(), 1);
  require_shape("db", db, {dy.shape[axis]});
  std::vector<bool> summed(dy.shape.size(), true);
  summed[axis] = false;
  return sums(dy, db, summed, 1, arithmetic);
}

Launches reduce(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const std::string operation = text(call, "operation", "");
  require(operation == "sum" || operation == "mean", "attribute 'operation' is '{}'", operation);
  const std::vector<bool> summed = reduced_axes(call, x, y);
  std::int64_t together = 1;
  for (std::size_t axis = 0; axis < summed.size(); ++axis) {
    if (summed[axis]) together *= x.shape[axis];
  }
  const double divisor = operation == "mean" ? static_cast<double>(together) : 1;
  return sums(x, y, summed, divisor, arithmetic);
}

Launches expand(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const double factor = real(call, "factor", 1);
  const body::Strided of_x = repeated(x.shape, y.shape);
  if (!is_floating_point(y.type)) {
    require(factor == 1, "a factor of {} in {}", factor, to_string(y.type));
    require_same_type(x, y);
    return {in_words(y.type, [&]<class Word>() {
      return each_index(body::Gather<Word>{words<Word>(x), words<Word>(y), of_x}, count(y.shape));
    })};
  }
  return {in_formats(y.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::Expand<T, Real>{any_floats(x), elements<T>(y), of_x, static_cast<Real>(factor)},
        count(y.shape));
  })};
}

}  // namespace stowage::kernels
