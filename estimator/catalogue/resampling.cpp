// upsample, pixel_shuffle and pixel_unshuffle. PyTorch saves nothing for them: their backward needs
// sizes alone.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "estimator/base/bytes.hpp"
#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr double largest_extent = 1e15;

struct UpsampleMode {
  std::string_view name;
  std::string_view kernel;
  std::size_t spatial;        ///< axes that it works on; 0: one to three
  std::int64_t taps_an_axis;  ///< values of the input that a value of the output is made from
};
constexpr std::array<UpsampleMode, 5> upsample_modes{{{"nearest", "nearest", 0, 1},
                                                      {"linear", "linear", 1, 2},
                                                      {"bilinear", "linear", 2, 2},
                                                      {"bicubic", "cubic", 2, 4},
                                                      {"trilinear", "linear", 3, 2}}};

const UpsampleMode& mode_of(const Attributes& attributes) {
  const std::string& name = attributes.text("mode");
  for (const UpsampleMode& mode : upsample_modes) {
    if (mode.name == name) return mode;
  }
  return upsample_modes[0];
}

/// A multiply-add for each tap.
Affine upsample_flops(const Attributes& attributes, const Shape& y) {
  const UpsampleMode& mode = mode_of(attributes);
  if (mode.taps_an_axis == 1) return 0;
  Affine flops = element_count(y) * Affine(2);
  for (std::size_t i = 2; i < y.size(); ++i) flops = flops * Affine(mode.taps_an_axis);
  return flops;
}

tl::expected<Inference, InferenceError> infer_upsample(const Attributes& attributes,
                                                       std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const UpsampleMode& mode = mode_of(attributes);
  const std::size_t spatial = mode.spatial != 0    ? mode.spatial
                              : x.shape.size() < 3 ? 1
                                                   : std::min(x.shape.size() - 2, std::size_t{3});
  if (auto error = want_image(x, false, spatial)) return tl::unexpected(*error);
  if (attributes.boolean("align_corners") && mode.name == "nearest") {
    return refuse("mode 'nearest' has no corners to align", "align_corners");
  }
  const auto& size = attributes.integers("size");
  const double scale = attributes.real("scale");
  const bool by_size = !(size.size() == 1 && size[0] == 0);
  if (by_size == (scale > 0)) {
    return refuse("wants either a size or a scale", by_size ? "scale" : std::string_view{});
  }
  if (by_size && size.size() != 1 && size.size() != spatial) {
    return refuse(fmt::format("wants one extent or {}, not {}", spatial, size.size()), "size", 0);
  }
  Shape y{x.shape[0], x.shape[1]};
  for (std::size_t i = 0; i < spatial; ++i) {
    // upsample::compute_output_size: the product of doubles, cut off
    const double product = static_cast<double>(x.shape[2 + i].constant) * scale;
    if (product > largest_extent) throw ArithmeticOverflow("upsample's output size");
    const std::int64_t extent = !by_size           ? static_cast<std::int64_t>(product)
                                : size.size() == 1 ? size[0]
                                                   : size[i];
    if (extent < 1) {
      return refuse(fmt::format("its output would have size {}", extent),
                    by_size ? "size" : "scale", 0);
    }
    y.emplace_back(extent);
  }
  Inference result;
  result.flops = upsample_flops(attributes, y);
  result.outputs = {{std::move(y), x.type}};
  return result;
}

Attributes kernel_mode(const OperatorLowering& lowering) {
  Attributes attributes;
  attributes.set("mode", std::string(mode_of(lowering.attributes()).kernel));
  return attributes;
}

// PyTorch's results have their input's memory order, except for some gradients. Few kernels support
// this; the others make contiguous copies internally (ATen/native/cuda/UpSample*.cu).

/// How many channels an image needs for the channels-last kernel; 0: the kernel takes any strides.
std::int64_t channels_wanted(std::string_view mode, std::size_t rank) {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  if (mode == "bicubic" || mode == "trilinear") return 0;
  if (rank != 4) return never;
  return mode == "bilinear" ? 16 : 4;
}

