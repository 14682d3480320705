// embedding (rows of a table by index) and positions (0, 1, 2, ...).
// The gradient of the table is dense. What PyTorch's kernels take within:
// pytorch/kernel_scratch.hpp.
#include <fmt/format.h>

#include <span>

#include "estimator/catalogue/argument_view.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/pytorch/kernel_scratch.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_embedding(const Attributes& attributes,
                                                        std::span<const TensorType> inputs) {
  const TensorType& indices = inputs[0];
  if (is_floating_point(indices.type)) {
    return refuse(
        fmt::format("wants integer indices, but its input is {}", to_string(indices.type)), {}, 0,
        "give the input `dtype: int64`");
  }
  if (attributes.integer("padding_index") >= attributes.integer("count")) {
    return refuse(fmt::format("padding_index {} is not below count {}",
                              attributes.integer("padding_index"), attributes.integer("count")),
                  "padding_index");
  }
  const std::int64_t at_most = attributes.integer("at_most");
  const Affine length = indices.shape.empty() ? Affine(1) : indices.shape.back();
  if (at_most > 0 && length.is_constant() && length.constant > at_most) {
    return refuse(fmt::format("a length of {} is more than the {} positions there are",
                              length.constant, at_most),
                  "at_most");
  }
  Shape y = indices.shape;
  y.push_back(attributes.integer("features"));
  Inference result;
  result.outputs = {{y, DataType::float32}};  // the model's format: makes_floats
  result.parameters.push_back(
      {.name = "weight", .shape = {attributes.integer("count"), attributes.integer("features")}});
  return result;
}

/// Temporaries of the kernel, of the indices' size.
StorageId index_scratch(OperatorLowering& lowering, std::string_view name,
                        const TensorView& indices) {
  return lowering.new_tensor(name, indices.shape, indices.type, StorageClass::workspace).storage;
}

void emit_embedding(OperatorLowering& lowering, const TensorView& indices,
                    std::vector<StorageId> temporaries) {
  lowering.emit(Kernel::embedding_forward, "forward", {indices, lowering.parameter(0)},
                {lowering.new_output()}, {.temporaries = std::move(temporaries)});
  lowering.save("indices", indices);
}

void forward_embedding_stowage(OperatorLowering& lowering) {
  emit_embedding(lowering, lowering.contiguous(lowering.input(), "indices.contiguous"), {});
}

void forward_embedding_pytorch(OperatorLowering& lowering) {
  const TensorView indices = lowering.input();
  std::vector<StorageId> temporaries;
  if (embedding_scratch(indices) != Affine(0)) {  // saved as they are
    temporaries.push_back(index_scratch(lowering, "flat_indices", indices));
  }
  emit_embedding(lowering, indices, std::move(temporaries));
}

/// Temporaries of the kernel, of the indices' size, called `scratch_names`.
void emit_embedding_gradient(OperatorLowering& lowering,
                             std::span<const std::string_view> scratch_names) {
  if (!lowering.parameter_needs_gradient(0)) return;
  const TensorView indices = lowering.saved("indices");
  const TensorView dy =
      argument_view(lowering, Kernel::embedding_backward, 1, lowering.output_gradient(),
                    lowering.output_gradient(), "grad.contiguous");
  const TensorView dw = lowering.new_parameter_gradient(0);
  std::vector<StorageId> temporaries;
  for (const std::string_view name : scratch_names) {
    temporaries.push_back(index_scratch(lowering, name, indices));
  }
  lowering.emit(Kernel::embedding_backward, "backward", {indices, dy}, {dw},
                {.temporaries = temporaries, .flops = element_count(dy.shape)});
  lowering.give_parameter_gradient(0, dw);
}

void backward_embedding_stowage(OperatorLowering& lowering) {
  emit_embedding_gradient(lowering, {});
}

void backward_embedding_pytorch(OperatorLowering& lowering) {
  emit_embedding_gradient(lowering, embedding_gradient_arrays);
}

tl::expected<Inference, InferenceError> infer_positions(const Attributes& attributes,
                                                        std::span<const TensorType>) {
  const std::int64_t length = attributes.integer("length");
  const std::int64_t at_most = attributes.integer("at_most");
  if (at_most > 0 && length > at_most) {
    return refuse(
        fmt::format("a length of {} is more than the {} positions there are", length, at_most),
        "length");
  }
  Inference result;
  result.outputs = {{{1, length}, DataType::int64}};
  return result;
}

void forward_positions(OperatorLowering& lowering) {
  lowering.emit(Kernel::iota, "forward", {}, {lowering.new_output()});
}

}  // namespace

OperatorRow rows::embedding() {
  return {.name = "embedding",
          .doc = "rows of a learned table by index",
          .attributes = {{.name = "count",
                          .type = AttributeType::integer,
                          .doc = "rows of the table",
                          .minimum = 1},
                         {.name = "features",
                          .type = AttributeType::integer,
                          .doc = "elements of a row",
                          .minimum = 1},
                         {.name = "padding_index",
                          .type = AttributeType::integer,
                          .doc = "a row that gets no gradient; -1: none",
                          .default_value = std::int64_t{-1},
                          .minimum = -1},
                         {.name = "at_most",
                          .type = AttributeType::integer,
                          .doc = "of positions that are computed: the most that the input's last "
                                 "axis may have; 0: any",
                          .default_value = std::int64_t{0},
                          .minimum = 0}},
          .infer = infer_embedding,
          .lowering = {.stowage = {forward_embedding_stowage, backward_embedding_stowage},
                       .pytorch = {forward_embedding_pytorch, backward_embedding_pytorch}},
          .makes_floats = true};
}

OperatorRow rows::positions() {
  return {.name = "positions",
          .doc = "0, 1, 2, ... as an int64 tensor [1, length]",
          .attributes =
              {{.name = "length", .type = AttributeType::integer, .doc = "how many", .minimum = 1},
               {.name = "at_most",
                .type = AttributeType::integer,
                .doc = "the longest length allowed, as rows of the table they index; 0: any",
                .default_value = std::int64_t{0},
                .minimum = 0}},
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = infer_positions,
          .lowering = {.stowage = {forward_positions, nullptr}}};
}

}  // namespace stowage
