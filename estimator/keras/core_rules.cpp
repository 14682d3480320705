// Dense, Embedding, shapes, merging.
#include <algorithm>
#include <array>

#include "estimator/keras/keras_translation.hpp"

namespace stowage {

namespace {

using Integers = std::vector<std::int64_t>;

// Dense on the channels of an image is a convolution with a window of one element, which keeps the
// channel order.
bool translate_dense(KerasTranslation& translation, KerasCall& call) {
  const auto units = call.config.integer("units");
  if (!units || call.inputs.empty()) return false;
  const KerasTensor& x = call.inputs[0];
  const bool biased = call.config.flag("use_bias", true);
  std::vector<NamedText> names{{"weight", "kernel"}};
  if (biased) names.emplace_back("bias", "bias");
  constexpr std::size_t image_rank = 4;
  if (x.channels_first && x.shape.size() == image_rank) {
    const auto made = translation.add_weighted(
        call, "conv2d", {x.layer},
        {{"channels", *units}, {"kernel", Integers{1, 1}}, {"bias", biased}}, names);
    if (!made) return false;
    translation.add_channels_first_output(call, *made);
  } else {
    const auto from = translation.channels_last(call, x);
    if (!from) return false;
    const auto made = translation.add_weighted(call, "linear", {*from},
                                               {{"features", *units}, {"bias", biased}}, names);
    if (!made) return false;
    translation.add_output(call, *made);
  }
  return translation.activate(call, call.config.class_name("activation"));
}

bool translate_keras_embedding(KerasTranslation& translation, KerasCall& call) {
  const auto count = call.config.integer("input_dim");
  const auto features = call.config.integer("output_dim");
  if (!count || !features || call.inputs.empty()) return false;
  const auto made = translation.add_weighted(call, "embedding", {call.inputs[0].layer},
                                             {{"count", *count}, {"features", *features}},
                                             {{"weight", "embeddings"}});
  if (made) translation.add_output(call, *made);
  return made.has_value();
}

Shape with_rest(const Shape& from, const Integers& wanted) {
  Shape shape{from.front()};
  Affine rest = 1;
  for (std::size_t i = 1; i < from.size(); ++i) rest = rest * from[i];
  Affine known = 1;
  for (const std::int64_t extent : wanted) {
    if (extent > 0) known = known * Affine(extent);
  }
  for (const std::int64_t extent : wanted) {
    shape.push_back(extent > 0                                   ? Affine(extent)
                    : known != Affine(0) && divides(known, rest) ? quotient(rest, known)
                                                                 : Affine(0));
  }
  return shape;
}

bool translate_flattening(KerasTranslation& translation, KerasCall& call) {
  const Shape shape = call.inputs[0].shape;
  const bool is_flat = call.class_name == "Flatten";
  const Shape target = with_rest(shape, is_flat ? Integers{-1} : call.config.list("target_shape"));
  const auto made = translation.add(call, "reshape", {call.inputs[0].layer}, {{"shape", target}});
  if (made) translation.add_output(call, *made);
  return made.has_value();
}

bool translate_permutation(KerasTranslation& translation, KerasCall& call) {
  const auto from = translation.channels_last(call, call.inputs[0]);
  Integers axes = call.config.list("dims");
  axes.insert(axes.begin(), 0);
  const auto made = from ? translation.add(call, "transpose", {*from}, {{"axes", axes}}) : from;
  if (made) translation.add_output(call, *made);
  return made.has_value();
}

bool translate_repetition(KerasTranslation& translation, KerasCall& call) {
  const Shape& s = call.inputs[0].shape;
  const auto count = call.config.integer("n");
  if (!count || s.size() != 2) return false;
  auto made =
      translation.add(call, "reshape", {call.inputs[0].layer}, {{"shape", Shape{s[0], 1, s[1]}}});
  if (made) {
    made = translation.add(call, "expand", {*made}, {{"shape", Shape{s[0], *count, s[1]}}});
  }
  if (made) translation.add_output(call, *made);
  return made.has_value();
}

// All inputs in one channel order: channels first if all of them have it.
std::optional<std::vector<LayerOutput>> alike(KerasTranslation& translation, const KerasCall& call,
                                              bool& as_images) {
  as_images =
      std::ranges::all_of(call.inputs, [](const KerasTensor& one) { return one.channels_first; });
  std::vector<LayerOutput> all;
  for (const KerasTensor& input : call.inputs) {
    const auto one =
        as_images ? std::optional(input.layer) : translation.channels_last(call, input);
    if (!one) return std::nullopt;
    all.push_back(*one);
  }
  return all;
}

void give_alike(KerasTranslation& translation, KerasCall& call, LayerOutput output,
                bool as_images) {
  if (as_images) return translation.add_channels_first_output(call, output);
  translation.add_output(call, output);
}

bool translate_merging(KerasTranslation& translation, KerasCall& call) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> rows{
      {{"Add", "add"},
       {"Average", "add"},
       {"Subtract", "sub"},
       {"Multiply", "mul"},
       {"Maximum", "maximum"},
       {"Minimum", "minimum"}}};
  const auto row =
      std::ranges::find_if(rows, [&](const auto& one) { return one.first == call.class_name; });
  bool as_images = false;
  // An operation with numbers, which has its class's name.
  if (call.inputs.size() == 1 && call.config.find("dtype") == nullptr) {
    const auto made = translation.add(call, "scale", {call.inputs[0].layer}, {{"factor", 1.0}});
    if (made) translation.add_output_like(call, call.inputs[0], *made);
    return made.has_value();
  }
  const auto from = alike(translation, call, as_images);
  if (!from || from->size() < 2) {
    translation.refuse("it merges less than two tensors");
    return false;
  }
  std::optional<LayerOutput> sum = (*from)[0];
  for (std::size_t i = 1; i < from->size() && sum; ++i) {
    sum = translation.add(call, row->second, {*sum, (*from)[i]});
  }
  if (sum && call.class_name == "Average") {
    sum = translation.add(call, "scale", {*sum},
                          {{"factor", 1.0 / static_cast<double>(from->size())}});
  }
  if (sum) give_alike(translation, call, *sum, as_images);
  return sum.has_value();
}

bool translate_concatenation(KerasTranslation& translation, KerasCall& call) {
  bool as_images = false;
  const auto from = alike(translation, call, as_images);
  if (!from || from->empty()) return false;
  KerasTensor held = call.inputs[0];
  held.channels_first = as_images;
  const auto axis = layer_axis(held, call.config.integer("axis").value_or(-1));
  if (!axis) return false;
  const auto made = translation.add(call, "concat", *from, {{"axis", *axis}});
  if (made) give_alike(translation, call, *made, as_images);
  return made.has_value();
}

// For vectors: the sum of their product. For sequences: a matrix product.
bool translate_dot(KerasTranslation& translation, KerasCall& call) {
  const Integers axes = call.config.integers("axes", 2);
  if (call.inputs.size() != 2 || axes.size() != 2 || call.config.flag("normalize", false)) {
    translation.refuse("normalized products are not expressed");
    return false;
  }
  const auto a = translation.channels_last(call, call.inputs[0]);
  const auto b = translation.channels_last(call, call.inputs[1]);
  if (!a || !b) return false;
  const std::size_t rank = call.inputs[0].shape.size();
  std::optional<LayerOutput> made;
  if (rank == 2) {
    made = translation.add(call, "mul", {*a, *b});
    if (made) made = translation.add(call, "sum", {*made}, {{"axes", Integers{1}}, {"keep", true}});
  } else if (rank == 3) {
    made = translation.add(
        call, "matmul", {*a, *b},
        {{"transpose_a", axes[0] == 1}, {"transpose_b", axes[1] == 2 || axes[1] == -1}});
  }
  if (made) translation.add_output(call, *made);
  return made.has_value();
}

bool translate_nothing(KerasTranslation&, KerasCall& call) {
  call.outputs = call.inputs;
  return true;
}

}  // namespace

std::span<const KerasRule> keras_core_rules() {
  static constexpr std::array rules{
      KerasRule{"Dense", translate_dense},
      KerasRule{"Embedding", translate_keras_embedding},
      KerasRule{"Flatten", translate_flattening},
      KerasRule{"Reshape", translate_flattening},
      KerasRule{"Permute", translate_permutation},
      KerasRule{"RepeatVector", translate_repetition},
      KerasRule{"Add", translate_merging},
      KerasRule{"Average", translate_merging},
      KerasRule{"Subtract", translate_merging},
      KerasRule{"Multiply", translate_merging},
      KerasRule{"Maximum", translate_merging},
      KerasRule{"Minimum", translate_merging},
      KerasRule{"Concatenate", translate_concatenation},
      KerasRule{"Dot", translate_dot},
      KerasRule{"Identity", translate_nothing},
      KerasRule{"Masking", translate_nothing},
      KerasRule{"ActivityRegularization", translate_nothing},
  };
  return rules;
}

}  // namespace stowage
