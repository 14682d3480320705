// sort and argsort: for our kernel topk of the whole axis; what PyTorch's takes besides is
// sort_scratch. Autograd keeps the places alone, and puts the gradient there into zeros.
#include <utility>

#include "estimator/catalogue/axis_attribute.hpp"
#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/catalogue/sort_rows.hpp"
#include "estimator/pytorch/kernel_scratch.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_sort(const Attributes& attributes,
                                                   std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  const auto axis = axis_attribute(attributes, x.shape);
  if (!axis) return tl::unexpected(axis.error());
  if (auto error = want_constant(x.shape[*axis], "sorted axis")) return tl::unexpected(*error);
  Inference result;
  result.outputs = {x, {x.shape, DataType::int64}};
  result.flops = element_count(x.shape);
  return result;
}

tl::expected<Inference, InferenceError> infer_argsort(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  auto result = infer_sort(attributes, inputs);
  if (result) result->outputs.erase(result->outputs.begin());
  return result;
}

void emit_sort(OperatorLowering& lowering, const TensorView& values, const TensorView& indices,
               std::vector<StorageId> temporaries) {
  const TensorView& x = lowering.input();
  Attributes attributes;
  const std::size_t axis = *axis_attribute(lowering.attributes(), x.shape);
  attributes.set("axis", static_cast<std::int64_t>(axis));
  attributes.set("count", x.shape[axis].constant);
  attributes.set("largest", lowering.attributes().boolean("descending"));
  lowering.emit(Kernel::top_places, "forward", {x}, {values, indices},
                {.attributes = std::move(attributes),
                 .temporaries = std::move(temporaries),
                 .flops = element_count(x.shape)});
}

std::vector<StorageId> sort_temporaries(OperatorLowering& lowering) {
  const TensorView& x = lowering.input();
  const std::size_t axis = *axis_attribute(lowering.attributes(), x.shape);
  return {
      lowering
          .new_tensor("places", {sort_scratch(x, axis)}, DataType::uint8, StorageClass::workspace)
          .storage};
}

void forward_sort(OperatorLowering& lowering) {
  const TensorView values = lowering.new_output(0), indices = lowering.new_output(1);
  emit_sort(lowering, values, indices, {});
  lowering.save("indices", indices);
}

void forward_sort_pytorch(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const TensorView values = new_output_like(lowering, x, 0);
  const TensorView indices = new_output_like(lowering, x, 1);
  emit_sort(lowering, values, indices, sort_temporaries(lowering));
  lowering.save("indices", indices);
}

/// The sorted values die as soon as the call returns.
void forward_argsort(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const TensorView values =
      ordered_like(lowering.new_tensor("values", x.shape, x.type, StorageClass::activation), x);
  emit_sort(lowering, values, lowering.new_output(), {});
}

void forward_argsort_pytorch(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const TensorView values =
      ordered_like(lowering.new_tensor("values", x.shape, x.type, StorageClass::activation), x);
  const TensorView indices = new_output_like(lowering, x);
  emit_sort(lowering, values, indices, sort_temporaries(lowering));
}

void backward_sort(OperatorLowering& lowering) {
  if (!lowering.has_output_gradient(0)) return;
  const TensorView dx = lowering.new_input_gradient();
  const TensorView dy = lowering.output_gradient(0);
  lowering.emit(Kernel::gather_backward, "backward", {lowering.saved("indices"), dy}, {dx},
                {.attributes = axis_from_zero(lowering), .flops = element_count(dy.shape)});
  lowering.give_input_gradient(0, dx);
}

std::vector<AttributeSpec> sort_attributes() {
  return {axis_spec(-1, "which; negative counts from the last"),
          {.name = "descending",
           .type = AttributeType::boolean,
           .doc = "the largest first",
           .default_value = false}};
}

}  // namespace

OperatorRow rows::sort() {
  return {.name = "sort",
          .doc = "the elements along an axis in order (0), and where they stood (1)",
          .attributes = sort_attributes(),
          .infer = infer_sort,
          .lowering = {.stowage = {forward_sort, backward_sort},
                       .pytorch = {forward_sort_pytorch, backward_sort}}};
}
OperatorRow rows::argsort() {
  return {.name = "argsort",
          .doc = "where the elements along an axis stand, in their order, as int64",
          .attributes = sort_attributes(),
          .infer = infer_argsort,
          .lowering = {.stowage = {forward_argsort, nullptr},
                       .pytorch = {forward_argsort_pytorch, nullptr}}};
}

}  // namespace stowage
