// Preprocessing and augmentation layers, and arithmetic on tensors: what applications'
// preprocess_input() writes into a model, as Keras 3's operations and as Keras 2's TFOpLambda.
//
// Each operation of TensorFlow's that gives a tensor of its own is a layer here: `inputs * scale +
// offset` is two. Augmentation runs in training alone (`training_copies`); how many tensors of the
// image's size a layer makes is read from keras/src/layers/preprocessing of Keras 3.15:
//
//   RandomFlip                     the mirrored image and the choice (where), for each direction
//   RandomRotation, RandomZoom,
//   RandomTranslation, RandomShear one, by ImageProjectiveTransformV3
//   RandomContrast                 less the mean, times the factor, plus the mean, two of the clip
//   RandomBrightness               the sum, two of the clip
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "estimator/keras/keras_translation.hpp"

namespace stowage {

namespace {

using Integers = std::vector<std::int64_t>;

constexpr std::size_t one_image_rank = 4;

/// The input as floating-point numbers, which Keras' layers convert it to.
std::optional<LayerOutput> floating_input(KerasTranslation& translation, const KerasCall& call) {
  const LayerOutput x = call.inputs[0].layer;
  if (is_floating_point(translation.layers().type(x).type)) return x;
  return translation.add(call, "cast", {x}, {{"dtype", std::string("float32")}});
}

// ---- arithmetic with numbers

/// One operation whose result has the input's size. Its numbers are not those of the file.
bool give_arithmetic(KerasTranslation& translation, KerasCall& call) {
  const auto x = floating_input(translation, call);
  const auto made = x ? translation.add(call, "scale", {*x}, {{"factor", 1.0}}) : x;
  if (made) translation.add_output_like(call, call.inputs[0], *made);
  return made.has_value();
}

/// Subtract, Multiply and their like: of a tensor and numbers, or of two tensors.
bool translate_operation(KerasTranslation& translation, KerasCall& call) {
  if (call.inputs.size() == 1) return give_arithmetic(translation, call);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> rows{
      {{"TrueDivide", "div"}, {"Divide", "div"}}};
  const auto row = std::ranges::find(rows, call.class_name, &decltype(rows)::value_type::first);
  if (row == rows.end() || call.inputs.size() != 2) return false;
  const bool images = call.inputs[0].channels_first && call.inputs[1].channels_first;
  std::vector<LayerOutput> from;
  for (const KerasTensor& input : call.inputs) {
    const auto one = images ? std::optional(input.layer) : translation.channels_last(call, input);
    if (!one) return false;
    from.push_back(*one);
  }
  const auto made = translation.add(call, row->second, std::move(from));
  if (!made) return false;
  if (images) {
    translation.add_channels_first_output(call, *made);
  } else {
    translation.add_output(call, *made);
  }
  return true;
}

// ---- parts of a tensor

/// How a subscript takes an axis.
struct AxisPart {
  bool dropped = false;   ///< one place, and the axis is gone
  bool mirrored = false;  ///< [::-1]
  std::optional<std::int64_t> start = {}, stop = {};
  [[nodiscard]] bool is_whole() const { return !dropped && !mirrored && !start && !stop; }
};

std::optional<AxisPart> part_of(const YamlNode& node) {
  AxisPart part;
  if (const auto place = integer_of(node)) {
    part.dropped = true;
    part.start = place;
    return part;
  }
  if (!node.is_mapping()) return std::nullopt;
  KerasConfig written(&node);
  if (written.text("class_name") == "__slice__") written = written.at("config");
  const YamlNode* const object = written.node();
  if (object == nullptr || !object->is_mapping() || object->find("step") == nullptr) {
    return std::nullopt;
  }
  const std::int64_t step = written.integer("step").value_or(1);
  part.start = written.integer("start");
  part.stop = written.integer("stop");
  part.mirrored = step == -1 && !part.start && !part.stop;
  if (step != 1 && !part.mirrored) return std::nullopt;
  return part;
}

bool is_ellipsis(const YamlNode& node) {
  return (node.is_scalar() && node.text == "...") ||
         KerasConfig(&node).text("class_name") == "__ellipsis__";
}

/// The parts of all axes, the batch's included; nullopt: it is no such subscript.
std::optional<std::vector<AxisPart>> parts_of(const YamlNode* subscript, std::size_t rank) {
  if (subscript == nullptr) return std::nullopt;
  std::vector<const YamlNode*> items{subscript};
  if (subscript->is_sequence()) items.assign(subscript->items.begin(), subscript->items.end());
  const bool has_ellipsis =
      std::ranges::any_of(items, [](const YamlNode* item) { return is_ellipsis(*item); });
  const std::size_t named = items.size() - (has_ellipsis ? 1 : 0);
  if (named > rank) return std::nullopt;
  std::vector<AxisPart> parts;
  for (const YamlNode* item : items) {
    if (is_ellipsis(*item)) {
      if (parts.size() + (rank - named) > rank) return std::nullopt;
      parts.resize(parts.size() + rank - named);
      continue;
    }
    const auto part = part_of(*item);
    if (!part) return std::nullopt;
    parts.push_back(*part);
  }
  if (parts.size() > rank) return std::nullopt;
  parts.resize(rank);
  if (!parts.front().is_whole()) return std::nullopt;
  return parts;
}

/// The subscript: the second argument of Keras 3's GetItem, `slice_spec` of Keras 2's.
const YamlNode* subscript_of(const KerasCall& call) {
  if (const YamlNode* spec = call.keywords.find("slice_spec")) return spec;
  if (const YamlNode* key = call.keywords.find("key")) return key;
  const bool has_two = call.arguments != nullptr && call.arguments->is_sequence() &&
                       call.arguments->items.size() == 2;
  return has_two ? call.arguments->items[1] : nullptr;
}

// TensorFlow copies what a subscript takes (StridedSlice).
bool translate_part(KerasTranslation& translation, KerasCall& call) {
  const KerasTensor& x = call.inputs[0];
  const auto parts = parts_of(subscript_of(call), x.shape.size());
  if (!parts || call.inputs.size() != 1) {
    translation.refuse("its subscript is not one of whole axes, ranges and single places");
    return false;
  }
  std::optional<LayerOutput> made = x.layer;
  Shape shape = x.shape;
  bool copied = false;
  for (std::size_t axis = 1; axis < parts->size() && made; ++axis) {
    const AxisPart& part = (*parts)[axis];
    if (part.is_whole() || part.mirrored) continue;
    const auto of_layer = layer_axis(x, static_cast<std::int64_t>(axis));
    if (!of_layer || !shape[axis].is_constant()) return false;
    const std::int64_t extent = shape[axis].constant;
    const auto place = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent);
    };
    const std::int64_t start = place(part.start.value_or(0));
    const std::int64_t stop = part.dropped ? start + 1 : place(part.stop.value_or(extent));
    if (stop <= start || stop > extent) return false;
    made = translation.add(call, "slice", {*made},
                           {{"axis", *of_layer}, {"start", start}, {"length", stop - start}});
    shape[axis] = stop - start;
    copied = true;
  }
  if (made && !copied) made = translation.add(call, "scale", {*made}, {{"factor", 1.0}});
  if (!made) return false;
  Shape kept;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!(*parts)[axis].dropped) kept.push_back(shape[axis]);
  }
  if (kept.size() == shape.size()) {
    call.outputs.push_back({*made, shape, x.channels_first});
    return true;
  }
  made = translation.add(call, "reshape", {*made}, {{"shape", kept}});
  if (made) translation.add_output(call, *made);
  return made.has_value();
}