void emit_upsample(OperatorLowering& lowering, Kernel kernel, std::string_view name,
                   const TensorView& given, const TensorView& result, const Shape& larger) {
  const std::int64_t wanted =
      channels_wanted(lowering.attributes().text("mode"), result.shape.size());
  const bool unchanged =
      !is_contiguous(result) && (wanted == 0 || !(result.shape[1].constant < wanted));
  const TensorView x = wanted == 0 ? given
                                   : lowering.contiguous_within(
                                         given, fmt::format("{}.contiguous", name), unchanged);
  const bool copied = !unchanged && !is_contiguous(result);
  const TensorView made = copied ? lowering.new_tensor(fmt::format("{}.result", name), result.shape,
                                                       result.type, StorageClass::workspace)
                                 : result;
  lowering.emit(kernel, name, {x}, {made},
                {.attributes = kernel_mode(lowering),
                 .flops = upsample_flops(lowering.attributes(), larger)});
  if (copied) lowering.emit(Kernel::copy, fmt::format("{}.copy", name), {made}, {result});
}

void forward_upsample(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const TensorView y = laid_out(lowering.new_output(), suggests_channels_last(x));
  lowering.set_output(0, y);
  emit_upsample(lowering, Kernel::upsample_forward, "forward", x, y, y.shape);
}

void backward_upsample(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  const std::string& mode = lowering.attributes().text("mode");
  const bool keeps = mode != "bicubic" && (mode != "nearest" || dy.shape.size() == 4);
  const TensorView dx =
      laid_out(lowering.new_input_gradient(), keeps && suggests_channels_last(dy));
  emit_upsample(lowering, Kernel::upsample_backward, "backward", dy, dx, dy.shape);
  lowering.give_input_gradient(0, dx);
}

std::int64_t square(std::int64_t factor) { return checked_multiply(factor, factor); }

tl::expected<Inference, InferenceError> infer_shuffle(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_image(x, true)) return tl::unexpected(*error);
  const std::int64_t factor = attributes.integer("factor");
  const std::int64_t channels = x.shape[1].constant;
  if (channels % square(factor) != 0) {
    return refuse(fmt::format("factor {} wants channels in multiples of {}, not {}", factor,
                              square(factor), channels),
                  "factor", 0);
  }
  Inference result;
  result.outputs = {{{x.shape[0], channels / square(factor), x.shape[2] * Affine(factor),
                      x.shape[3] * Affine(factor)},
                     x.type}};
  return result;
}

tl::expected<Inference, InferenceError> infer_unshuffle(const Attributes& attributes,
                                                        std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_image(x, true)) return tl::unexpected(*error);
  const std::int64_t factor = attributes.integer("factor");
  for (std::size_t i = 2; i < 4; ++i) {
    if (x.shape[i].constant % factor == 0) continue;
    return refuse(
        fmt::format("factor {} does not divide its input's {}", factor, x.shape[i].constant),
        "factor", 0);
  }
  Inference result;
  result.outputs = {{{x.shape[0], x.shape[1] * Affine(square(factor)), x.shape[2].constant / factor,
                      x.shape[3].constant / factor},
                     x.type}};
  return result;
}

/// A view of the same elements; PyTorch needs no copy for channels last.
TensorView taken_apart(OperatorLowering& lowering, const TensorView& x, const Shape& shape,
                       std::string_view suffix) {
  if (const auto same = reshaped(x, shape)) return *same;
  return *reshaped(lowering.contiguous(x, fmt::format("{}.contiguous", suffix)), shape);
}

