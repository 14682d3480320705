// What a convolution's kernel calls are made of: the question for a source of workspaces, and the
// sum that is a bias' gradient.
#include "estimator/catalogue/convolution.hpp"

namespace stowage {

ConvolutionCall convolution_call(const OperatorLowering& lowering,
                                 ConvolutionCall::Direction direction, const TensorView& x,
                                 const TensorView& w, const TensorView& y) {
  const Attributes& attributes = lowering.attributes();
  const std::vector<std::int64_t>* const padding = padding_of_axes(attributes);
  ConvolutionWindow window{
      .stride = attributes.integers("stride"),
      .padding = padding != nullptr ? *padding : symmetric_padding(resolved_padding(attributes)),
      .dilation = attributes.integers("dilation"),
      .groups = attributes.integer("groups")};
  return convolution_call(std::move(window), direction, x, w, y);
}

KernelNode& emit_bias_sum(OperatorLowering& lowering, const TensorView& dy, const TensorView& db,
                          std::int64_t axis) {
  Attributes attributes;
  attributes.set("axis", axis);
  return lowering.emit(Kernel::channel_sum, "backward.bias", {dy}, {db},
                       {.attributes = attributes, .flops = element_count(dy.shape)});
}

KernelNode* emit_bias_gradient(OperatorLowering& lowering, const TensorView& dy, std::int64_t axis,
                               int place) {
  if (lowering.parameter_count() <= place || !lowering.parameter_needs_gradient(place)) {
    return nullptr;
  }
  const TensorView db = lowering.new_parameter_gradient(place);
  KernelNode& node = emit_bias_sum(lowering, dy, db, axis);
  lowering.give_parameter_gradient(place, db);
  return &node;
}

}  // namespace stowage
