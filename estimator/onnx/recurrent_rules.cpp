// Recurrent layers and the attention of opset 23.
#include <algorithm>
#include <array>

#include "estimator/onnx/translation_rules.hpp"

namespace stowage {

namespace {

using Integers = std::vector<std::int64_t>;

// Whether the state is zeros, which is the row's default.
bool is_usual_state(const OnnxValue& state) { return !state.is_activation(); }

std::optional<std::string> row_of_recurrence(const OnnxNode& node) {
  if (node.op == "LSTM") return "lstm";
  if (node.op == "GRU") return "gru";
  if (node.op == "RNN") return "rnn";
  return std::nullopt;
}

// [positions, directions, batch, features] of the row's [positions, batch, directions * features].
bool give_sequence(Translation& translation, const OnnxNode& node, int layer,
                   std::int64_t directions, const Affine& hidden) {
  const Shape& made = translation.layers().type({layer, 0}).shape;
  const auto apart = translation.layer(node, "reshape", {{layer, 0}},
                                       {{"shape", Shape{made[0], made[1], directions, hidden}}});
  const auto turned =
      apart ? translation.layer(node, "transpose", {{*apart, 0}}, {{"axes", Integers{0, 2, 1, 3}}})
            : apart;
  if (turned) translation.set_output(node, *turned);
  return turned.has_value();
}

bool translate_recurrence(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const OnnxValue& weight = translation.input(node, 1);
  const OnnxValue& recurrent = translation.input(node, 2);
  constexpr std::size_t lengths_input = 4, state_input = 5, cell_input = 6, peephole_input = 7;
  if (x.rank() != 3 || recurrent.rank() != 3 || node.integer("layout", 0) != 0 ||
      translation.has(node, lengths_input) || translation.has(node, peephole_input)) {
    translation.refuse("lengths, peepholes and layout 1 are not expressed");
    return false;
  }
  const std::string direction = node.text("direction", "forward");
  if (direction == "reverse") {
    translation.refuse("a layer that runs backwards alone is not expressed");
    return false;
  }
  const std::int64_t directions = direction == "bidirectional" ? 2 : 1;
  const Affine hidden = recurrent.type.shape[2];
  Attributes::Entries given{{"hidden", hidden.constant},
                            {"bidirectional", directions == 2},
                            {"bias", translation.has(node, 3)},
                            {"states", true}};
  std::vector<LayerOutput> from{translation.activation(x)};
  const OnnxValue& state = translation.input(node, state_input);
  if (!is_usual_state(state)) from.push_back(state.layer);
  const OnnxValue& cell = translation.input(node, cell_input);
  if (node.op == "LSTM" && !is_usual_state(cell) && from.size() == 2) from.push_back(cell.layer);
  const auto made = translation.layer_with_weights(
      node, *row_of_recurrence(node), std::move(from), std::move(given),
      {{"weight_ih_l0", &weight}, {"weight_hh_l0", &recurrent}});
  if (!made) return false;
  // ONNX keeps the directions' weights in one tensor; the row has one a direction.
  if (directions == 2) translation.layers().at(*made).parameter_names.clear();
  const auto states = translation.layers().at(*made).outputs.size();
  for (std::size_t i = 1; i < std::min(node.outputs.size(), states); ++i) {
    translation.set_output(node, *made, i, static_cast<int>(i));
  }
  return give_sequence(translation, node, *made, directions, hidden);
}

// [batch, heads, positions, features] of 3 axes, as PyTorch's modules make it.
std::optional<LayerOutput> with_heads(Translation& translation, const OnnxNode& node,
                                      std::size_t input, std::int64_t heads) {
  const OnnxValue& value = translation.input(node, input);
  const LayerOutput from = translation.activation(value);
  if (value.rank() == 4) return from;
  if (value.rank() != 3 || heads < 1 || !divides(Affine(heads), value.type.shape[2])) {
    return std::nullopt;
  }
  const Shape& s = value.type.shape;
  const auto apart =
      translation.layer(node, "reshape", {from},
                        {{"shape", Shape{s[0], s[1], heads, quotient(s[2], Affine(heads))}}});
  const auto turned =
      apart ? translation.layer(node, "transpose", {{*apart, 0}}, {{"axes", Integers{0, 2, 1, 3}}})
            : apart;
  if (!turned) return std::nullopt;
  return LayerOutput{*turned, 0};
}

bool translate_attention(Translation& translation, const OnnxNode& node) {
  const std::int64_t query_heads = node.integer("q_num_heads", 0);
  const std::int64_t key_heads = node.integer("kv_num_heads", query_heads);
  constexpr std::size_t past_input = 4;
  if (node.real("softcap", 0) != 0 || translation.has(node, past_input) ||
      node.outputs.size() > 1) {
    translation.refuse("softcap, past keys and further outputs are not expressed");
    return false;
  }
  const auto query = with_heads(translation, node, 0, query_heads);
  const auto key = with_heads(translation, node, 1, key_heads);
  const auto value = with_heads(translation, node, 2, key_heads);
  if (!query || !key || !value) return false;
  std::vector<LayerOutput> from{*query, *key, *value};
  if (translation.has(node, 3)) from.push_back(translation.activation(translation.input(node, 3)));
  Attributes::Entries given{{"causal", node.integer("is_causal", 0) != 0}};
  if (node.find("scale") != nullptr) given.emplace_back("scale", node.real("scale", 0));
  const auto made =
      translation.layer(node, "scaled_dot_product_attention", std::move(from), std::move(given));
  if (!made) return false;
  if (translation.input(node, 0).rank() == 4) {
    translation.set_output(node, *made);
    return true;
  }
  const Shape s = translation.layers().type({*made, 0}).shape;
  return translation.chain(node, {*made, 0},
                           {{"transpose", {{"axes", Integers{0, 2, 1, 3}}}},
                            {"reshape", {{"shape", Shape{s[0], s[2], s[1] * s[3]}}}}});
}

}  // namespace

std::span<const OnnxRule> onnx_recurrent_rules() {
  static constexpr std::array rules{
      OnnxRule{"LSTM", translate_recurrence},
      OnnxRule{"GRU", translate_recurrence},
      OnnxRule{"RNN", translate_recurrence},
      OnnxRule{"Attention", translate_attention},
  };
  return rules;
}

}  // namespace stowage
