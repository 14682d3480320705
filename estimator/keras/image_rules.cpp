// Convolutions, pooling, padding, resizing: what works on images.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "estimator/keras/keras_translation.hpp"

namespace stowage {

namespace {

using Integers = std::vector<std::int64_t>;

// The number of spatial axes in a class name: 2 for "Conv2D", "ZeroPadding2D", "Conv2DTranspose".
std::size_t axes_of_class(std::string_view class_name) {
  for (std::size_t axes = 1; axes <= 3; ++axes) {
    if (class_name.find(fmt::format("{}D", axes)) != std::string_view::npos) return axes;
  }
  return 2;
}

bool keeps_channels_first(const KerasCall& call) {
  return call.config.text("data_format", "channels_last") == "channels_first";
}

// The input image with channels first, in either order of Keras.
std::optional<LayerOutput> image_of(KerasTranslation& translation, const KerasCall& call,
                                    std::size_t axes) {
  if (call.inputs.empty() || call.inputs[0].shape.size() != axes + 2) {
    translation.refuse("its input is no image of as many axes");
    return std::nullopt;
  }
  if (keeps_channels_first(call)) return translation.channels_last(call, call.inputs[0]);
  return translation.channels_first(call, call.inputs[0]);
}

void give_image(KerasTranslation& translation, KerasCall& call, LayerOutput output) {
  if (keeps_channels_first(call)) return translation.add_output(call, output);
  translation.add_channels_first_output(call, output);
}

// TensorFlow's SAME: the output has ceil(input / stride), the odd element is padded behind.
struct SamePadding {
  Integers before, after;
  [[nodiscard]] bool is_symmetric() const { return before == after; }
};

std::optional<SamePadding> same_padding(const Shape& image, const Integers& kernel,
                                        const Integers& stride, const Integers& dilation) {
  SamePadding padding;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const Affine extent = image[2 + i];
    if (!extent.is_constant() || stride[i] < 1 || extent.constant < 1) return std::nullopt;
    const std::int64_t steps = (extent.constant - 1) / stride[i];
    const std::int64_t reach = checked_add(checked_multiply(kernel[i] - 1, dilation[i]), 1);
    const std::int64_t total = std::max<std::int64_t>(
        checked_add(checked_multiply(steps, stride[i]), reach) - extent.constant, 0);
    padding.before.push_back(total / 2);
    padding.after.push_back(total - total / 2);
  }
  return padding;
}

Integers pairs_of(const SamePadding& padding) {
  if (padding.is_symmetric()) return padding.before;
  Integers pairs;
  for (std::size_t i = 0; i < padding.before.size(); ++i) {
    pairs.push_back(padding.before[i]);
    pairs.push_back(padding.after[i]);
  }
  return pairs;
}

struct ConvolutionSizes {
  Integers kernel, stride, dilation, padding;
};

std::optional<ConvolutionSizes> sizes_of(KerasTranslation& translation, const KerasCall& call,
                                         LayerOutput& image, std::size_t axes) {
  ConvolutionSizes sizes{.kernel = call.config.integers("kernel_size", axes),
                         .stride = call.config.integers("strides", axes),
                         .dilation = call.config.integers("dilation_rate", axes)};
  if (sizes.stride.empty()) sizes.stride.assign(axes, 1);
  if (sizes.dilation.empty()) sizes.dilation.assign(axes, 1);
  if (sizes.kernel.empty()) {
    translation.refuse("it has no 'kernel_size'");
    return std::nullopt;
  }
  const std::string padding = call.config.text("padding", "valid");
  sizes.padding.assign(axes, 0);
  if (padding == "same") {
    const auto same = same_padding(translation.layers().type(image).shape, sizes.kernel,
                                   sizes.stride, sizes.dilation);
    if (!same) {
      translation.refuse("its padding does not follow");
      return std::nullopt;
    }
    sizes.padding = pairs_of(*same);
  } else if (padding == "causal") {
    const std::int64_t before = checked_multiply(sizes.kernel[0] - 1, sizes.dilation[0]);
    const auto padded = translation.add(call, "pad", {image},
                                        {{"before", Integers{before}}, {"after", Integers{0}}});
    if (!padded) return std::nullopt;
    image = *padded;
  }
  return sizes;
}

std::vector<NamedText> convolution_names(const KerasCall& call, std::string_view kernel) {
  std::vector<NamedText> names{{"weight", std::string(kernel)}};
  if (call.config.flag("use_bias", true)) names.emplace_back("bias", "bias");
  return names;
}

bool give_activated(KerasTranslation& translation, KerasCall& call, LayerOutput output) {
  give_image(translation, call, output);
  return translation.activate(call, call.config.class_name("activation"));
}

bool translate_conv(KerasTranslation& translation, KerasCall& call) {
  const std::size_t axes = axes_of_class(call.class_name);
  auto image = image_of(translation, call, axes);
  if (!image) return false;
  const auto sizes = sizes_of(translation, call, *image, axes);
  const auto filters = call.config.integer("filters");
  if (!sizes || !filters) return false;
  const auto made = translation.add_weighted(call, fmt::format("conv{}d", axes), {*image},
                                             {{"channels", *filters},
                                              {"kernel", sizes->kernel},
                                              {"stride", sizes->stride},
                                              {"padding", sizes->padding},
                                              {"dilation", sizes->dilation},
                                              {"groups", call.config.integer("groups").value_or(1)},
                                              {"bias", call.config.flag("use_bias", true)}},
                                             convolution_names(call, "kernel"));
  return made && give_activated(translation, call, *made);
}

// A depthwise convolution; a separable one is followed by a 1x1 convolution.
bool translate_depthwise(KerasTranslation& translation, KerasCall& call) {
  const std::size_t axes = axes_of_class(call.class_name);
  const bool is_separable = call.class_name.starts_with("Separable");
  auto image = image_of(translation, call, axes);
  if (!image) return false;
  const auto sizes = sizes_of(translation, call, *image, axes);
  if (!sizes) return false;
  const Affine channels = translation.layers().type(*image).shape[1];
  const std::int64_t multiplier = call.config.integer("depth_multiplier").value_or(1);
  const bool biased = call.config.flag("use_bias", true);
  const std::string row = fmt::format("conv{}d", axes);
  auto made = translation.add_weighted(
      call, row, {*image},
      {{"channels", checked_multiply(channels.constant, multiplier)},
       {"kernel", sizes->kernel},
       {"stride", sizes->stride},
       {"padding", sizes->padding},
       {"dilation", sizes->dilation},
       {"groups", channels.constant},
       {"bias", biased && !is_separable}},
      is_separable ? std::vector<NamedText>{{"weight", "depthwise_kernel"}}
                   : convolution_names(call, call.keras == 2 ? "depthwise_kernel" : "kernel"));
  if (made && is_separable) {
    const auto filters = call.config.integer("filters");
    if (!filters) return false;
    made = translation.add_weighted(
        call, row, {*made},
        {{"channels", *filters}, {"kernel", Integers(axes, 1)}, {"bias", biased}},
        convolution_names(call, "pointwise_kernel"));
  }
  return made && give_activated(translation, call, *made);
}

// Keras' output size is input * stride with "same"; else it is as large as the filters reach.
bool translate_transposed(KerasTranslation& translation, KerasCall& call) {
  const std::size_t axes = axes_of_class(call.class_name);
  const auto image = image_of(translation, call, axes);
  const Integers kernel = call.config.integers("kernel_size", axes);
  Integers stride = call.config.integers("strides", axes);
  if (stride.empty()) stride.assign(axes, 1);
  const auto filters = call.config.integer("filters");
  if (!image || kernel.empty() || !filters || call.config.find("output_padding") != nullptr) {
    translation.refuse("'output_padding' is not expressed");
    return false;
  }
  Integers padding(axes);
  Integers more(axes);
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t excess = kernel[i] - stride[i];
    if (call.config.text("padding", "valid") == "same" && excess > 0) {
      padding[i] = (excess + 1) / 2;
      more[i] = 2 * padding[i] - excess;
    } else if (excess < 0) {
      more[i] = -excess;
    }
  }
  const auto made = translation.add_weighted(call, fmt::format("conv_transpose{}d", axes), {*image},
                                             {{"channels", *filters},
                                              {"kernel", kernel},
                                              {"stride", stride},
                                              {"padding", padding},
                                              {"output_padding", more},
                                              {"bias", call.config.flag("use_bias", true)}},
                                             convolution_names(call, "kernel"));
  return made && give_activated(translation, call, *made);
}