// Tensors beside each other on a new axis; of images without channels an image.
bool translate_stack(KerasTranslation& translation, KerasCall& call) {
  const Shape shape = call.inputs[0].shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  std::int64_t axis = call.config.integer("axis").value_or(0);
  if (axis < 0) axis += rank + 1;
  if (axis < 1 || axis > rank) {
    translation.refuse("it stacks along the batch");
    return false;
  }
  const bool as_image = shape.size() + 1 == one_image_rank && axis == rank;
  Shape apart = shape;
  apart.insert(apart.begin() + (as_image ? 1 : axis), 1);
  std::vector<LayerOutput> all;
  for (const KerasTensor& input : call.inputs) {
    const auto one = translation.channels_last(call, input);
    const auto made = one ? translation.add(call, "reshape", {*one}, {{"shape", apart}}) : one;
    if (!made) return false;
    all.push_back(*made);
  }
  const auto made =
      translation.add(call, "concat", std::move(all), {{"axis", as_image ? 1 : axis}});
  if (!made) return false;
  if (as_image) {
    translation.add_channels_first_output(call, *made);
  } else {
    translation.add_output(call, *made);
  }
  return true;
}

// ---- Keras 2: tf.math.subtract and its like as layers

bool translate_tf_operation(KerasTranslation& translation, KerasCall& call) {
  const std::string function = call.config.text("function");
  if (function == "__operators__.getitem") return translate_part(translation, call);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> classes{
      {{"math.add", "Add"},
       {"__operators__.add", "Add"},
       {"math.subtract", "Subtract"},
       {"__operators__.sub", "Subtract"},
       {"math.multiply", "Multiply"},
       {"__operators__.mul", "Multiply"},
       {"math.truediv", "TrueDivide"},
       {"math.divide", "Divide"},
       {"__operators__.truediv", "TrueDivide"},
       {"math.negative", "Negative"},
       {"nn.bias_add", "Add"},
       {"cast", "Negative"}}};
  const auto known = std::ranges::find(classes, function, &decltype(classes)::value_type::first);
  if (known == classes.end()) {
    translation.refuse(fmt::format("it calls TensorFlow's {}", function));
    return false;
  }
  if (call.inputs.size() == 1) return give_arithmetic(translation, call);
  call.class_name = known->second;
  const KerasRule* const rule = find_keras_rule(call.class_name);
  return rule != nullptr && rule->translate(translation, call);
}

