// Convolutions and products.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "estimator/onnx/exporter_rewrites.hpp"
#include "estimator/onnx/translation_rules.hpp"
#include "estimator/onnx/window.hpp"

namespace stowage {

namespace {

using Integers = std::vector<std::int64_t>;

bool has_bias(const Translation& translation, const OnnxNode& node, std::size_t input,
              const Affine& features) {
  const OnnxValue& bias = translation.input(node, input);
  return bias.is_parameter() && bias.type.shape == Shape{features};
}

// Adds a learned offset that is not one of the row's parameters as a separate layer.
bool add_rest(Translation& translation, const OnnxNode& node, int layer, std::size_t input) {
  const OnnxValue& rest = translation.input(node, input);
  const bool is_zero = rest.is_constant() && !rest.reals.empty() &&
                       std::ranges::all_of(rest.reals, [](double one) { return one == 0; });
  if (rest.is_absent() || is_zero) {
    translation.set_output(node, layer);
    return true;
  }
  const auto sum = translation.layer(node, "add", {{layer, 0}, translation.activation(rest)});
  if (sum) translation.set_output(node, *sum);
  return sum.has_value();
}

// Restores the batch norm that an exporter folded into the node, as the node's output.
bool give_with_norm(Translation& translation, const OnnxNode& node, int layer) {
  OnnxNode named = node;
  named.name = folded_norm_name(node);
  const auto norm = translation.layer(named, "batch_norm", {{layer, 0}});
  if (!norm) return false;
  if (!named.name.empty()) {
    ImportedLayer& made = translation.layers().at(*norm);
    for (const ParameterSpec& spec : made.parameters) {
      made.parameter_names.emplace_back(spec.name, named.name + "." + std::string(spec.name));
    }
  }
  ++translation.restored_norms;
  translation.set_output(node, *norm);
  return true;
}

// Its name is that of the weight beside it.
void name_lost_bias(Translation& translation, int layer) {
  ImportedLayer& made = translation.layers().at(layer);
  if (made.parameter_names.empty()) return;
  const std::string owner = owner_of_parameter(made.parameter_names[0].second);
  made.parameter_names.emplace_back("bias", owner + ".bias");
}

/// Makes the row's attributes from the node's window, finds which filter and bias are the layer's
/// parameters, adds the layer, and then what the row does not have: a norm that was folded in, or a
/// computed bias.
bool translate_convolution(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const OnnxValue& w = translation.input(node, 1);
  if (!x.is_activation() || w.rank() < 3 || x.rank() != w.rank()) {
    translation.refuse("its inputs are no image and filter");
    return false;
  }
  const auto window = window_of(node, x.type.shape, filter_extents(w.type.shape));
  if (!window) {
    translation.refuse("its padding does not follow");
    return false;
  }
  const bool normed = has_folded_norm(node);  // what bias there is came from it
  const bool biased = !normed && has_bias(translation, node, 2, w.type.shape[0]);
  const bool lost_bias = has_lost_bias(node) && !translation.has(node, 2);
  Attributes::Entries given{{"channels", w.type.shape[0].constant},
                            {"kernel", window->kernel},
                            {"stride", window->stride},
                            {"padding", window->padding_pairs_or_single()},
                            {"dilation", window->dilation},
                            {"groups", node.integer("group", 1)},
                            {"bias", biased || lost_bias}};
  const std::string row = fmt::format("conv{}d", window->kernel.size());
  std::vector<LayerOutput> from{x.layer};
  const bool owns_filter = w.is_parameter() && !w.turned;
  if (!owns_filter) from.push_back(translation.activation(w));
  std::vector<std::pair<std::string, const OnnxValue*>> weights;
  if (owns_filter) weights.emplace_back("weight", &w);
  if (biased) weights.emplace_back("bias", &translation.input(node, 2));
  if (weights.empty()) weights.emplace_back("", &x);
  const auto made =
      translation.layer_with_weights(node, row, std::move(from), std::move(given), weights);
  if (!made) return false;
  if (normed) return give_with_norm(translation, node, *made);
  if (lost_bias) name_lost_bias(translation, *made);
  if (biased) {
    translation.set_output(node, *made);
    return true;
  }
  return add_rest(translation, node, *made, 2);
}

bool translate_transposed_convolution(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const OnnxValue& w = translation.input(node, 1);
  const auto window = x.is_activation() && w.rank() == x.rank() && w.rank() > 2
                          ? window_of(node, x.type.shape, filter_extents(w.type.shape))
                          : std::nullopt;
  if (!window || !w.is_parameter() || !window->is_symmetric()) {
    translation.refuse("only a filter of its own and equal padding on both sides are expressed");
    return false;
  }
  Integers output_padding = node.integers("output_padding");
  if (output_padding.empty()) output_padding.assign(window->kernel.size(), 0);
  const std::int64_t groups = node.integer("group", 1);
  const std::int64_t channels = checked_multiply(w.type.shape[1].constant, groups);
  const bool biased = has_bias(translation, node, 2, Affine(channels));
  std::vector<std::pair<std::string, const OnnxValue*>> weights{{"weight", &w}};
  if (biased) weights.emplace_back("bias", &translation.input(node, 2));
  const auto made = translation.layer_with_weights(
      node, fmt::format("conv_transpose{}d", window->kernel.size()), {x.layer},
      {{"channels", channels},
       {"kernel", window->kernel},
       {"stride", window->stride},
       {"padding", window->before},
       {"output_padding", output_padding},
       {"dilation", window->dilation},
       {"groups", groups},
       {"bias", biased}},
      weights);
  if (!made) return false;
  translation.set_output(node, *made);
  return true;
}

// x times a matrix that is a parameter of the model.
bool translate_linear(Translation& translation, const OnnxNode& node, const OnnxValue& x,
                      const OnnxValue& w, const Affine& features, std::size_t bias_input) {
  const bool biased = has_bias(translation, node, bias_input, features);
  const bool lost_bias = has_lost_bias(node) && !translation.has(node, bias_input);
  std::vector<std::pair<std::string, const OnnxValue*>> weights{{"weight", &w}};
  if (biased) weights.emplace_back("bias", &translation.input(node, bias_input));
  const auto made = translation.layer_with_weights(
      node, "linear", {x.layer}, {{"features", features.constant}, {"bias", biased || lost_bias}},
      weights);
  if (!made) return false;
  if (lost_bias) name_lost_bias(translation, *made);
  if (biased) {
    translation.set_output(node, *made);
    return true;
  }
  return add_rest(translation, node, *made, bias_input);
}

bool translate_product(Translation& translation, const OnnxNode& node) {
  const OnnxValue& a = translation.input(node, 0);
  const OnnxValue& b = translation.input(node, 1);
  constexpr std::size_t none = 99;
  if (a.is_activation() && b.is_parameter() && b.rank() == 2) {
    return translate_linear(translation, node, a, b, b.type.shape[1], none);
  }
  const auto made =
      translation.layer(node, "matmul", {translation.activation(a), translation.activation(b)});
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

bool translate_gemm(Translation& translation, const OnnxNode& node) {
  const OnnxValue& a = translation.input(node, 0);
  const OnnxValue& b = translation.input(node, 1);
  const bool turns_a = node.integer("transA", 0) != 0;
  const bool turns_b = node.integer("transB", 0) != 0;
  const bool is_plain = node.real("alpha", 1) == 1 && node.real("beta", 1) == 1;
  if (is_plain && a.is_activation() && b.is_parameter() && b.rank() == 2 && !turns_a) {
    return translate_linear(translation, node, a, b, b.type.shape[turns_b ? 0 : 1], 2);
  }
  auto product =
      translation.layer(node, "matmul", {translation.activation(a), translation.activation(b)},
                        {{"transpose_a", turns_a}, {"transpose_b", turns_b}});
  if (product && node.real("alpha", 1) != 1) {
    product =
        translation.layer(node, "scale", {{*product, 0}}, {{"factor", node.real("alpha", 1)}});
  }
  return product && add_rest(translation, node, *product, 2);
}

bool translate_einsum(Translation& translation, const OnnxNode& node) {
  std::vector<LayerOutput> from;
  for (const OnnxValue* value : translation.inputs(node)) {
    from.push_back(translation.activation(*value));
  }
  const auto made =
      translation.layer(node, "einsum", std::move(from), {{"equation", node.text("equation", "")}});
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

}  // namespace

std::span<const OnnxRule> onnx_layer_rules() {
  static constexpr std::array rules{
      OnnxRule{"Conv", translate_convolution},
      OnnxRule{"ConvTranspose", translate_transposed_convolution},
      OnnxRule{"MatMul", translate_product},
      OnnxRule{"Gemm", translate_gemm},
      OnnxRule{"Einsum", translate_einsum},
  };
  return rules;
}

const OnnxRule* find_onnx_rule(std::string_view op) {
  for (const auto& rules :
       {onnx_layer_rules(), onnx_normalization_rules(), onnx_pooling_rules(),
        onnx_elementwise_rules(), onnx_layout_rules(), onnx_gather_rules(), onnx_sequence_rules(),
        onnx_reduction_rules(), onnx_recurrent_rules()}) {
    for (const OnnxRule& rule : rules) {
      if (rule.op == op) return &rule;
    }
  }
  return nullptr;
}

}  // namespace stowage
