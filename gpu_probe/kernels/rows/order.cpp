// Positions of extrema, the largest elements in order, running sums.
#include "gpu_probe/kernels/bodies/order.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/integers.hpp"

namespace stowage::kernels {
namespace {

struct Lines {
  body::Line line;
  std::int64_t count;
};

Lines lines_along(const Sizes& shape, std::size_t axis) {
  const std::int64_t inner = count(shape, axis + 1, shape.size());
  return {{shape[axis], inner}, count(shape, 0, axis) * inner};
}

/// `values`: null if they are not asked for.
Launches top_places(const KernelCall& call, Arithmetic arithmetic, std::int64_t wanted, bool rising,
                    const TensorArgument* values, const TensorArgument& indices) {
  const auto& x = call.reads[0];
  const std::size_t axis = axis_of(call, "axis", x.shape.size(), 0);
  const Lines lines = lines_along(x.shape, axis);
  require(wanted >= 1 && wanted <= x.shape[axis], "{} places of {} along axis {}", wanted,
          shape_text(x.shape), axis);
  require(count(indices.shape) == lines.count * wanted, "indices are {}: not {} of each line",
          shape_text(indices.shape), wanted);
  if (values != nullptr) require_same_shape("the values", *values, indices);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::TopPlaces<T, Real>{elements<T>(x), values == nullptr ? nullptr : elements<T>(*values),
                                 any_integers(indices), lines.line, wanted, rising},
        lines.count);
  })};
}

}  // namespace

Launches extreme_place(const KernelCall& call, Arithmetic arithmetic) {
  const std::string operation = text(call, "operation", "");
  require(operation == "maximum" || operation == "minimum", "attribute 'operation' is '{}'",
          operation);
  return top_places(call, arithmetic, 1, operation == "minimum",
                    call.writes.size() > 1 ? &call.writes[1] : nullptr, call.writes[0]);
}

Launches top_places(const KernelCall& call, Arithmetic arithmetic) {
  return top_places(call, arithmetic, integer(call, "count"), !boolean(call, "largest", true),
                    call.writes.data(), call.writes[1]);
}

Launches cumulate(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_shape("y", y, x);
  const Lines lines = lines_along(x.shape, axis_of(call, "axis", x.shape.size(), 0));
  const bool reverse = boolean(call, "reverse", false);
  if (!is_floating_point(x.type)) {
    return {each_index(body::CumulateIntegers{elements<body::Index>(x), elements<body::Index>(y),
                                              lines.line, reverse},
                       lines.count)};
  }
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(body::Cumulate<T, Real>{elements<T>(x), elements<T>(y), lines.line, reverse},
                      lines.count);
  })};
}

Launches one_hot(const KernelCall& call, Arithmetic) {
  const auto &indices = call.reads[0], &y = call.writes[0];
  require(!y.shape.empty() && count(y.shape) == count(indices.shape) * y.shape.back(),
          "{} is not {} with an axis more", shape_text(y.shape), shape_text(indices.shape));
  return {each_index(body::OneHot{any_integers(indices), any_integers(y), y.shape.back()},
                     count(y.shape))};
}

}  // namespace stowage::kernels