// ---- layers

bool translate_rescaling(KerasTranslation& translation, KerasCall& call) {
  const auto x = floating_input(translation, call);
  auto made = x ? translation.add(call, "scale", {*x},
                                  {{"factor", call.config.number("scale").value_or(1)}})
                : x;
  const double offset = call.config.number("offset").value_or(0);
  if (made) made = translation.add(call, "scale", {*made}, {{"offset", offset}});
  if (made) translation.add_output_like(call, call.inputs[0], *made);
  return made.has_value();
}

/// (x - mean) / max(sqrt(variance), epsilon). Statistics that adapt() has learned are weights.
bool translate_keras_normalization(KerasTranslation& translation, KerasCall& call) {
  const KerasTensor& x = call.inputs[0];
  const auto input = floating_input(translation, call);
  if (!input) return false;
  if (!is_nothing(call.config.find("mean"))) {
    const auto centred = translation.add(call, "scale", {*input}, {{"offset", 0.0}});
    const auto made =
        centred ? translation.add(call, "scale", {*centred}, {{"factor", 1.0}}) : centred;
    if (made) translation.add_output_like(call, x, *made);
    return made.has_value();
  }
  Integers axes = call.config.list("axis");
  if (const auto one = call.config.integer("axis")) axes = {*one};
  if (axes.size() > 1 || (axes.size() == 1 && axes[0] != -1 &&
                          axes[0] != static_cast<std::int64_t>(x.shape.size()) - 1)) {
    translation.refuse("it keeps statistics of another axis than the last");
    return false;
  }
  Shape shape;
  if (!axes.empty()) {
    shape.push_back(x.shape.back());
    if (x.channels_first) shape.resize(x.shape.size() - 1, 1);
  }
  const auto weight = [&](std::string name, const Shape& of, std::string_view type) {
    return translation.add_weighted(call, "constant", {},
                                    {{"shape", of}, {"dtype", std::string(type)}, {"buffer", true}},
                                    {{"value", std::move(name)}});
  };
  const auto mean = weight("mean", shape, "float32");
  const auto variance = weight("variance", shape, "float32");
  if (!mean || !variance) return false;
  const auto centred = translation.add(call, "sub", {*input, *mean});
  const auto made = centred ? translation.add(call, "div", {*centred, *variance}) : centred;
  if (made) translation.add_output_like(call, x, *made);
  return made.has_value();
}

