// Pooling, padding, resizing.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "estimator/onnx/checked_axes.hpp"
#include "estimator/onnx/translation_rules.hpp"
#include "estimator/onnx/window.hpp"

namespace stowage {

namespace {

using Integers = std::vector<std::int64_t>;

constexpr double lowest_float = -3.4028234663852886e38;

// Asymmetric padding is a separate layer, as in PyTorch.
std::optional<LayerOutput> padded_apart(Translation& translation, const OnnxNode& node,
                                        const OnnxValue& x, OnnxWindow& window, double value) {
  if (window.is_symmetric()) return x.layer;
  const auto made =
      translation.layer(node, "pad", {x.layer},
                        {{"before", window.before}, {"after", window.after}, {"value", value}});
  if (!made) return std::nullopt;
  window.before.assign(window.before.size(), 0);
  return LayerOutput{*made, 0};
}

bool translate_pool(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  auto window = window_of(node, x.type.shape, node.integers("kernel_shape"));
  if (!window || !x.is_activation()) {
    translation.refuse("its window does not follow");
    return false;
  }
  const bool is_max = node.op == "MaxPool";
  const bool counts_padding = node.integer("count_include_pad", 0) != 0;
  if (!is_max && !window->is_symmetric() && !counts_padding) {
    translation.refuse(
        "an average without padding that differs from side to side is not expressed");
    return false;
  }
  const auto from = padded_apart(translation, node, x, *window, is_max ? lowest_float : 0);
  if (!from) return false;
  Attributes::Entries given{{"kernel", window->kernel},
                            {"stride", window->stride},
                            {"padding", window->before},
                            {"ceil_mode", node.integer("ceil_mode", 0) != 0}};
  const bool is_dilated =
      std::ranges::any_of(window->dilation, [](auto step) { return step != 1; });
  if (is_max) given.emplace_back("dilation", window->dilation);
  if (!is_max) given.emplace_back("count_include_pad", counts_padding);
  if (!is_max && is_dilated) {
    translation.refuse("an average of spaced elements is not expressed");
    return false;
  }
  const bool wants_places = is_max && node.outputs.size() > 1 && !node.outputs[1].empty();
  if (wants_places) {
    translation.refuse("the places of the maxima are not an output of the catalogue's pooling");
    return false;
  }
  const auto made = translation.layer(
      node, fmt::format("{}_pool{}d", is_max ? "max" : "avg", window->kernel.size()), {*from},
      std::move(given));
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

bool translate_global_pool(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  if (x.rank() < 3) return false;
  const std::string_view kind = node.op == "GlobalMaxPool" ? "max" : "avg";
  const std::size_t axes = x.rank() - 2;
  const auto made = translation.layer(node, fmt::format("adaptive_{}_pool{}d", kind, axes),
                                      {translation.activation(x)}, {{"size", Integers(axes, 1)}});
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

bool translate_pad(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  Integers pads = node.integers("pads");
  if (pads.empty()) pads = translation.input(node, 1).numbers().value_or(pads);
  Integers axes = translation.input(node, 3).numbers().value_or(Integers());
  if (axes.empty()) {
    for (std::size_t i = 0; i < x.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (!x.is_activation() || pads.size() != 2 * axes.size()) {
    translation.refuse("its padding is not a constant");
    return false;
  }
  Integers before(x.rank()), after(x.rank());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = axis_in(axes[i], x.rank());
    if (!axis) return false;
    before[*axis] = pads[i];
    after[*axis] = pads[axes.size() + i];
  }
  while (!before.empty() && before[0] == 0 && after[0] == 0) {
    before.erase(before.begin());
    after.erase(after.begin());
  }
  if (before.empty()) {
    translation.set_output(node, x);
    return true;
  }
  const std::string mode = node.text("mode", "constant");
  const std::string word = mode == "edge" ? "replicate" : mode == "wrap" ? "circular" : mode;
  Attributes::Entries given{{"before", before}, {"after", after}, {"mode", word}};
  if (mode == "constant") {
    given.emplace_back("value",
                       translation.input(node, 2).scalar().value_or(node.real("value", 0)));
  }
  const auto made = translation.layer(node, "pad", {x.layer}, std::move(given));
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

// By scales or by sizes; those of batch and channels must leave them alone.
bool translate_resize(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  constexpr std::size_t outer = 2;
  if (!x.is_activation() || x.rank() <= outer) {
    translation.refuse("only images are resized");
    return false;
  }
  const bool is_upsample = node.op == "Upsample";
  const OnnxValue& scales = translation.input(node, is_upsample || node.inputs.size() == 2 ? 1 : 2);
  const OnnxValue& sizes = translation.input(node, 3);
  std::vector<double> factors = scales.reals;
  if (const OnnxAttribute* written = node.find("scales")) factors = written->reals;
  Integers extents;
  for (std::size_t i = outer; i < x.rank(); ++i) {
    if (sizes.integers.size() == x.rank()) {
      extents.push_back(sizes.integers[i].constant);
    } else if (sizes.integers.size() + outer == x.rank()) {
      extents.push_back(sizes.integers[i - outer].constant);
    } else if (factors.size() == x.rank()) {
      const double wanted = static_cast<double>(x.type.shape[i].constant) * factors[i];
      constexpr double most = 1e9;
      if (!(wanted >= 1 && wanted < most)) return false;
      extents.push_back(static_cast<std::int64_t>(wanted));
    } else {
      translation.refuse("its sizes are not constants");
      return false;
    }
  }
  const std::string mode = node.text("mode", "nearest");
  const std::size_t axes = x.rank() - outer;
  std::string word = mode;
  if (mode == "linear") word = axes == 1 ? "linear" : axes == 2 ? "bilinear" : "trilinear";
  if (mode == "cubic") word = "bicubic";
  const std::string corners = node.text("coordinate_transformation_mode", "half_pixel");
  const auto made = translation.layer(
      node, "upsample", {x.layer},
      {{"size", extents}, {"mode", word}, {"align_corners", corners == "align_corners"}});
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

}  // namespace

std::span<const OnnxRule> onnx_pooling_rules() {
  static constexpr std::array rules{
      OnnxRule{"MaxPool", translate_pool},
      OnnxRule{"AveragePool", translate_pool},
      OnnxRule{"GlobalAveragePool", translate_global_pool},
      OnnxRule{"GlobalMaxPool", translate_global_pool},
      OnnxRule{"Pad", translate_pad},
      OnnxRule{"Resize", translate_resize},
      OnnxRule{"Upsample", translate_resize},
  };
  return rules;
}

}  // namespace stowage
