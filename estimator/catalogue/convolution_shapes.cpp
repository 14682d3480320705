// The convolutions' shapes and attributes. Formulas: output sizes as in the documentation of
// torch.nn.Conv2d and torch.nn.ConvTranspose2d; a multiply-add is two flops.
#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/bytes.hpp"
#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

const AttributeValue* written_padding(const Attributes& attributes) {
  for (const auto& [name, value] : attributes.entries()) {
    if (name == "padding") return &value;
  }
  return nullptr;
}

const std::string* padding_word(const Attributes& attributes) {
  return std::get_if<std::string>(written_padding(attributes));
}

std::optional<InferenceError> check_same_padding(const Attributes& attributes) {
  const std::string* word = padding_word(attributes);
  if (word == nullptr || *word != "same") return std::nullopt;
  const auto& stride = attributes.integers("stride");
  if (std::all_of(stride.begin(), stride.end(), [](std::int64_t s) { return s == 1; })) {
    return std::nullopt;
  }
  return InferenceError{.message = "padding 'same' goes with stride 1 only",
                        .attribute = "padding"};
}

std::optional<InferenceError> check_groups(std::int64_t groups, std::int64_t in, std::int64_t out) {
  if (in % groups != 0) {
    return InferenceError{
        .message = fmt::format("groups {} does not divide its {} input channels", groups, in),
        .attribute = "groups",
        .input = 0};
  }
  if (out % groups != 0) {
    return InferenceError{
        .message = fmt::format("groups {} does not divide its {} output channels", groups, out),
        .attribute = "groups"};
  }
  return std::nullopt;
}

Affine taps(const Attributes& attributes) {
  Affine product = 1;
  for (const std::int64_t extent : attributes.integers("kernel"))
    product = product * Affine(extent);
  return product;
}

/// [first, second, kernel...]
Shape filter_shape(const Attributes& attributes, std::int64_t first, std::int64_t second) {
  Shape shape{first, second};
  for (const std::int64_t extent : attributes.integers("kernel")) shape.emplace_back(extent);
  return shape;
}

/// An error if a computed filter or bias has the wrong shape.
std::optional<InferenceError> check_computed(std::span<const TensorType> inputs,
                                             const Shape& filter, const Attributes& attributes) {
  const Shape bias{attributes.integer("channels")};
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const int input = static_cast<int>(i);
    if (auto error = want_floating(inputs[i], input)) return error;
    const Shape& wanted = i == 1 ? filter : bias;
    if (inputs[i].shape == wanted) continue;
    return InferenceError{
        .message = fmt::format("the {} is {} where {} is needed", i == 1 ? "filter" : "bias",
                               to_string(inputs[i].shape), to_string(wanted)),
        .input = input};
  }
  if (inputs.size() < 3 || !attributes.boolean("bias")) return std::nullopt;
  return InferenceError{.message = "has a bias of its own and one as third input",
                        .attribute = "bias",
                        .input = 2,
                        .hint = "write `bias: false`"};
}

/// `places`: how many positions the filter of one output channel (transposed: input channel) is
/// applied at. `computed`: the filter is not a parameter.
Inference convolution_inference(const Attributes& attributes, Shape y, Shape w, DataType type,
                                const Affine& places, bool computed = false) {
  Inference result;
  const Shape bias{attributes.integer("channels")};
  result.flops = places * Affine(2) * w[1] * taps(attributes);
  result.outputs = {{std::move(y), type}};
  if (!computed) {
    result.parameters.push_back({.name = "weight", .shape = std::move(w), .type = type});
  }
  if (attributes.boolean("bias")) {
    result.parameters.push_back({.name = "bias", .shape = bias, .type = type});
  }
  return result;
}

}  // namespace

const std::vector<std::int64_t>* padding_of_axes(const Attributes& attributes) {
  const auto* numbers = std::get_if<std::vector<std::int64_t>>(written_padding(attributes));
  const bool of_axes =
      numbers != nullptr && numbers->size() == attributes.integers("kernel").size();
  return of_axes ? numbers : nullptr;
}

Padding resolved_padding(const Attributes& attributes) {
  const auto& kernel = attributes.integers("kernel");
  Padding padding{std::vector<std::int64_t>(kernel.size(), 0),
                  std::vector<std::int64_t>(kernel.size(), 0)};
  if (const std::string* word = padding_word(attributes)) {
    if (*word == "valid") return padding;
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      const std::int64_t overhang =
          checked_multiply(attributes.integers("dilation")[i], kernel[i] - 1);
      padding.before[i] = overhang / 2;
      padding.after[i] = overhang - overhang / 2;
    }
    return padding;
  }
  const std::vector<std::int64_t>& numbers = attributes.integers("padding");
  if (numbers.size() == kernel.size()) return {numbers, numbers};
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    padding.before[i] = numbers[2 * i];
    padding.after[i] = numbers[2 * i + 1];
  }
  return padding;
}

