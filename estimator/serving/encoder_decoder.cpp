#include "estimator/serving/encoder_decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "estimator/model/operator_row.hpp"
#include "estimator/serving/attention_products.hpp"
#include "estimator/serving/cached_attention.hpp"
#include "estimator/serving/graph_editor.hpp"
#include "estimator/serving/rewired_products.hpp"
#include "estimator/serving/serving_rows.hpp"

namespace stowage {

namespace {

constexpr std::size_t length_axis = 2;  // of keys and values
constexpr std::size_t bias_input = 3;

/// By tensor: it depends on causal attention, and so on the decoder's tokens.
std::vector<bool> decoded_tensors(const ModelGraph& model,
                                  const std::vector<AttentionProducts>& products) {
  std::vector<bool> decoded(model.tensors.size()), attended(model.tensors.size());
  for (const AttentionProducts& one : products) attended[one.result.index()] = one.is_causal;
  for (const Operator& op : model.operators) {
    const bool is_result = !op.outputs.empty() && attended[op.outputs[0].index()];
    const bool follows =
        is_result || is_causal_attention(op) ||
        std::ranges::any_of(op.inputs, [&](TensorId id) { return decoded[id.index()]; });
    if (!follows) continue;
    for (const TensorId output : op.outputs) decoded[output.index()] = true;
  }
  return decoded;
}

/// Marks the operators on which the tensor depends.
void mark_sources(const ModelGraph& model, TensorId of, std::vector<bool>& marked) {
  std::vector<TensorId> waiting{of};
  while (!waiting.empty()) {
    const OperatorId producer = model.tensor(waiting.back()).producer;
    waiting.pop_back();
    if (!producer.valid() || marked[producer.index()]) continue;
    marked[producer.index()] = true;
    const std::vector<TensorId>& inputs = model.op(producer).inputs;
    waiting.insert(waiting.end(), inputs.begin(), inputs.end());
  }
}

/// Goes from the keys backwards to the tensor that several layers read: the encoder's states.
TensorId states_behind(const ModelGraph& model, TensorId keys) {
  std::vector<int> readers(model.tensors.size());
  for (const Operator& op : model.operators) {
    for (const TensorId input : op.inputs) ++readers[input.index()];
  }
  TensorId at = keys;
  while (readers[at.index()] < 2 && model.tensor(at).producer.valid()) {
    const Operator& op = model.op(model.tensor(at).producer);
    if (op.inputs.size() != 1) break;
    at = op.inputs[0];
  }
  return at;
}

class DecodingStep {
 public:
  DecodingStep(const ModelGraph& encoded, const ModelGraph& decoded, const EncoderDecoder& parts,
               const ServingSettings& settings, std::int64_t past)
      : encoded_(encoded),
        decoded_(decoded),
        parts_(parts),
        settings_(settings),
        past_(past),
        encoder_products_(products_where(true)),
        decoder_products_(products_where(false)),
        editor_(decoded),
        of_encoder_(encoded, encoder_products_, editor_, parts.encodes),
        of_decoder_(decoded, decoder_products_, editor_) {}

  Result<ModelGraph> build() {
    take_encoder_types();
    ModelGraph decoder = decoded_;
    if (auto problem = widen_biases(decoder)) return failure(*std::move(problem));
    if (past_ > 0) hold_states();
    for (std::size_t i = 0; i < decoder.operators.size(); ++i) {
      const OperatorId at = OperatorId::of(i);
      if (parts_.encodes[i]) {
        run_encoder(at);
        continue;
      }
      if (!parts_.crosses[i]) {
        editor_.keep(decoder.operators[i]);
      } else if (const AttentionProducts* products = of_decoder_.part_of(at)) {
        cross_products(at, *products);
      } else {
        cross(decoder.operators[i]);
      }
      of_decoder_.after(at);
    }
    return std::move(editor_).finish();
  }

 private:
  [[nodiscard]] std::vector<AttentionProducts> products_where(bool of_encoder) const {
    std::vector<AttentionProducts> products = attention_products(encoded_);
    std::erase_if(products, [&](const AttentionProducts& one) {
      return parts_.encodes[one.first().index()] != of_encoder;
    });
    return products;
  }

