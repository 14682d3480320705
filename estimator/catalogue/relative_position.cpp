// Learned biases of attention by relative position: Swin's, a table indexed by a buffer
// (torchvision and timm), and T5's, an embedding of distances in buckets that are worked out anew
// in every forward pass (transformers).
#include <fmt/format.h>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/pytorch/kernel_scratch.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t index_bytes = 8;

Attributes no_padding_row() {
  Attributes attributes;
  attributes.set("padding_index", std::int64_t{-1});
  return attributes;
}

Attributes transposition_attributes(std::vector<std::int64_t> axes) {
  Attributes attributes;
  attributes.set("axes", std::move(axes));
  return attributes;
}

tl::expected<Inference, InferenceError> infer_relative_position_window(
    const Attributes& attributes, std::span<const TensorType>) {
  const auto& window = attributes.integers("window");
  const std::int64_t heads = attributes.integer("heads");
  const Affine positions = Affine(window[0]) * Affine(window[1]);
  const Affine distances =
      (Affine(2) * Affine(window[0]) - Affine(1)) * (Affine(2) * Affine(window[1]) - Affine(1));
  Inference result;
  result.outputs = {{{1, heads, positions, positions}, DataType::float32}};  // makes_floats
  result.parameters.push_back(
      {.name = "relative_position_bias_table", .shape = {distances, heads}});
  const bool flat = attributes.boolean("flat_index");
  result.parameters.push_back(
      {.name = "relative_position_index",
       .shape = flat ? Shape{positions * positions} : Shape{positions, positions},
       .type = DataType::int64,
       .is_buffer = true});
  return result;
}

/// Rows of the table [pairs, heads] and the bias [heads, pairs], as the kernels see them.
struct Pairs {
  Affine pairs;
  std::int64_t heads;
};
Pairs pairs_of(const OperatorLowering& lowering) {
  const Shape& y = lowering.output_type().shape;
  return {y[2] * y[3], y[1].constant};
}

TensorView transposed_pairs(const TensorView& view, const Pairs& n) {
  return contiguous_view(view.storage, {n.heads, n.pairs}, view.type);
}

/// The same with one row per pair.
TensorView pair_rows(const TensorView& view, const Pairs& n) {
  const std::vector<std::int64_t> swap{1, 0};
  return permuted(transposed_pairs(view, n), swap);
}

/// Emits the look-up of the rows and their transposition to [1, heads, queries, keys].
void look_up(OperatorLowering& lowering, const TensorView& index) {
  const Pairs n = pairs_of(lowering);
  const TensorView rows = lowering.new_tensor(
      "rows", {n.pairs, n.heads}, lowering.output_type().type, StorageClass::activation);
  lowering.emit(Kernel::embedding_forward, "rows", {index, lowering.parameter(0)}, {rows},
                {.attributes = no_padding_row()});
  lowering.emit(Kernel::permute, "forward", {rows}, {transposed_pairs(lowering.new_output(), n)},
                {.attributes = transposition_attributes({1, 0})});
  lowering.save("index", index);
}

TensorView flat_index(const OperatorLowering& lowering) {
  TensorView index = lowering.parameter(1);
  return contiguous_view(index.storage, {pairs_of(lowering).pairs}, index.type);
}

void forward_window(OperatorLowering& lowering) { look_up(lowering, flat_index(lowering)); }

void backward_table(OperatorLowering& lowering) {
  if (!lowering.parameter_needs_gradient(0)) return;
  const Pairs n = pairs_of(lowering);
  const TensorView dy = lowering.output_gradient();
  const TensorView d_rows = lowering.new_tensor("grad_rows", {n.pairs, n.heads}, dy.type,
                                                StorageClass::activation_gradient);
  lowering.emit(Kernel::permute, "backward.rows", {transposed_pairs(dy, n)}, {d_rows},
                {.attributes = transposition_attributes({1, 0})});
  const TensorView dw = lowering.new_parameter_gradient(0);
  lowering.emit(Kernel::embedding_backward, "backward", {lowering.saved("index"), d_rows}, {dw},
                {.attributes = no_padding_row(), .flops = element_count(dy.shape)});
  lowering.give_parameter_gradient(0, dw);
}

std::vector<StorageId> index_arrays(OperatorLowering& lowering, Affine bytes) {
  return {lowering.new_tensor("sorted_indices", {bytes}, DataType::uint8, StorageClass::workspace)
              .storage};
}