bool translate_keras_pool(KerasTranslation& translation, KerasCall& call) {
  const std::size_t axes = axes_of_class(call.class_name);
  auto image = image_of(translation, call, axes);
  if (!image) return false;
  const bool is_max = call.class_name.starts_with("Max");
  const Integers kernel = call.config.integers("pool_size", axes);
  Integers stride = call.config.integers("strides", axes);
  if (kernel.empty()) return false;
  if (stride.empty()) stride = kernel;
  Attributes::Entries given{{"kernel", kernel}, {"stride", stride}};
  if (call.config.text("padding", "valid") == "same") {
    const auto same =
        same_padding(translation.layers().type(*image).shape, kernel, stride, Integers(axes, 1));
    if (!same) return false;
    bool rounds_up = true;  // what is padded behind is a window that begins within the image
    for (std::size_t i = 0; i < axes; ++i) {
      rounds_up = rounds_up && (same->before[i] == same->after[i] || stride[i] > 1);
    }
    if (rounds_up) {
      given.emplace_back("padding", same->before);
      given.emplace_back("ceil_mode", !same->is_symmetric());
    } else {
      const auto padded = translation.add(call, "pad", {*image},
                                          {{"before", same->before}, {"after", same->after}});
      if (!padded) return false;
      image = padded;
    }
    if (!is_max) given.emplace_back("count_include_pad", false);
  }
  const auto made = translation.add(call, fmt::format("{}_pool{}d", is_max ? "max" : "avg", axes),
                                    {*image}, std::move(given));
  if (made) give_image(translation, call, *made);
  return made.has_value();
}