  void take_encoder_types() {
    for (std::size_t i = 0; i < encoded_.operators.size(); ++i) {
      if (!parts_.encodes[i]) continue;
      const Operator& op = encoded_.operators[i];
      for (const TensorId id : op.inputs) editor_.set_type(id, encoded_.tensor(id).type);
      for (const TensorId id : op.outputs) editor_.set_type(id, encoded_.tensor(id).type);
    }
  }

  // The number of keys: the cached ones and the new one; in cross-attention all positions of the
  // encoder.
  std::optional<Diagnostic> widen_biases(ModelGraph& decoder) {
    for (std::size_t i = 0; i < decoder.operators.size(); ++i) {
      const Operator& op = decoder.operators[i];
      if (parts_.encodes[i] || !is_attention(op) || op.inputs.size() <= bias_input) continue;
      const std::int64_t keys = parts_.crosses[i] ? parts_.length : past_ + 1;
      if (widen(decoder, op.inputs[bias_input], keys)) continue;
      return Diagnostic{
          .message = fmt::format("the attention '{}' has a mask or a bias of its own, which does "
                                 "not say what it is over a cache",
                                 op.name),
          .span = op.span};
    }
    return std::nullopt;
  }

  bool widen(ModelGraph& decoder, TensorId bias, std::int64_t keys) {
    std::vector<TensorId> path{bias};
    while (true) {
      const OperatorId producer = decoder.tensor(path.back()).producer;
      if (!producer.valid()) return false;
      Operator& op = decoder.operators[producer.index()];
      if (op.row->name == "identity") {
        path.push_back(op.inputs[0]);
        continue;
      }
      if (op.row->name == "relative_position_buckets") {
        op.attributes.set("keys", keys);
      } else if (op.row->name == "constant") {
        Shape shape = op.attributes.dimensions("shape");
        shape.back() = keys;
        op.attributes.set("shape", std::move(shape));
      } else {
        return false;
      }
      break;
    }
    for (const TensorId id : path) {
      TensorType type = decoder.tensor(id).type;
      type.shape.back() = keys;
      editor_.set_type(id, std::move(type));
    }
    return true;
  }

  void run_encoder(OperatorId at) {
    if (past_ > 0) return;
    const Operator& op = encoded_.op(at);
    if (const AttentionProducts* products = of_encoder_.part_of(at)) {
      const std::vector<TensorId> made{products->key, products->value};
      of_encoder_.put(at, made, encoded_.tensor(made[0]).type.shape[length_axis].constant);
    } else {
      editor_.keep(op);
    }
    of_encoder_.after(at);
    const bool ends = std::ranges::find(op.outputs, parts_.states) != op.outputs.end();
    if (ends) {
      editor_.add("encoder_states", serving_rows::encoder_states(), {}, {parts_.states},
                  {encoded_.tensor(parts_.states).type}, op.span);
    }
  }

  void hold_states() {
    std::vector<TensorType> held{encoded_.tensor(parts_.states).type};
    for (const TensorId input : encoded_.inputs) {
      const bool is_read = reads_as_encoder(input);
      if (is_read) held.push_back(encoded_.tensor(input).type);
    }
    editor_.add("encoder_states", serving_rows::encoder_states(), {}, {}, std::move(held), {});
  }

  [[nodiscard]] bool reads_as_encoder(TensorId input) const {
    for (std::size_t i = 0; i < encoded_.operators.size(); ++i) {
      if (!parts_.encodes[i]) continue;
      const std::vector<TensorId>& inputs = encoded_.operators[i].inputs;
      if (std::ranges::find(inputs, input) != inputs.end()) return true;
    }
    return false;
  }

  void cross(const Operator& op) {
    Operator attention = op;
    const std::vector<TensorId> cached = cached_cross(model_attention(op));
    attention.inputs[1] = cached[0];
    attention.inputs[2] = cached[1];
    editor_.keep(attention);
  }

  void cross_products(OperatorId at, const AttentionProducts& products) {
    if (at == products.first()) cached_ = cached_cross(model_attention(products, decoded_));
    of_decoder_.put(at, cached_, parts_.length);
  }