std::vector<std::int64_t> symmetric_padding(const Padding& padding) {
  std::vector<std::int64_t> both;
  for (std::size_t i = 0; i < padding.before.size(); ++i) {
    both.push_back(std::min(padding.before[i], padding.after[i]));
  }
  return both;
}

tl::expected<Inference, InferenceError> infer_convolution(const Attributes& attributes,
                                                          std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto& kernel = attributes.integers("kernel");
  if (auto error = want_image(x, true, kernel.size())) return tl::unexpected(*error);
  if (auto error = check_same_padding(attributes)) return tl::unexpected(*error);
  const std::int64_t in = x.shape[1].constant;
  const std::int64_t out = attributes.integer("channels");
  const std::int64_t groups = attributes.integer("groups");
  if (auto error = check_groups(groups, in, out)) return tl::unexpected(*error);
  const Padding padding = resolved_padding(attributes);
  Shape y{x.shape[0], out};
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const Window window{.kernel = kernel[i],
                        .stride = attributes.integers("stride")[i],
                        .padding_before = padding.before[i],
                        .padding_after = padding.after[i],
                        .dilation = attributes.integers("dilation")[i]};
    const std::int64_t size = x.shape[2 + i].constant;
    const auto count = window_count(size, window);
    if (!count) {
      return refuse(fmt::format("kernel {} is larger than the padded input {}",
                                window.dilation * (window.kernel - 1) + 1,
                                size + window.padding_before + window.padding_after),
                    "kernel", 0);
    }
    y.emplace_back(*count);
  }
  const Affine places = element_count(y);
  Shape filter = filter_shape(attributes, out, in / groups);
  if (auto error = check_computed(inputs, filter, attributes)) return tl::unexpected(*error);
  return convolution_inference(attributes, std::move(y), std::move(filter), x.type, places,
                               inputs.size() > 1);
}

tl::expected<Inference, InferenceError> infer_transposed_convolution(
    const Attributes& attributes, std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto& kernel = attributes.integers("kernel");
  if (auto error = want_image(x, true, kernel.size())) return tl::unexpected(*error);
  const std::int64_t in = x.shape[1].constant;
  const std::int64_t out = attributes.integer("channels");
  const std::int64_t groups = attributes.integer("groups");
  if (auto error = check_groups(groups, in, out)) return tl::unexpected(*error);
  Shape y{x.shape[0], out};
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t stride = attributes.integers("stride")[i];
    const std::int64_t dilation = attributes.integers("dilation")[i];
    const std::int64_t extra = attributes.integers("output_padding")[i];
    if (extra >= stride && extra >= dilation) {
      return refuse(fmt::format("output_padding {} is less than neither the stride {} nor the "
                                "dilation {}",
                                extra, stride, dilation),
                    "output_padding");
    }
    const Affine whole = Affine(x.shape[2 + i].constant - 1) * Affine(stride) +
                         Affine(dilation) * Affine(kernel[i] - 1) + Affine(extra) + Affine(1);
    const Affine cut = Affine(2) * Affine(attributes.integers("padding")[i]);
    const std::int64_t size = (whole - cut).constant;
    if (size < 1) return refuse(fmt::format("its output would have size {}", size), "padding", 0);
    y.emplace_back(size);
  }
  return convolution_inference(attributes, std::move(y), filter_shape(attributes, in, out / groups),
                               x.type, element_count(x.shape));
}

AttributeSpec channels_attribute() {
  return {
      .name = "channels", .type = AttributeType::integer, .doc = "output channels", .minimum = 1};
}
AttributeSpec window_attribute(std::string_view name, std::string_view doc,
                               std::optional<std::int64_t> value, double minimum, int spatial) {
  AttributeSpec spec{.name = name, .type = AttributeType::integers, .doc = doc};
  if (value) {
    spec.default_value = std::vector<std::int64_t>(static_cast<std::size_t>(spatial), *value);
  }
  spec.minimum = minimum;
  spec.length = spatial;
  return spec;
}
AttributeSpec groups_attribute() {
  return {.name = "groups",
          .type = AttributeType::integer,
          .doc = "groups of channels convolved apart",
          .default_value = std::int64_t{1},
          .minimum = 1};
}
AttributeSpec bias_attribute() {
  return {.name = "bias",
          .type = AttributeType::boolean,
          .doc = "add a learned bias",
          .default_value = true};
}

}  // namespace stowage
