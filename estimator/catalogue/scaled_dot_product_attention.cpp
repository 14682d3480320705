// scaled_dot_product_attention over [batch, heads, length, features], or with one axis more before
// the length (windows of an image), or without heads: its row, its shape rule, and what surrounds
// PyTorch's kernels: key and value heads repeated as transformers does (repeat_kv), and the fourth
// input made a mask to add.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "estimator/catalogue/attention.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

double attention_scale(const OperatorLowering& lowering, std::int64_t features) {
  const double scale = lowering.attributes().real("scale");
  return scale > 0 ? scale : 1.0 / std::sqrt(static_cast<double>(features));
}

double attention_dropout(const OperatorLowering& lowering) {
  return lowering.training() ? lowering.attributes().real("dropout") : 0;
}

Attributes product_attributes(bool transpose_a, bool transpose_b, double alpha) {
  Attributes attributes;
  attributes.set("transpose_a", transpose_a);
  attributes.set("transpose_b", transpose_b);
  attributes.set("alpha", alpha);
  return attributes;
}

Attributes softmax_attributes(std::int64_t axis, bool causal) {
  Attributes attributes;
  attributes.set("axis", axis);
  attributes.set("causal", causal);
  return attributes;
}

std::vector<StorageId> input_storages(const OperatorLowering& lowering) {
  std::vector<StorageId> storages;
  for (int i = 0; i < lowering.input_count(); ++i) storages.push_back(lowering.input(i).storage);
  return storages;
}

bool masks_bias(const OperatorLowering& lowering) {
  return lowering.input_count() > 3 && lowering.attributes().boolean("causal");
}

bool copies_bias(const OperatorLowering& lowering) {
  return masks_bias(lowering) || lowering.attributes().boolean("copy_bias");
}

bool has_fused_shape(const OperatorLowering& lowering) {
  return lowering.input(0).shape.size() <= 4;
}

TensorView with_head_axis(TensorView view) {
  if (view.shape.size() != 3) return view;
  const Affine stride = view.shape[1] * view.strides[1];
  view.shape.insert(view.shape.begin() + 1, 1);
  view.strides.insert(view.strides.begin() + 1, stride);
  view.is_view = true;
  return view;
}

TensorView without_head_axis(TensorView view) {
  view.shape.erase(view.shape.begin() + 1);
  view.strides.erase(view.strides.begin() + 1);
  view.is_view = true;
  return view;
}

Shape attention_score_shape(const Shape& query, const Shape& key) {
  Shape scores = query;
  scores.back() = key[key.size() - 2];
  return scores;
}