void backward_window_pytorch(OperatorLowering& lowering) {
  if (!lowering.parameter_needs_gradient(0)) return;
  const Pairs n = pairs_of(lowering);
  const TensorView dy = lowering.output_gradient();
  const TensorView dw = lowering.new_parameter_gradient(0);
  lowering.emit(Kernel::fill, "backward.zeros", {}, {dw});
  lowering.emit(Kernel::embedding_backward, "backward", {lowering.saved("index"), dy}, {dw},
                {.temporaries = index_arrays(
                     lowering, index_put_scratch(n.pairs, dw.shape[0], pair_rows(dy, n))),
                 .flops = element_count(dy.shape)});
  lowering.give_parameter_gradient(0, dw);
}

tl::expected<Inference, InferenceError> infer_buckets(const Attributes& attributes,
                                                      std::span<const TensorType>) {
  const std::int64_t heads = attributes.integer("heads");
  const std::int64_t buckets = attributes.integer("buckets");
  const std::int64_t exact = buckets / (attributes.boolean("bidirectional") ? 4 : 2);
  if (exact < 1) {
    return refuse(fmt::format("{} buckets are too few to tell distances apart", buckets),
                  "buckets");
  }
  if (attributes.integer("max_distance") <= exact) {
    return refuse(fmt::format("max_distance {} is within the {} distances that have a bucket each",
                              attributes.integer("max_distance"), exact),
                  "max_distance");
  }
  Inference result;
  result.outputs = {{{1, heads, attributes.integer("queries"), attributes.integer("keys")},
                     DataType::float32}};  // makes_floats
  result.parameters.push_back({.name = "weight", .shape = {buckets, heads}});
  return result;
}

/// T5Attention._relative_position_bucket, operation by operation; the buckets' numbers are what the
/// embedding saves, the distances live as long as it runs.
void forward_buckets_pytorch(OperatorLowering& lowering) {
  const Shape y = lowering.output_type().shape;
  const Shape square{y[2], y[3]};
  const auto made = [&](std::string_view name, const Shape& shape, DataType type) {
    return lowering.new_tensor(name, shape, type, StorageClass::activation);
  };
  const auto step = [&](const std::string& name, DataType type, std::vector<TensorView> reads,
                        std::vector<StorageId> holds) {
    const TensorView result = made(name, square, type);
    lowering.emit(Kernel::copy, name, std::move(reads), {result}, {.holds = std::move(holds)});
    return result;
  };
  const TensorView rows = made("context_position", {y[2]}, DataType::int64);
  lowering.emit(Kernel::iota, "context_position", {}, {rows});
  const TensorView shifted = made("context_position.shifted", {y[2]}, DataType::int64);
  lowering.emit(Kernel::scale, "context_position.shifted", {rows}, {shifted});
  const TensorView columns = made("memory_position", {y[3]}, DataType::int64);
  lowering.emit(Kernel::iota, "memory_position", {}, {columns});
  const TensorView distance = step("relative_position", DataType::int64, {columns, shifted}, {});
  const std::vector<StorageId> callers{shifted.storage, columns.storage, distance.storage};
  TensorView buckets, positive;
  if (lowering.attributes().boolean("bidirectional")) {
    const TensorView side = step("is_after", DataType::boolean, {distance}, callers);
    const TensorView number = step("is_after.long", DataType::int64, {side}, callers);
    const TensorView scaled = step("is_after.buckets", DataType::int64, {number}, callers);
    buckets = step("buckets", DataType::int64, {scaled}, callers);
    positive = step("absolute", DataType::int64, {distance}, callers);
  } else {
    const TensorView zeros = step("zeros", DataType::int64, {}, callers);
    const TensorView least = step("least", DataType::int64, {distance, zeros}, callers);
    positive = step("absolute", DataType::int64, {least}, callers);
  }
  std::vector<StorageId> inner = callers;
  inner.push_back(positive.storage);
  if (buckets.storage.valid()) inner.push_back(buckets.storage);
  const TensorView small = step("is_small", DataType::boolean, {positive}, inner);
  inner.push_back(small.storage);
  TensorView large = step("float", DataType::float32, {positive}, inner);
  for (const std::string name : {"ratio", "log", "log.ratio", "log.buckets"}) {
    large = step(name, DataType::float32, {large}, inner);
  }
  large = step("large", DataType::int64, {large}, inner);
  large = step("large.offset", DataType::int64, {large}, inner);
  const TensorView limit = step("limit", DataType::int64, {}, [&] {
    std::vector<StorageId> holds = inner;
    holds.push_back(large.storage);
    return holds;
  }());
  large = step("large.limited", DataType::int64, {large, limit}, inner);
  const TensorView chosen = step("chosen", DataType::int64, {small, positive, large}, inner);
  if (buckets.storage.valid()) {
    inner.push_back(large.storage);
    lowering.emit(Kernel::accumulate, "buckets.sum", {buckets, chosen}, {buckets},
                  {.holds = inner});
  } else {
    buckets = step("buckets", DataType::int64, {chosen}, inner);
  }
  const TensorView out = lowering.new_output();
  const TensorView stored = contiguous_view(out.storage, {y[2], y[3], y[1]}, out.type);
  lowering.emit(Kernel::embedding_forward, "forward", {buckets, lowering.parameter(0)}, {stored},
                {.attributes = no_padding_row(), .holds = callers});
  TensorView seen = out;
  seen.strides = {stored.strides[0] * y[2], stored.strides[2], stored.strides[0],
                  stored.strides[1]};
  seen.is_view = true;
  lowering.set_output(0, seen);
  lowering.save("index", buckets);
}