bool augments(KerasTranslation& translation, KerasCall& call, std::int64_t copies) {
  const auto x = floating_input(translation, call);
  const auto made = x ? translation.add(call, "identity", {*x}, {{"training_copies", copies}}) : x;
  if (made) translation.add_output_like(call, call.inputs[0], *made);
  return made.has_value();
}

bool translate_flip(KerasTranslation& translation, KerasCall& call) {
  const bool both =
      call.config.text("mode", "horizontal_and_vertical") == "horizontal_and_vertical";
  return augments(translation, call, both ? 4 : 2);
}

bool translate_projection(KerasTranslation& translation, KerasCall& call) {
  return augments(translation, call, 1);
}

bool translate_contrast(KerasTranslation& translation, KerasCall& call) {
  return augments(translation, call, 5);
}

bool translate_brightness(KerasTranslation& translation, KerasCall& call) {
  return augments(translation, call, 3);
}

// A part of the image, random or its middle; an image that is smaller is resized.
bool translate_crop(KerasTranslation& translation, KerasCall& call) {
  const auto height = call.config.integer("height");
  const auto width = call.config.integer("width");
  const auto x = floating_input(translation, call);
  if (!height || !width || !x || call.inputs[0].shape.size() != one_image_rank) return false;
  KerasTensor floating = call.inputs[0];
  floating.layer = *x;
  const bool first = call.config.text("data_format", "channels_last") == "channels_first";
  const auto image = first ? translation.channels_last(call, floating)
                           : translation.channels_first(call, floating);
  if (!image) return false;
  const Shape& shape = translation.layers().type(*image).shape;
  const std::int64_t top = shape[2].constant - *height, left = shape[3].constant - *width;
  const auto made =
      top >= 0 && left >= 0
          ? translation.add(call, "pad", {*image},
                            {{"before", Integers{-(top / 2), -(left / 2)}},
                             {"after", Integers{-(top - top / 2), -(left - left / 2)}}})
          : translation.add(
                call, "upsample", {*image},
                {{"size", Integers{*height, *width}}, {"mode", std::string("bilinear")}});
  if (!made) return false;
  if (first) {
    translation.add_output(call, *made);
  } else {
    translation.add_channels_first_output(call, *made);
  }
  return true;
}

}  // namespace

std::span<const KerasRule> keras_preprocessing_rules() {
  static constexpr std::array rules{
      KerasRule{"Rescaling", translate_rescaling},
      KerasRule{"Normalization", translate_keras_normalization},
      KerasRule{"RandomFlip", translate_flip},
      KerasRule{"RandomRotation", translate_projection},
      KerasRule{"RandomZoom", translate_projection},
      KerasRule{"RandomTranslation", translate_projection},
      KerasRule{"RandomShear", translate_projection},
      KerasRule{"RandomContrast", translate_contrast},
      KerasRule{"RandomBrightness", translate_brightness},
      KerasRule{"RandomCrop", translate_crop},
      KerasRule{"CenterCrop", translate_crop},
      KerasRule{"TrueDivide", translate_operation},
      KerasRule{"Divide", translate_operation},
      KerasRule{"Negative", translate_operation},
      KerasRule{"GetItem", translate_part},
      KerasRule{"SlicingOpLambda", translate_tf_operation},
      KerasRule{"TFOpLambda", translate_tf_operation},
      KerasRule{"Stack", translate_stack},
  };
  return rules;
}

}  // namespace stowage
