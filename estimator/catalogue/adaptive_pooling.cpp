// adaptive_avg_pool1d, 2d, 3d and adaptive_max_pool1d, 2d, 3d: windows that follow from the
// output's size. With size 1 they are global pooling.
#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/pooling.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_adaptive_pooling(const Attributes& attributes,
                                                               std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto& size = attributes.integers("size");
  if (auto error = want_image(x, false, size.size())) return tl::unexpected(*error);
  Shape y{x.shape[0], x.shape[1]};
  for (const std::int64_t extent : size) y.emplace_back(extent);
  Inference result;
  result.outputs = {{std::move(y), x.type}};
  result.flops = element_count(x.shape);
  return result;
}

// ATen runs an average of size 1 as a mean, which saves nothing.
bool is_global_mean(const OperatorLowering& lowering) {
  for (const std::int64_t extent : lowering.attributes().integers("size")) {
    if (extent != 1) return false;
  }
  return true;
}

NodeExtras whole_input(const OperatorLowering& lowering) {
  return {.flops = element_count(lowering.input().shape)};
}

void forward_adaptive_pooling_average_stowage(OperatorLowering& lowering) {
  lowering.emit(Kernel::adaptive_avg_pool_forward, "forward", {lowering.input()},
                {lowering.new_output()}, whole_input(lowering));
}

void forward_adaptive_pooling_average_pytorch(OperatorLowering& lowering) {
  const bool channels_last =
      lowering.input().shape.size() == 4 && suggests_channels_last(lowering.input());
  const TensorView x =
      is_global_mean(lowering)
          ? lowering.input()
          : lowering.contiguous_within(lowering.input(), "input.contiguous", channels_last);
  const TensorView y = laid_out(lowering.new_output(), channels_last);
  lowering.set_output(0, y);
  lowering.emit(Kernel::adaptive_avg_pool_forward, "forward", {x}, {y}, whole_input(lowering));
  if (!is_global_mean(lowering)) lowering.save("input", lowering.input());
}

// The gradient of a mean is contiguous.
void backward_mean(OperatorLowering& lowering) {
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::adaptive_avg_pool_backward, "backward", {lowering.output_gradient()}, {dx},
                whole_input(lowering));
  give_pool_gradient_pytorch(lowering, dx);
}

void backward_average_pytorch(OperatorLowering& lowering) {
  if (is_global_mean(lowering)) return backward_mean(lowering);
  backward_average_pool_pytorch(lowering, Kernel::adaptive_avg_pool_backward,
                                whole_input(lowering));
}

using PoolRule = void (*)(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);

template <PoolRule rule, Kernel kernel>
void to_size(OperatorLowering& lowering) {
  rule(lowering, kernel, whole_input(lowering));
}

OperatorRow adaptive_pooling_row(std::string_view name, std::string_view doc, int spatial,
                                 const RulesBySet& rules) {
  return {
      .name = name,
      .doc = doc,
      .attributes = {window_attribute("size", "output extents; 1: global pooling", {}, 1, spatial)},
      .infer = infer_adaptive_pooling,
      .lowering = rules};
}
OperatorRow average(std::string_view name, std::string_view doc, int spatial) {
  return adaptive_pooling_row(
      name, doc, spatial,
      {.stowage = {forward_adaptive_pooling_average_stowage,
                   to_size<backward_average_pool_stowage, Kernel::adaptive_avg_pool_backward>},
       .pytorch = {forward_adaptive_pooling_average_pytorch, backward_average_pytorch}});
}
OperatorRow adaptive_maximum(std::string_view name, std::string_view doc, int spatial) {
  return adaptive_pooling_row(
      name, doc, spatial,
      {.stowage = {to_size<forward_max_pool_stowage, Kernel::adaptive_max_pool_forward>,
                   to_size<backward_max_pool_stowage, Kernel::adaptive_max_pool_backward>},
       .pytorch = {to_size<forward_max_pool_pytorch, Kernel::adaptive_max_pool_forward>,
                   to_size<backward_max_pool_pytorch, Kernel::adaptive_max_pool_backward>}});
}

}  // namespace

OperatorRow rows::adaptive_avg_pool1d() {
  return average("adaptive_avg_pool1d", "1-D average pooling to a given output size", 1);
}
OperatorRow rows::adaptive_avg_pool2d() {
  return average("adaptive_avg_pool2d", "2-D average pooling to a given output size", 2);
}
OperatorRow rows::adaptive_avg_pool3d() {
  return average("adaptive_avg_pool3d", "3-D average pooling to a given output size", 3);
}
OperatorRow rows::adaptive_max_pool1d() {
  return adaptive_maximum("adaptive_max_pool1d", "1-D maximum pooling to a given output size", 1);
}
OperatorRow rows::adaptive_max_pool2d() {
  return adaptive_maximum("adaptive_max_pool2d", "2-D maximum pooling to a given output size", 2);
}
OperatorRow rows::adaptive_max_pool3d() {
  return adaptive_maximum("adaptive_max_pool3d", "3-D maximum pooling to a given output size", 3);
}

}  // namespace stowage