bool translate_keras_global_pool(KerasTranslation& translation, KerasCall& call) {
  const std::size_t axes = axes_of_class(call.class_name);
  const auto image = image_of(translation, call, axes);
  if (!image) return false;
  const bool is_max = call.class_name.find("Max") != std::string::npos;
  auto made =
      translation.add(call, fmt::format("adaptive_{}_pool{}d", is_max ? "max" : "avg", axes),
                      {*image}, {{"size", Integers(axes, 1)}});
  if (!made) return false;
  if (call.config.flag("keepdims", false)) {
    give_image(translation, call, *made);
    return true;
  }
  const Shape& shape = translation.layers().type(*made).shape;
  made = translation.add(call, "reshape", {*made}, {{"shape", Shape{shape[0], shape[1]}}});
  if (made) translation.add_output(call, *made);
  return made.has_value();
}

// [[top, bottom], [left, right]], [1, 1] or 1.
bool translate_borders(KerasTranslation& translation, KerasCall& call) {
  const std::size_t axes = axes_of_class(call.class_name);
  const bool crops = call.class_name.starts_with("Cropping");
  const auto image = image_of(translation, call, axes);
  const std::string_view key = crops ? "cropping" : "padding";
  Integers before = call.config.integers(key, axes);
  Integers after = before;
  const YamlNode* written = call.config.find(key);
  if (axes == 1 && call.config.list(key).size() == 2) {
    before = {call.config.list(key)[0]};
    after = {call.config.list(key)[1]};
  } else if (before.empty() && written != nullptr && written->is_sequence()) {
    for (const YamlNode* pair : written->items) {
      if (!pair->is_sequence() || pair->items.size() != 2) return false;
      before.push_back(integer_of(*pair->items[0]).value_or(0));
      after.push_back(integer_of(*pair->items[1]).value_or(0));
    }
  }
  if (!image || before.size() != axes || after.size() != axes) return false;
  if (crops) {
    for (Integers* side : {&before, &after}) {
      for (std::int64_t& number : *side) number = -number;
    }
  }
  const auto made = translation.add(call, "pad", {*image}, {{"before", before}, {"after", after}});
  if (made) give_image(translation, call, *made);
  return made.has_value();
}

bool translate_upsampling(KerasTranslation& translation, KerasCall& call) {
  const std::size_t axes = axes_of_class(call.class_name);
  const auto image = image_of(translation, call, axes);
  if (!image) return false;
  const bool resizes = call.class_name == "Resizing";
  Integers size = call.config.integers("size", axes);
  if (resizes) {
    size = {call.config.integer("height").value_or(0), call.config.integer("width").value_or(0)};
  }
  if (size.empty()) return false;
  const Shape shape = translation.layers().type(*image).shape;
  for (std::size_t i = 0; !resizes && i < axes; ++i) {
    size[i] = checked_multiply(size[i], shape[2 + i].constant);
  }
  const std::string mode = call.config.text("interpolation", resizes ? "bilinear" : "nearest");
  const auto made = translation.add(call, "upsample", {*image}, {{"size", size}, {"mode", mode}});
  if (made) give_image(translation, call, *made);
  return made.has_value();
}

}  // namespace

std::span<const KerasRule> keras_image_rules() {
  static const std::vector<KerasRule> rules = [] {
    std::vector<KerasRule> all;
    const auto add = [&](std::initializer_list<std::string_view> names, auto translate) {
      for (const std::string_view name : names) all.push_back({name, translate});
    };
    add({"Conv1D", "Conv2D", "Conv3D", "Convolution1D", "Convolution2D", "Convolution3D"},
        translate_conv);
    add({"DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"},
        translate_depthwise);
    add({"Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"}, translate_transposed);
    add({"MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "AveragePooling1D", "AveragePooling2D",
         "AveragePooling3D", "MaxPool1D", "MaxPool2D", "MaxPool3D"},
        translate_keras_pool);
    add({"GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D", "GlobalAveragePooling1D",
         "GlobalAveragePooling2D", "GlobalAveragePooling3D"},
        translate_keras_global_pool);
    add({"ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D", "Cropping1D", "Cropping2D",
         "Cropping3D"},
        translate_borders);
    add({"UpSampling1D", "UpSampling2D", "UpSampling3D", "Resizing"}, translate_upsampling);
    return all;
  }();
  return rules;
}

}  // namespace stowage
