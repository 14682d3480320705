#include "estimator/catalogue/elementwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace stowage {

namespace {

// The view's axes from the outermost in memory to the innermost; empty where its elements are not
// dense in memory, or where the order of two axes depends on the batch.
std::vector<std::int64_t> memory_order(const TensorView& view) {
  std::vector<std::int64_t> axes(view.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  const auto outer = [&](std::int64_t a, std::int64_t b) {
    const Affine& x = view.strides[static_cast<std::size_t>(a)];
    const Affine& y = view.strides[static_cast<std::size_t>(b)];
    return x.constant + x.slope > y.constant + y.slope;
  };
  std::stable_sort(axes.begin(), axes.end(), outer);
  if (!is_contiguous(permuted(view, axes))) axes.clear();
  return axes;
}

}  // namespace

TensorView ordered_like(const TensorView& made, const TensorView& like) {
  if (made.shape != like.shape || is_contiguous(like)) return made;
  const std::vector<std::int64_t> order = memory_order(like);
  if (order.empty()) return made;
  Shape stored;
  std::vector<std::int64_t> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    stored.push_back(made.shape[static_cast<std::size_t>(order[i])]);
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  TensorView result = permuted(contiguous_view(made.storage, stored, made.type), inverse);
  result.is_view = false;
  return result;
}

TensorView new_output_like(OperatorLowering& lowering, const TensorView& like, int i) {
  const TensorView made = ordered_like(lowering.new_output(i), like);
  lowering.set_output(i, made);
  return made;
}

TensorView new_input_gradient_like(OperatorLowering& lowering, const TensorView& like, int i) {
  return ordered_like(lowering.new_input_gradient(i), like);
}

void give_broadcast_gradient(OperatorLowering& lowering, int i, const TensorView& gradient) {
  // The engine takes a node's gradients one after the other, and converts each at once.
  const auto give = [&](const TensorView& dx) {
    lowering.give_input_gradient(i, dx);
    if (lowering.pytorch() && dx.type != lowering.input(i).type) lowering.deliver_gradients();
  };
  if (gradient.shape == lowering.input(i).shape) return give(gradient);
  // In the gradient's format: the engine converts after it has summed.
  const TensorView dx = lowering.new_tensor(fmt::format("grad_input{}", i), lowering.input(i).shape,
                                            gradient.type, StorageClass::activation_gradient);
  lowering.emit(Kernel::sum_to_shape, fmt::format("backward.sum{}", i), {gradient}, {dx},
                {.flops = element_count(gradient.shape)});
  give(dx);
}

bool works_in_place(const OperatorLowering& lowering, int i) {
  return lowering.attributes().boolean("in_place") &&
         lowering.input(i).shape == lowering.output_type().shape &&
         lowering.input(i).type == lowering.output_type().type &&
         (lowering.pytorch() || lowering.may_overwrite_input(i));
}

AttributeSpec in_place_attribute(std::string_view doc) {
  return {.name = "in_place", .type = AttributeType::boolean, .doc = doc, .default_value = false};
}

}  // namespace stowage