  std::vector<TensorId> cached_cross(const ModelAttention& attended) {
    return past_ > 0 ? held_cache(attended) : written_cache(attended);
  }

  [[nodiscard]] std::vector<TensorType> cached_types(const ModelAttention& attended) const {
    return {encoded_.tensor(attended.key).type, encoded_.tensor(attended.value).type};
  }

  std::vector<TensorId> written_cache(const ModelAttention& attended) {
    Attributes attributes;
    attributes.set("past", std::int64_t{0});
    attributes.set("kept", parts_.length);
    attributes.set("window", std::int64_t{0});
    attributes.set("users", std::int64_t{0});
    attributes.set("scale", false);
    const bool is_static = settings_.cache == CacheKind::static_;
    return editor_.add(attended.name + ".cache",
                       is_static ? serving_rows::static_cache() : serving_rows::dynamic_cache(),
                       std::move(attributes), {attended.key, attended.value},
                       cached_types(attended), attended.span);
  }

  std::vector<TensorId> held_cache(const ModelAttention& attended) {
    Attributes attributes;
    attributes.set("counts", settings_.cache == CacheKind::static_);
    return editor_.add(attended.name + ".cache", serving_rows::held_cache(), std::move(attributes),
                       {}, cached_types(attended), attended.span);
  }

  const ModelGraph& encoded_;
  const ModelGraph& decoded_;
  const EncoderDecoder& parts_;
  const ServingSettings& settings_;
  std::int64_t past_;
  std::vector<AttentionProducts> encoder_products_, decoder_products_;
  std::vector<TensorId> cached_;  // of the attention to the encoder that is being rewritten
  GraphEditor editor_;
  RewiredProducts of_encoder_, of_decoder_;
};

}  // namespace

std::optional<EncoderDecoder> find_encoder(const ModelGraph& model) {
  const std::vector<AttentionProducts> products = attention_products(model);
  const std::vector<bool> decoded = decoded_tensors(model, products);
  EncoderDecoder parts{.encodes = std::vector<bool>(model.operators.size()),
                       .crosses = std::vector<bool>(model.operators.size()),
                       .states = {}};
  const auto crosses = [&](TensorId query, TensorId key, TensorId value) {
    const bool reads_other =
        decoded[query.index()] && !decoded[key.index()] && !decoded[value.index()];
    if (!reads_other) return false;
    mark_sources(model, key, parts.encodes);
    mark_sources(model, value, parts.encodes);
    if (!parts.states.valid()) {
      parts.states = states_behind(model, key);
      parts.length = model.tensor(key).type.shape[length_axis].constant;
    }
    return true;
  };
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    if (!is_attention(op) || is_causal_attention(op)) continue;
    parts.crosses[i] = crosses(op.inputs[0], op.inputs[1], op.inputs[2]);
  }
  for (const AttentionProducts& one : products) {
    if (one.is_causal || !crosses(one.query, one.key, one.value)) continue;
    for (const OperatorId op : one.operators) parts.crosses[op.index()] = true;
  }
  if (!parts.states.valid()) return std::nullopt;
  const auto is_known = [&](std::size_t op) { return parts.encodes[op] || parts.crosses[op]; };
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    if (is_attention(op) && !is_causal_attention(op) && !is_known(i)) return std::nullopt;
  }
  for (const AttentionProducts& one : products) {
    if (!one.is_causal && !is_known(one.first().index())) return std::nullopt;
  }
  return parts;
}

std::int64_t fixed_encoder_length(const ModelGraph& shortest) {
  const auto parts = find_encoder(shortest);
  return parts && parts->length > 1 ? parts->length : 0;
}

Result<ModelGraph> decoding_step(const ModelGraph& encoded, const ModelGraph& decoded,
                                 const ServingSettings& settings, std::int64_t past) {
  const auto parts = find_encoder(encoded);
  assert(parts && encoded.operators.size() == decoded.operators.size());
  return DecodingStep(encoded, decoded, *parts, settings, past).build();
}

}  // namespace stowage
