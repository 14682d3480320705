// Shapes, joining and taking apart.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "estimator/onnx/checked_axes.hpp"
#include "estimator/onnx/translation_rules.hpp"

namespace stowage {

namespace {

using Integers = std::vector<std::int64_t>;

bool made_view(Translation& translation, const OnnxNode& node, const Shape& shape) {
  const OnnxValue& x = translation.input(node, 0);
  if (shape == x.type.shape) {
    translation.set_output(node, x);
    return true;
  }
  return translation.chain(node, translation.activation(x), {{"reshape", {{"shape", shape}}}});
}

// An exporter that saw one batch wrote its size as a number.
std::vector<Affine> with_open_batch(const Translation& translation, const Shape& from,
                                    std::vector<Affine> wanted) {
  const Affine fixed = translation.fixed_batch;
  const bool is_open = !from.empty() && from[0].slope != 0;
  if (translation.fixed_batch > 0 && is_open && !wanted.empty() && wanted[0] == fixed) {
    wanted[0] = batch_symbol;
  }
  return wanted;
}

bool translate_reshape(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const OnnxValue& target = translation.input(node, 1);
  std::vector<Affine> wanted = target.integers;
  if (const OnnxAttribute* written = node.find("shape")) {
    wanted.assign(written->integers.begin(), written->integers.end());
  } else if (wanted.empty() && !target.numbers()) {
    translation.refuse("its shape does not follow from sizes");
    return false;
  }
  const bool allow_zero = node.integer("allowzero", 0) != 0;
  auto shape = reshaped(x.type.shape, wanted, allow_zero);
  if (!shape) {
    shape = reshaped(x.type.shape, with_open_batch(translation, x.type.shape, wanted), allow_zero);
  }
  if (!shape) {
    const Shape asked(wanted.begin(), wanted.end());
    translation.refuse("its input " + to_string(x.type.shape) + " does not become " +
                       to_string(asked));
    return false;
  }
  return made_view(translation, node, *shape);
}

bool translate_view(Translation& translation, const OnnxNode& node) {
  const auto type = infer_type(node, translation.inputs(node));
  return type && made_view(translation, node, type->shape);
}

bool translate_flatten(Translation& translation, const OnnxNode& node) {
  const Shape& from = translation.input(node, 0).type.shape;
  const std::int64_t axis = node.integer("axis", 1);
  const auto rank = static_cast<std::int64_t>(from.size());
  const std::int64_t cut = axis < 0 ? axis + rank : axis;
  if (cut < 0 || cut > rank) return false;
  return made_view(translation, node,
                   Shape{element_count(Shape(from.begin(), from.begin() + cut)),
                         element_count(Shape(from.begin() + cut, from.end()))});
}

bool translate_transpose(Translation& translation, const OnnxNode& node) {
  const std::size_t rank = translation.input(node, 0).rank();
  const auto order = permutation_of(node, rank);
  if (!order) {
    translation.refuse(fmt::format("its perm [{}] is not a permutation of {} axes",
                                   fmt::join(node.integers("perm"), ", "), rank));
    return false;
  }
  if (std::ranges::is_sorted(*order)) {
    translation.set_output(node, translation.input(node, 0));
    return true;
  }
  Integers axes;
  for (const std::size_t axis : *order) axes.push_back(static_cast<std::int64_t>(axis));
  return translation.chain(node, translation.activation(translation.input(node, 0)),
                           {{"transpose", {{"axes", axes}}}});
}

// A class token that was written for one sample is repeated for all of them.
LayerOutput for_all_samples(Translation& translation, const OnnxNode& node, const OnnxValue& value,
                            bool is_open) {
  const LayerOutput from = translation.activation(value);
  const bool is_fixed = translation.fixed_batch > 0 && !value.type.shape.empty() &&
                        value.type.shape[0] == Affine(translation.fixed_batch);
  if (!is_open || !is_fixed || !from.valid()) return from;
  Shape shape = value.type.shape;
  shape[0] = batch_symbol;
  const auto made = translation.layer(node, "expand", {from}, {{"shape", shape}});
  return made ? LayerOutput{*made, 0} : from;
}

bool translate_concat(Translation& translation, const OnnxNode& node) {
  const auto all = translation.inputs(node);
  const bool is_open =
      node.integer("axis", 0) != 0 && std::ranges::any_of(all, [](const auto* one) {
        return !one->type.shape.empty() && one->type.shape[0].slope != 0;
      });
  std::vector<LayerOutput> from;
  for (const OnnxValue* value : all) {
    if (element_count(value->type.shape) == Affine(0)) continue;
    from.push_back(for_all_samples(translation, node, *value, is_open));
  }
  const auto made =
      translation.layer(node, "concat", std::move(from), {{"axis", node.integer("axis", 0)}});
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

bool translate_split(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  Integers sizes = node.integers("split");
  if (sizes.empty()) sizes = translation.input(node, 1).numbers().value_or(sizes);
  const auto parts = static_cast<std::int64_t>(node.outputs.size());
  const std::int64_t axis = node.integer("axis", 0);
  const auto place = axis_in(axis, x.rank());
  if (!place || parts < 1) return false;
  const Affine extent = x.type.shape[*place];
  const bool is_checked = !sizes.empty() && extent.is_constant();
  if (is_checked && !split_sizes(node, translation.inputs(node), extent.constant)) {
    translation.refuse("its parts do not add up to " + extent.to_string());
    return false;
  }
  if (parts == 1) {
    translation.set_output(node, x);
    return true;
  }
  const bool is_equal = sizes.empty() || std::ranges::all_of(sizes, [&](std::int64_t size) {
                          return size == sizes[0];
                        });
  Attributes::Entries given{{"axis", axis}};
  if (is_equal) {
    given.emplace_back("parts", parts);
  } else {
    given.emplace_back("sizes", sizes);
  }
  const auto made = translation.layer(node, "split", {translation.activation(x)}, std::move(given));
  if (!made) return false;
  const auto outputs = translation.layers().at(*made).outputs.size();
  for (std::size_t i = 0; i < std::min(node.outputs.size(), outputs); ++i) {
    translation.set_output(node, *made, i, static_cast<int>(i));
  }
  return true;
}

// One slice per axis; slices of a whole axis are left out.
bool translate_slice(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const auto slices = slices_of(node, translation.inputs(node));
  if (!slices || slices->empty()) {
    translation.refuse(slices ? "its bounds are not constants" : slices.error());
    return false;
  }
  std::vector<std::pair<std::string, Attributes::Entries>> rows;
  for (const auto& [axis, first, last, step] : *slices) {
    if (step < 1) {
      translation.refuse("slices that run backwards are not expressed");
      return false;
    }
    const Affine extent = x.type.shape[axis];
    constexpr std::int64_t far = std::int64_t{1} << 30U;  // "to the end", as exporters write it
    const bool is_whole = last == extent || (last.is_constant() && last.constant >= far);
    if (first == Affine(0) && is_whole && step == 1) continue;
    if (!extent.is_constant() || !first.is_constant() || !last.is_constant()) {
      translation.refuse("a part of the batch is not expressed");
      return false;
    }
    const auto bounded = [&](std::int64_t place) {
      return std::clamp<std::int64_t>(place < 0 ? place + extent.constant : place, 0,
                                      extent.constant);
    };
    const std::int64_t begin = bounded(first.constant);
    const std::int64_t length = bounded(last.constant) - begin;
    if (length < 1) {
      translation.refuse("it takes nothing");
      return false;
    }
    rows.push_back({"slice",
                    {{"axis", static_cast<std::int64_t>(axis)},
                     {"start", begin},
                     {"length", length},
                     {"step", step}}});
  }
  if (rows.empty()) {
    translation.set_output(node, x);
    return true;
  }
  return translation.chain(node, translation.activation(x), rows);
}

bool translate_expand(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const auto type = infer_type(node, translation.inputs(node));
  if (!type) {
    translation.refuse("its shape does not follow from sizes");
    return false;
  }
  if (type->shape == x.type.shape) {
    translation.set_output(node, x);
    return true;
  }
  return translation.chain(node, translation.activation(x), {{"expand", {{"shape", type->shape}}}});
}

bool translate_tile(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const OnnxValue& repeats = translation.input(node, 1);
  const auto type = infer_type(node, translation.inputs(node));
  if (!type) return false;
  bool widens_ones = true;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    widens_ones = widens_ones && (x.type.shape[i] == Affine(1) || repeats.integers[i] == Affine(1));
  }
  const auto numbers = repeats.numbers();
  if (numbers &&
      translation.chain(node, translation.activation(x), {{"tile", {{"repeats", *numbers}}}})) {
    return true;
  }
  if (!widens_ones) return false;
  return translation.chain(node, translation.activation(x),
                           {{"expand", {{"shape", type->shape}}}, {"contiguous", {}}});
}

// CRD is PyTorch's pixel_shuffle; DCR has the factors before the channels.
bool translate_depth_to_space(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const std::int64_t factor = node.integer("blocksize", 1);
  constexpr std::size_t image_rank = 4;
  if (x.rank() != image_rank || factor < 1) return false;
  const LayerOutput from = translation.activation(x);
  if (node.text("mode", "DCR") == "CRD") {
    return translation.chain(node, from, {{"pixel_shuffle", {{"factor", factor}}}});
  }
  const Shape& s = x.type.shape;
  const Affine squared = Affine(factor) * Affine(factor);
  if (!divides(squared, s[1])) return false;
  const Affine channels = quotient(s[1], squared);
  return translation.chain(
      node, from,
      {{"reshape", {{"shape", Shape{s[0], factor, factor, channels, s[2], s[3]}}}},
       {"transpose", {{"axes", Integers{0, 3, 4, 1, 5, 2}}}},
       {"reshape",
        {{"shape", Shape{s[0], channels, s[2] * Affine(factor), s[3] * Affine(factor)}}}}});
}

bool translate_space_to_depth(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const Affine factor = node.integer("blocksize", 1);
  constexpr std::size_t image_rank = 4;
  const Shape& s = x.type.shape;
  if (x.rank() != image_rank || factor.constant < 1 || !divides(factor, s[2]) ||
      !divides(factor, s[3])) {
    return false;
  }
  const Affine height = quotient(s[2], factor);
  const Affine width = quotient(s[3], factor);
  return translation.chain(
      node, translation.activation(x),
      {{"reshape", {{"shape", Shape{s[0], s[1], height, factor, width, factor}}}},
       {"transpose", {{"axes", Integers{0, 3, 5, 1, 2, 4}}}},
       {"reshape", {{"shape", Shape{s[0], s[1] * factor * factor, height, width}}}}});
}

bool translate_triangle(Translation& translation, const OnnxNode& node) {
  const std::string row = node.integer("upper", 1) != 0 ? "triu" : "tril";
  const std::int64_t diagonal = translation.input(node, 1).integer().value_or(0);
  return translation.chain(node, translation.activation(translation.input(node, 0)),
                           {{row, {{"diagonal", diagonal}}}});
}

bool translate_one_hot(Translation& translation, const OnnxNode& node) {
  const auto classes = translation.input(node, 1).integer();
  if (!classes || node.integer("axis", -1) != -1) return false;
  return translation.chain(node, translation.activation(translation.input(node, 0)),
                           {{"one_hot", {{"classes", *classes}}}});
}

}  // namespace

std::span<const OnnxRule> onnx_layout_rules() {
  static constexpr std::array rules{
      OnnxRule{"Reshape", translate_reshape},
      OnnxRule{"Squeeze", translate_view},
      OnnxRule{"Unsqueeze", translate_view},
      OnnxRule{"Flatten", translate_flatten},
      OnnxRule{"Transpose", translate_transpose},
      OnnxRule{"Concat", translate_concat},
      OnnxRule{"Split", translate_split},
      OnnxRule{"Slice", translate_slice},
      OnnxRule{"Expand", translate_expand},
      OnnxRule{"Tile", translate_tile},
      OnnxRule{"DepthToSpace", translate_depth_to_space},
      OnnxRule{"SpaceToDepth", translate_space_to_depth},
      OnnxRule{"Trilu", translate_triangle},
      OnnxRule{"OneHot", translate_one_hot},
  };
  return rules;
}

}  // namespace stowage