void backward_buckets_pytorch(OperatorLowering& lowering) {
  if (!lowering.parameter_needs_gradient(0)) return;
  const Pairs n = pairs_of(lowering);
  const TensorView dy = lowering.output_gradient();
  const std::vector<std::int64_t> order{0, 2, 3, 1};
  const Affine copy = is_contiguous(permuted(dy, order)) ? Affine(0) : byte_count(dy);
  const Affine arrays = n.pairs * Affine(index_bytes * std::ssize(embedding_gradient_arrays));
  const TensorView dw = lowering.new_parameter_gradient(0);
  lowering.emit(
      Kernel::embedding_backward, "backward", {lowering.saved("index"), dy}, {dw},
      {.temporaries = index_arrays(lowering, arrays + copy), .flops = element_count(dy.shape)});
  lowering.give_parameter_gradient(0, dw);
}

void forward_buckets_stowage(OperatorLowering& lowering) {
  const TensorView index = lowering.new_tensor("index", {pairs_of(lowering).pairs}, DataType::int64,
                                               StorageClass::saved_auxiliary);
  const Shape& y = lowering.output_type().shape;
  lowering.emit(Kernel::relative_buckets, "index", {},
                {contiguous_view(index.storage, {y[2], y[3]}, index.type)});
  look_up(lowering, index);
}

AttributeSpec heads_attribute() {
  return {.name = "heads",
          .type = AttributeType::integer,
          .doc = "heads of the attention",
          .minimum = 1,
          .maximum = 65536};
}
AttributeSpec length_attribute(std::string_view name, std::string_view doc) {
  return {
      .name = name, .type = AttributeType::integer, .doc = doc, .minimum = 1, .maximum = 1 << 24};
}

}  // namespace

OperatorRow rows::relative_position_bias() {
  return {.name = "relative_position_bias",
          .doc = "Swin's bias of attention, [1, heads, n, n] for windows of n positions",
          .attributes = {heads_attribute(),
                         {.name = "window",
                          .type = AttributeType::integers,
                          .doc = "rows and columns of a window",
                          .minimum = 1,
                          .maximum = 4096,
                          .length = 2},
                         {.name = "flat_index",
                          .type = AttributeType::boolean,
                          .doc = "the index buffer has one axis (torchvision) or two (timm)",
                          .default_value = true}},
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = infer_relative_position_window,
          .lowering = {.stowage = {forward_window, backward_table},
                       .pytorch = {forward_window, backward_window_pytorch}},
          .makes_floats = true};
}

OperatorRow rows::relative_position_buckets() {
  return {.name = "relative_position_buckets",
          .doc = "T5's bias of attention, [1, heads, queries, keys], by distance in buckets",
          .attributes = {heads_attribute(),
                         length_attribute("queries", "positions that attend"),
                         length_attribute("keys", "positions attended to"),
                         {.name = "buckets",
                          .type = AttributeType::integer,
                          .doc = "rows of the table",
                          .default_value = std::int64_t{32},
                          .minimum = 1,
                          .maximum = 1 << 24},
                         {.name = "max_distance",
                          .type = AttributeType::integer,
                          .doc = "distances from here on share the last bucket",
                          .default_value = std::int64_t{128},
                          .minimum = 1},
                         {.name = "bidirectional",
                          .type = AttributeType::boolean,
                          .doc = "keys after the query have buckets of their own (encoders)",
                          .default_value = true}},
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = infer_buckets,
          .lowering = {.stowage = {forward_buckets_stowage, backward_table},
                       .pytorch = {forward_buckets_pytorch, backward_buckets_pytorch}},
          .makes_floats = true};
}

}  // namespace stowage
