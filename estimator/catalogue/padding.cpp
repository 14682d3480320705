// pad: values before and after each of the last axes. Negative numbers crop (constant mode only, as
// in torch.nn.functional.pad).
//
// PyTorch's reflect and replicate kernels save their input; constant and circular padding save
// nothing. Circular padding is written in copies into slices of the result (_pad_circular,
// ATen/native/PadNd.cpp), and so its backward goes through a copy of the whole gradient for each
// side that wraps; it is lowered copy by copy.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

/// One number per axis of the input, from the first.
struct Margins {
  std::vector<std::int64_t> before, after;
  std::size_t first = 0;  ///< the first axis that the attributes speak of
};

/// The attributes speak of the last axes; where one list is shorter, it has zeros in front.
std::optional<Margins> margins(const Attributes& attributes, std::size_t rank) {
  const auto& before = attributes.integers("before");
  const auto& after = attributes.integers("after");
  const std::size_t count = std::max(before.size(), after.size());
  if (count > rank) return std::nullopt;
  const auto fill = [&](const std::vector<std::int64_t>& numbers) {
    std::vector<std::int64_t> all(rank - numbers.size(), 0);
    all.insert(all.end(), numbers.begin(), numbers.end());
    return all;
  };
  return Margins{fill(before), fill(after), rank - count};
}

std::optional<InferenceError> check_axis(const std::string& mode, std::int64_t margin,
                                         const Affine& size, std::string_view attribute) {
  if (mode == "constant" || margin == 0) return std::nullopt;
  if (margin < 0) {
    return InferenceError{.message = fmt::format("mode '{}' does not crop: {}", mode, margin),
                          .attribute = attribute};
  }
  if (mode == "replicate") return std::nullopt;
  if (!size.is_constant()) {
    return InferenceError{
        .message = fmt::format("mode '{}' does not pad an axis that depends on the batch", mode),
        .attribute = attribute,
        .input = 0};
  }
  const std::int64_t most = mode == "reflect" ? size.constant - 1 : size.constant;
  if (margin <= most) return std::nullopt;
  return InferenceError{.message = fmt::format("mode '{}' pads an axis of {} by at most {}, not {}",
                                               mode, size.constant, most, margin),
                        .attribute = attribute,
                        .input = 0};
}

tl::expected<Inference, InferenceError> infer_padding(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const std::string& mode = attributes.text("mode");
  const auto found = margins(attributes, x.shape.size());
  if (!found) {
    return refuse(fmt::format("has more numbers than its input {} has axes", to_string(x.shape)),
                  "before", 0);
  }
  const std::size_t axes = x.shape.size() - found->first;
  if (mode != "constant" && (axes > 3 || axes + 1 > x.shape.size() || axes + 2 < x.shape.size())) {
    return refuse(fmt::format("mode '{}' pads all axes after [batch, channels], or after [batch], "
                              "up to three, and its input has shape {}",
                              mode, to_string(x.shape)),
                  "mode", 0, "give a number for each of them, 0 where there is nothing to pad");
  }
  Shape y = x.shape;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (auto error = check_axis(mode, found->before[i], x.shape[i], "before")) {
      return tl::unexpected(*error);
    }
    if (auto error = check_axis(mode, found->after[i], x.shape[i], "after")) {
      return tl::unexpected(*error);
    }
    y[i] = y[i] + Affine(found->before[i]) + Affine(found->after[i]);
    if (y[i].is_constant() && y[i].constant < 1) {
      return refuse(
          fmt::format("nothing is left of its input's axis {} of {}", i, x.shape[i].to_string()),
          "before", 0);
    }
  }
  Inference result;
  result.outputs = {{std::move(y), x.type}};
  return result;
}

Attributes padding_attributes(const OperatorLowering& lowering) {
  const Margins found = *margins(lowering.attributes(), lowering.input().shape.size());
  Attributes attributes;
  attributes.set("before", found.before);
  attributes.set("after", found.after);
  return attributes;
}

bool mirrors(const OperatorLowering& lowering) {
  const std::string& mode = lowering.attributes().text("mode");
  return mode == "reflect" || mode == "replicate";
}

bool pads_with_constants(const OperatorLowering& lowering) {
  return lowering.attributes().text("mode") == "constant";
}

void forward_one_kernel(OperatorLowering& lowering) {
  const TensorView x = mirrors(lowering)
                           ? lowering.contiguous_within(lowering.input(), "input.contiguous")
                           : lowering.input();
  // Constants alone go around an image as it lies (ATen/native/PadNd.cpp, constant_pad_nd).
  const bool channels_last =
      pads_with_constants(lowering) && suggests_channels_last(lowering.input());
  const TensorView y = laid_out(lowering.new_output(), channels_last);
  lowering.set_output(0, y);
  lowering.emit(Kernel::pad, "forward", {x}, {y}, {.attributes = padding_attributes(lowering)});
}