namespace {

constexpr std::size_t least_axes = 3, most_axes = 5;

std::optional<InferenceError> check_axes(const TensorType& input, std::size_t rank, int i) {
  const std::size_t axes = input.shape.size();
  if (axes >= least_axes && axes <= most_axes && axes == rank) return std::nullopt;
  return InferenceError{
      .message = fmt::format("wants [batch, heads, length, features], or three or five axes, "
                             "alike for all inputs, but its input has shape {}",
                             to_string(input.shape)),
      .input = i};
}

/// An error if query, key and value do not go together: axes, constant sizes, formats, then batch,
/// heads, length and features.
std::optional<InferenceError> check_operands(std::span<const TensorType> inputs) {
  const std::size_t rank = inputs[0].shape.size();
  for (int i = 0; i < 3; ++i) {
    const TensorType& input = inputs[static_cast<std::size_t>(i)];
    if (auto error = check_axes(input, rank, i)) return error;
    if (auto error = want_floating(input, i)) return error;
    for (std::size_t axis = 1; axis < rank; ++axis) {
      if (auto error = want_constant(input.shape[axis], "heads, length and features", i)) {
        return error;
      }
      if (input.shape[axis] == Affine(0)) {
        return refuse(fmt::format("an operand is empty: {}", to_string(input.shape)), {}, i)
            .value();
      }
    }
    if (input.type != inputs[0].type) {
      return refuse(fmt::format("its inputs are {} and {}", to_string(inputs[0].type),
                                to_string(input.type)),
                    {}, i)
          .value();
    }
  }
  const Shape& q = inputs[0].shape;
  const Shape& k = inputs[1].shape;
  const Shape& v = inputs[2].shape;
  const std::size_t heads = rank - 3;
  const bool alike =
      std::equal(q.begin(), q.begin() + static_cast<std::ptrdiff_t>(heads), k.begin());
  const bool shares = rank == 4 ? q[1].constant % k[1].constant == 0 : q[heads] == k[heads];
  if (!alike || !shares || k[rank - 1] != q[rank - 1]) {
    return refuse(fmt::format("the query {} and the key {} differ in batch or features, or the "
                              "key's heads do not divide the query's",
                              to_string(q), to_string(k)),
                  {}, 1)
        .value();
  }
  if (!std::equal(v.begin(), v.end() - 1, k.begin())) {
    return refuse(fmt::format("the key {} and the value {} differ in batch, heads or length",
                              to_string(k), to_string(v)),
                  {}, 2)
        .value();
  }
  return std::nullopt;
}

std::optional<InferenceError> check_mask(std::span<const TensorType> inputs) {
  if (inputs.size() < 4) return std::nullopt;
  const TensorType& mask = inputs[3];
  const Shape scores = attention_score_shape(inputs[0].shape, inputs[1].shape);
  const auto together = broadcast(mask.shape, scores);
  if (mask.shape.size() < 2 || mask.shape.size() > scores.size() || !together ||
      *together != scores) {
    return refuse(fmt::format("the mask {} does not broadcast to the scores {}",
                              to_string(mask.shape), to_string(scores)),
                  {}, 3)
        .value();
  }
  if (mask.type != DataType::boolean && mask.type != inputs[0].type) {
    return refuse(fmt::format("the mask is {}, but a boolean one or {} is wanted",
                              to_string(mask.type), to_string(inputs[0].type)),
                  {}, 3)
        .value();
  }
  return std::nullopt;
}

/// An implementation that the description asks for must be able to run the call on some card.
std::optional<InferenceError> check_implementation(const Attributes& attributes,
                                                   std::span<const TensorType> inputs) {
  const std::string& wanted = attributes.text("implementation");
  const DataType type = inputs[0].type;
  const std::size_t rank = inputs[0].shape.size();
  if (rank > 4 && wanted != "auto" && wanted != "math") {
    return refuse(fmt::format("{} attention takes four axes, and its input has shape {}", wanted,
                              to_string(inputs[0].shape)),
                  "implementation", 0, "leave it to `auto`, or merge axes by `reshape`")
        .value();
  }
  if ((wanted == "flash" || wanted == "cudnn") && element_size(type) != 2) {
    return refuse(fmt::format("{} attention runs in float16 and bfloat16 only, and its inputs are "
                              "{}",
                              wanted, to_string(type)),
                  "implementation", -1, "leave it to `auto`, or ask for a 16-bit precision")
        .value();
  }
  if (wanted == "flash" && inputs.size() > 3) {
    return refuse("flash attention takes no mask", "implementation").value();
  }
  if (wanted == "efficient" && type == DataType::float64) {
    return refuse("memory-efficient attention does not run in float64", "implementation").value();
  }
  const std::int64_t features = inputs[0].shape.back().constant;
  const std::int64_t value_features = inputs[2].shape.back().constant;
  if (wanted == "flash" && (features != value_features || features > 256)) {
    return refuse(fmt::format("flash attention wants query, key and value of the same at most 256 "
                              "features, and they have {} and {}",
                              features, value_features),
                  "implementation")
        .value();
  }
  if (wanted == "cudnn" && (features % 8 != 0 || value_features % 8 != 0)) {
    return refuse(fmt::format("cudnn attention wants features in multiples of 8, and there are {} "
                              "and {}",
                              features, value_features),
                  "implementation")
        .value();
  }
  return std::nullopt;
}

tl::expected<Inference, InferenceError> infer_attention(const Attributes& attributes,
                                                        std::span<const TensorType> inputs) {
  if (auto error = check_operands(inputs)) return tl::unexpected(*error);
  if (auto error = check_mask(inputs)) return tl::unexpected(*error);
  if (auto error = check_implementation(attributes, inputs)) return tl::unexpected(*error);
  const Shape& q = inputs[0].shape;
  const Shape& v = inputs[2].shape;
  Inference result;
  Shape y = q;
  y.back() = v.back();
  const Affine rows = element_count(Shape(q.begin(), q.end() - 1));
  result.outputs = {{std::move(y), inputs[0].type}};
  result.flops = rows * v[v.size() - 2] * (q.back() + v.back()) * Affine(2);
  return result;
}

/// Repeats each key and value head for the query heads that use it (transformers' repeat_kv): a
/// copy, except for a single head, which becomes a view.
TensorView input_heads_repeated(OperatorLowering& lowering, int i, std::int64_t groups,
                                std::string_view name) {
  const TensorView& view = lowering.input(i);
  if (groups == 1) return view;
  Shape shape = view.shape;
  shape[1] = shape[1] * Affine(groups);
  TensorView expanded = view;
  expanded.shape.insert(expanded.shape.begin() + 2, groups);
  expanded.strides.insert(expanded.strides.begin() + 2, 0);
  if (const auto seen = reshaped(expanded, shape)) return *seen;
  TensorView result = lowering.new_tensor(name, shape, view.type, StorageClass::activation);
  lowering.emit(Kernel::expand, name, {view}, {result});
  return result;
}

bool repeats(const OperatorLowering& lowering) {
  return lowering.input(0).shape.size() == 4 && lowering.attributes().text("grouped") == "repeat" &&
         lowering.input(0).shape[1] != lowering.input(1).shape[1];
}

TensorView made_additive(OperatorLowering& lowering, const TensorView& mask, DataType type) {
  TensorView result =
      lowering.new_tensor("additive_mask", mask.shape, type, StorageClass::activation);
  result.strides = dense_strides(mask.shape, mask.strides);
  lowering.emit(Kernel::cast, "additive_mask", {mask}, {result});
  return result;
}

/// transformers' create_position_bias_mask for causal attention: the bias below the diagonal, the
/// lowest number above it.
TensorView masked_bias(OperatorLowering& lowering, const TensorView& bias) {
  const std::size_t rank = bias.shape.size();
  const Shape square{bias.shape[rank - 2], bias.shape[rank - 1]};
  const TensorView condition =
      lowering.new_tensor("causal", square, DataType::boolean, StorageClass::saved_auxiliary);
  const TensorView rows =
      lowering.new_tensor("causal.rows", {square[0]}, DataType::int64, StorageClass::activation);
  const TensorView columns =
      lowering.new_tensor("causal.columns", {square[1]}, DataType::int64, StorageClass::activation);
  lowering.emit(Kernel::iota, "causal.rows", {}, {rows});
  lowering.emit(Kernel::iota, "causal.columns", {}, {columns});
  lowering.emit(Kernel::subtract, "causal", {rows, columns}, {condition});
  TensorView result =
      lowering.new_tensor("masked_bias", bias.shape, bias.type, StorageClass::activation);
  result.strides = dense_strides(bias.shape, bias.strides);
  lowering.emit(Kernel::multiply, "masked_bias", {condition, bias}, {result});
  if (lowering.input_needs_gradient(3)) lowering.save("condition", condition);
  return result;
}

/// The operands after the script's operations and autocast, which converts the last argument first.
AttentionOperands operands(OperatorLowering& lowering) {
  const AttentionSizes s =
      attention_sizes(lowering.input(0).shape, lowering.input(1).shape, lowering.input(2).shape);
  const std::int64_t groups = repeats(lowering) ? s.groups : 1;
  const DataType type = lowering.output_type().type;
  AttentionOperands result;
  result.held = input_storages(lowering);
  result.query = lowering.input(0);
  result.key = input_heads_repeated(lowering, 1, groups, "repeated_key");
  result.value = input_heads_repeated(lowering, 2, groups, "repeated_value");
  if (lowering.input_count() > 3) {
    TensorView bias = lowering.input(3);
    if (bias.type == DataType::boolean) bias = made_additive(lowering, bias, type);
    if (masks_bias(lowering)) bias = masked_bias(lowering, bias);
    if (copies_bias(lowering)) bias = lowering.contiguous(bias, "bias.contiguous");
    result.bias = bias;
    result.held.push_back(bias.storage);
  }
  result.held.insert(result.held.end(), {result.key.storage, result.value.storage});
  if (result.bias) result.bias = lowering.cast(*result.bias, type, "input3.cast");
  result.value = lowering.cast(result.value, type, "input2.cast");
  result.key = lowering.cast(result.key, type, "input1.cast");
  result.query = lowering.cast(result.query, type, "input0.cast");
  return result;
}

void forward_attention_pytorch(OperatorLowering& lowering) {
  const AttentionImplementation implementation = chosen_attention(lowering);
  AttentionOperands made = operands(lowering);
  if (implementation == AttentionImplementation::math) {
    return forward_math_attention(lowering, made);
  }
  for (TensorView* const operand : {&made.query, &made.key, &made.value}) {
    *operand = with_head_axis(*operand);
  }
  if (made.bias) made.bias = with_head_axis(*made.bias);
  forward_fused_attention(lowering, implementation, made);
}

/// The gradient of a repeated head is the sum over the query heads that used it.
TensorView summed(OperatorLowering& lowering, int i, const TensorView& gradient,
                  const std::string& name) {
  const TensorView& input = lowering.input(i);
  if (gradient.shape == input.shape) return gradient;
  TensorView sum = lowering.new_tensor("grad_" + name, input.shape, input.type,
                                       StorageClass::activation_gradient);
  lowering.emit(Kernel::sum_to_shape, "backward." + name, {gradient}, {sum},
                {.flops = element_count(gradient.shape)});
  return sum;
}

void backward_attention_pytorch(OperatorLowering& lowering) {
  const AttentionImplementation implementation = chosen_attention(lowering);
  AttentionOperands gradients = implementation == AttentionImplementation::math
                                    ? backward_math_attention(lowering)
                                    : backward_fused_attention(lowering, implementation);
  // The conversions' own nodes, the latest first.
  const auto convert = [&](int i, TensorView& gradient) {
    if (!lowering.input_needs_gradient(i)) return;
    gradient = lowering.cast(gradient, lowering.input(i).type, fmt::format("grad_input{}.cast", i));
  };
  convert(0, gradients.query);
  convert(1, gradients.key);
  convert(2, gradients.value);
  if (gradients.bias) convert(3, *gradients.bias);
  if (gradients.bias && masks_bias(lowering)) {
    const TensorView masked =
        lowering.new_tensor("grad_masked_bias", gradients.bias->shape, gradients.bias->type,
                            StorageClass::activation_gradient);
    lowering.emit(Kernel::multiply, "backward.masked_bias",
                  {lowering.saved("condition"), *gradients.bias}, {masked});
    gradients.bias = masked;
  }
  const TensorView value = summed(lowering, 2, gradients.value, "repeated_value");
  const TensorView key = summed(lowering, 1, gradients.key, "repeated_key");
  if (gradients.bias) lowering.give_input_gradient(3, *gradients.bias);
  if (lowering.input_needs_gradient(0)) lowering.give_input_gradient(0, gradients.query);
  if (lowering.input_needs_gradient(1)) lowering.give_input_gradient(1, key);
  if (lowering.input_needs_gradient(2)) lowering.give_input_gradient(2, value);
}

bool in_products(const OperatorLowering& lowering) {
  return lowering.attributes().text("implementation") == "math" ||
         lowering.input(0).shape.size() != 4;
}

void forward_attention_stowage(OperatorLowering& lowering) {
  if (in_products(lowering)) return forward_attention_products(lowering);
  forward_attention_own(lowering);
}

void backward_attention_stowage(OperatorLowering& lowering) {
  if (in_products(lowering)) return backward_attention_products(lowering);
  backward_attention_own(lowering);
}

constexpr const char* implementation_doc =
    "PyTorch's kernel; auto: the one it takes for the format, the sizes and the card. Our executor "
    "runs a fused one, and products around a softmax for math";

constexpr const char* written_out_doc =
    "where the argument attention is eager (docs/model-description.md): scores: a product, scaled, "
    "its softmax; wide: that softmax in float32; query: the query is scaled; product: the product "
    "scales";

std::vector<AttributeSpec> attribute_list() {
  return {{.name = "causal",
           .type = AttributeType::boolean,
           .doc = "each position sees itself and earlier ones",
           .default_value = false},
          {.name = "dropout",
           .type = AttributeType::real,
           .doc = "probability of dropping a weight in training",
           .default_value = 0.0,
           .minimum = 0,
           .maximum = 0.999999},
          {.name = "scale",
           .type = AttributeType::real,
           .doc = "factor of the scores; 0: 1 / sqrt(features)",
           .default_value = 0.0,
           .minimum = 0},
          {.name = "implementation",
           .type = AttributeType::choice,
           .doc = implementation_doc,
           .default_value = std::string("auto"),
           .choices = {"auto", "flash", "efficient", "math", "cudnn"}},
          {.name = "grouped",
           .type = AttributeType::choice,
           .doc = "fewer key and value heads: as they are (enable_gqa), or repeated (repeat_kv)",
           .default_value = std::string("native"),
           .choices = {"native", "repeat"}},
          {.name = "one_query",
           .type = AttributeType::choice,
           .doc = "of fewer key and value heads, with a mask and a cache: a single query's heads "
                  "become queries of the key heads (packed), or those are repeated",
           .default_value = std::string("packed"),
           .choices = {"packed", "repeat"}},
          {.name = "window",
           .type = AttributeType::integer,
           .doc = "the last so many keys that a query sees, itself among them, where the mask says "
                  "so; 0: all. What a cache keeps follows from it (docs/serving.md)",
           .default_value = std::int64_t{0},
           .minimum = 0},
          {.name = "written_out",
           .type = AttributeType::choice,
           .doc = written_out_doc,
           .default_value = std::string("scores"),
           .choices = {"scores", "wide", "query", "product"}},
          {.name = "copy_bias",
           .type = AttributeType::boolean,
           .doc = "copy a transposed mask first, as transformers does with position biases",
           .default_value = false}};
}

}  // namespace

OperatorRow rows::scaled_dot_product_attention() {
  return {.name = "scaled_dot_product_attention",
          .doc =
              "softmax(q k^T / sqrt(features)) v of inputs q, k, v of three to five axes, and a "
              "mask to add",
          .attributes = attribute_list(),
          .min_inputs = 3,
          .max_inputs = 4,
          .infer = infer_attention,
          .lowering = {.stowage = {forward_attention_stowage, backward_attention_stowage},
                       .pytorch = {forward_attention_pytorch, backward_attention_pytorch, true}},
          .autocast = AutocastClass::lower};
}

}  // namespace stowage