/// y = the shuffling of x, y contiguous: [n, c f f, h, w] to [n, c, h f, w f].
void emit_shuffle(OperatorLowering& lowering, const TensorView& x, const TensorView& y,
                  std::string_view suffix) {
  const Affine factor = lowering.attributes().integer("factor");
  const Shape& narrow = y.shape;
  const Shape apart{narrow[0], narrow[1], factor, factor, x.shape[2], x.shape[3]};
  const Shape woven{narrow[0], narrow[1], x.shape[2], factor, x.shape[3], factor};
  Attributes attributes;
  attributes.set("axes", std::vector<std::int64_t>{0, 1, 4, 2, 5, 3});
  lowering.emit(Kernel::permute, suffix, {taken_apart(lowering, x, apart, suffix)},
                {*reshaped(y, woven)}, {.attributes = attributes});
}

/// The inverse.
void emit_unshuffle(OperatorLowering& lowering, const TensorView& x, const TensorView& y,
                    std::string_view suffix) {
  const Affine factor = lowering.attributes().integer("factor");
  const Shape woven{x.shape[0], x.shape[1], y.shape[2], factor, y.shape[3], factor};
  const Shape apart{x.shape[0], x.shape[1], factor, factor, y.shape[2], y.shape[3]};
  Attributes attributes;
  attributes.set("axes", std::vector<std::int64_t>{0, 1, 3, 5, 2, 4});
  lowering.emit(Kernel::permute, suffix, {taken_apart(lowering, x, woven, suffix)},
                {*reshaped(y, apart)}, {.attributes = attributes});
}

using EmitShuffle = void (*)(OperatorLowering&, const TensorView&, const TensorView&,
                             std::string_view);

template <EmitShuffle emit>
void forward_shuffle(OperatorLowering& lowering) {
  emit(lowering, lowering.input(), lowering.new_output(), "forward");
}

template <EmitShuffle emit>
void backward_shuffle(OperatorLowering& lowering) {
  const TensorView dx = lowering.new_input_gradient();
  emit(lowering, lowering.output_gradient(), dx, "backward");
  lowering.give_input_gradient(0, dx);
}

AttributeSpec factor_attribute(std::string_view doc) {
  return {.name = "factor", .type = AttributeType::integer, .doc = doc, .minimum = 1};
}

}  // namespace

OperatorRow rows::upsample() {
  return {.name = "upsample",
          .doc = "interpolation to a larger or smaller extent",
          .attributes = {{.name = "scale",
                          .type = AttributeType::real,
                          .doc = "output extent / input extent; 0: size says it",
                          .default_value = 0.0,
                          .minimum = 0},
                         {.name = "size",
                          .type = AttributeType::integers,
                          .doc = "output extents, one for all or one an axis; 0: scale says them",
                          .default_value = std::vector<std::int64_t>{0},
                          .minimum = 0},
                         {.name = "mode",
                          .type = AttributeType::choice,
                          .doc = "how values in between are made",
                          .default_value = std::string("nearest"),
                          .choices = {"nearest", "linear", "bilinear", "bicubic", "trilinear"}},
                         {.name = "align_corners",
                          .type = AttributeType::boolean,
                          .doc = "the corners' values stay as they are",
                          .default_value = false}},
          .infer = infer_upsample,
          .lowering = {.stowage = {forward_upsample, backward_upsample}},
          .autocast = AutocastClass::float32};
}

OperatorRow rows::pixel_shuffle() {
  const LoweringRules rules{forward_shuffle<emit_shuffle>, backward_shuffle<emit_unshuffle>};
  return {.name = "pixel_shuffle",
          .doc = "channels laid out as pixels: [n, c f f, h, w] to [n, c, h f, w f]",
          .attributes = {factor_attribute("f, by which height and width grow")},
          .infer = infer_shuffle,
          .lowering = {.stowage = rules}};
}

OperatorRow rows::pixel_unshuffle() {
  const LoweringRules rules{forward_shuffle<emit_unshuffle>, backward_shuffle<emit_shuffle>};
  return {.name = "pixel_unshuffle",
          .doc = "pixels laid out as channels: the inverse of pixel_shuffle",
          .attributes = {factor_attribute("f, by which height and width shrink")},
          .infer = infer_unshuffle,
          .lowering = {.stowage = rules}};
}

}  // namespace stowage