void forward_padding_pytorch(OperatorLowering& lowering) {
  forward_one_kernel(lowering);
  if (mirrors(lowering)) lowering.save("input", lowering.input());
}

/// A wrapped side: its range in the result, along one axis.
struct Side {
  std::size_t axis;
  std::int64_t margin;
};

/// The sides in the order of _pad_circular: the last axis first, and before it after.
std::vector<Side> wrapped_sides(const Margins& found) {
  std::vector<Side> sides;
  for (std::size_t axis = found.before.size(); axis-- > found.first;) {
    if (found.before[axis] > 0) sides.push_back({axis, found.before[axis]});
    if (found.after[axis] > 0) sides.push_back({axis, found.after[axis]});
  }
  return sides;
}

void backward_circular(OperatorLowering& lowering) {
  lowering.hold_by_hand();
  const Margins found = *margins(lowering.attributes(), lowering.input().shape.size());
  TensorView gradient = lowering.output_gradient();
  const std::vector<Side> sides = wrapped_sides(found);
  const auto whole = [&](std::string_view suffix) {
    return lowering.new_tensor(suffix, gradient.shape, gradient.type,
                               StorageClass::activation_gradient);
  };
  for (std::size_t i = sides.size(); i-- > 0;) {
    TensorView part = gradient;
    part.shape[sides[i].axis] = sides[i].margin;
    const StorageId values = lowering.new_temporary("backward.side", byte_count(part));
    const StorageId zeros = lowering.new_temporary("backward.zeros", byte_count(part));
    const TensorView copy = whole("backward.base");
    lowering.emit(Kernel::copy, "backward.base", {gradient}, {copy},
                  {.temporaries = {values, zeros}});
    const TensorView wrapped = whole("backward.wrapped");
    const StorageId source = lowering.new_temporary("backward.source", byte_count(part));
    lowering.emit(Kernel::copy, "backward.wrapped", {copy}, {wrapped}, {.temporaries = {source}});
    lowering.emit(Kernel::accumulate, "backward.sum", {copy, wrapped}, {copy},
                  {.flops = element_count(copy.shape)});
    gradient = copy;
  }
  TensorView inner = lowering.new_tensor("backward.inner", lowering.input().shape, gradient.type,
                                         StorageClass::activation_gradient);
  lowering.emit(Kernel::copy, "backward.inner", {gradient}, {inner},
                {.temporaries = {lowering.new_temporary("backward.base", byte_count(gradient))}});
  for (std::size_t axis = found.first; axis < found.before.size(); ++axis) {
    const bool last = axis + 1 == found.before.size();
    const TensorView slice = last ? lowering.new_input_gradient()
                                  : lowering.new_tensor("backward.slice", inner.shape, inner.type,
                                                        StorageClass::activation_gradient);
    lowering.emit(Kernel::copy, "backward.slice", {inner}, {slice});
    inner = slice;
  }
  lowering.give_input_gradient(0, inner);
}

void backward_one_kernel(OperatorLowering& lowering) {
  const bool constant = pads_with_constants(lowering);
  const TensorView dy =
      constant ? lowering.output_gradient()
               : lowering.contiguous_within(lowering.output_gradient(), "grad.contiguous");
  const TensorView dx =
      laid_out(lowering.new_input_gradient(), constant && suggests_channels_last(dy));
  lowering.emit(Kernel::pad_backward, "backward", {dy}, {dx},
                {.attributes = padding_attributes(lowering)});
  lowering.give_input_gradient(0, dx);
}

void backward_padding_pytorch(OperatorLowering& lowering) {
  if (lowering.attributes().text("mode") == "circular") return backward_circular(lowering);
  backward_one_kernel(lowering);
}

AttributeSpec margin_attribute(std::string_view name, std::string_view doc) {
  return {.name = name,
          .type = AttributeType::integers,
          .doc = doc,
          .default_value = std::vector<std::int64_t>{0}};
}

}  // namespace

OperatorRow rows::pad() {
  return {
      .name = "pad",
      .doc = "values added around the last axes, or cut off them",
      .attributes = {margin_attribute("before", "values before the last axes; negative: cut off"),
                     margin_attribute("after", "values after the last axes; negative: cut off"),
                     {.name = "mode",
                      .type = AttributeType::choice,
                      .doc = "what is added",
                      .default_value = std::string("constant"),
                      .choices = {"constant", "reflect", "replicate", "circular"}},
                     {.name = "value",
                      .type = AttributeType::real,
                      .doc = "the constant",
                      .default_value = 0.0,
                      .minimum = -std::numeric_limits<double>::infinity(),
                      .maximum = std::numeric_limits<double>::infinity()}},
      .infer = infer_padding,
      .lowering = {.stowage = {forward_one_kernel, backward_one_kernel},
                   .pytorch = {forward_padding_pytorch, backward_padding_pytorch}}};
}

}  // namespace stowage
