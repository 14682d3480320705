#include "estimator/catalogue/einsum_diagonal.hpp"

#include <utility>
#include <vector>

namespace stowage {

namespace {

/// The other axes in order, then `last`.
std::vector<std::int64_t> diagonal_order(std::size_t rank, const DiagonalAxes& axes) {
  std::vector<std::int64_t> order;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (axis != axes.first && axis != axes.second) order.push_back(static_cast<std::int64_t>(axis));
  }
  order.push_back(static_cast<std::int64_t>(axes.first));
  order.push_back(static_cast<std::int64_t>(axes.second));
  return order;
}

Shape shape_in(const Shape& shape, const std::vector<std::int64_t>& order) {
  Shape result;
  for (const std::int64_t axis : order) result.push_back(shape[static_cast<std::size_t>(axis)]);
  return result;
}

TensorView axes_moved(OperatorLowering& lowering, const TensorView& view,
                      const std::vector<std::int64_t>& order, const std::string& suffix) {
  bool in_order = true;
  for (std::size_t i = 0; i < order.size(); ++i) {
    in_order = in_order && order[i] == static_cast<std::int64_t>(i);
  }
  if (in_order) return view;
  TensorView moved =
      lowering.new_tensor(suffix, shape_in(view.shape, order), view.type, StorageClass::activation);
  Attributes attributes;
  attributes.set("axes", order);
  lowering.emit(Kernel::permute, suffix, {view}, {moved}, {.attributes = std::move(attributes)});
  return moved;
}

/// Appends `more` zeros to the last axis.
TensorView last_axis_padded(OperatorLowering& lowering, const TensorView& view, std::int64_t more,
                            const std::string& suffix) {
  std::vector<std::int64_t> before(view.shape.size()), after(view.shape.size());
  after.back() = more;
  Attributes attributes;
  attributes.set("before", std::move(before));
  attributes.set("after", std::move(after));
  attributes.set("mode", std::string("constant"));
  attributes.set("value", 0.0);
  Shape shape = view.shape;
  shape.back() = shape.back() + Affine(more);
  TensorView padded = lowering.new_tensor(suffix, shape, view.type, StorageClass::activation);
  lowering.emit(Kernel::pad, suffix, {view}, {padded}, {.attributes = std::move(attributes)});
  return padded;
}

/// The first `length` elements of the last axis.
TensorView last_axis_cut(OperatorLowering& lowering, const TensorView& view, std::int64_t length,
                         const std::string& suffix) {
  Attributes attributes;
  attributes.set("axis", static_cast<std::int64_t>(view.shape.size()) - 1);
  attributes.set("start", std::int64_t{0});
  Shape shape = view.shape;
  shape.back() = length;
  TensorView cut = lowering.new_tensor(suffix, shape, view.type, StorageClass::activation);
  lowering.emit(Kernel::slice, suffix, {view}, {cut}, {.attributes = std::move(attributes)});
  return cut;
}

/// A view of a contiguous tensor in which other axes replace its last `replaced` ones.
TensorView last_axes_seen(const TensorView& view, std::size_t replaced,
                          std::initializer_list<std::int64_t> by) {
  Shape shape(view.shape.begin(), view.shape.end() - static_cast<std::ptrdiff_t>(replaced));
  for (const std::int64_t length : by) shape.push_back(length);
  return *reshaped(view, shape);
}

}  // namespace

TensorView diagonal_view(const TensorView& view, const DiagonalAxes& axes) {
  TensorView result = permuted(view, diagonal_order(view.shape.size(), axes));
  const Affine stride = result.strides.back();
  result.shape.pop_back();
  result.strides.pop_back();
  result.strides.back() = result.strides.back() + stride;
  return result;
}

TensorView diagonal_copy(OperatorLowering& lowering, const TensorView& view,
                         const DiagonalAxes& axes, const std::string& suffix) {
  const std::int64_t n = view.shape[axes.first].constant;
  const TensorView square =
      axes_moved(lowering, view, diagonal_order(view.shape.size(), axes), suffix + ".square");
  const TensorView longer =
      last_axis_padded(lowering, last_axes_seen(square, 2, {n * n}), n, suffix + ".longer");
  const TensorView column =
      last_axis_cut(lowering, last_axes_seen(longer, 1, {n, n + 1}), 1, suffix);
  return last_axes_seen(column, 2, {n});
}

TensorView diagonal_view_backward(OperatorLowering& lowering, const TensorView& gradient,
                                  const Shape& shape, const DiagonalAxes& axes,
                                  const std::string& suffix) {
  TensorView dx =
      lowering.new_tensor(suffix, shape, gradient.type, StorageClass::activation_gradient);
  Attributes zero;
  zero.set("value", 0.0);
  lowering.emit(Kernel::fill, suffix + ".zeros", {}, {dx}, {.attributes = std::move(zero)});
  lowering.emit(Kernel::copy, suffix, {gradient}, {diagonal_view(dx, axes)});
  return dx;
}

TensorView diagonal_copy_backward(OperatorLowering& lowering, const TensorView& gradient,
                                  const Shape& shape, const DiagonalAxes& axes,
                                  const std::string& suffix) {
  const std::int64_t n = shape[axes.first].constant;
  const TensorView wide =
      last_axis_padded(lowering, last_axes_seen(gradient, 1, {n, 1}), n, suffix + ".wide");
  const TensorView cut =
      last_axis_cut(lowering, last_axes_seen(wide, 2, {n * (n + 1)}), n * n, suffix + ".square");
  const TensorView square = last_axes_seen(cut, 1, {n, n});
  const std::vector<std::int64_t> order = diagonal_order(shape.size(), axes);
  std::vector<std::int64_t> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return axes_moved(lowering, square, back, suffix);
}

}  // namespace stowage
