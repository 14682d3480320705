#include "estimator/serving/cache_refusals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "estimator/base/cure.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/serving/attention_products.hpp"

namespace stowage {

std::vector<bool> leads_to_output(const ModelGraph& model) {
  std::vector<bool> tensors(model.tensors.size()), operators(model.operators.size());
  tensors[model.output.index()] = true;
  for (std::size_t i = model.operators.size(); i-- > 0;) {
    const Operator& op = model.operators[i];
    operators[i] =
        std::ranges::any_of(op.outputs, [&](TensorId id) { return tensors[id.index()]; });
    if (!operators[i]) continue;
    for (const TensorId input : op.inputs) tensors[input.index()] = true;
  }
  return operators;
}

namespace {

bool keeps_other_state(const Operator& op) {
  constexpr std::array<std::string_view, 4> recurrent{"lstm", "gru", "rnn", "custom"};
  return std::ranges::find(recurrent, op.row->name) != recurrent.end();
}

bool has_causal_mask(const ModelGraph& model) {
  return std::ranges::any_of(model.operators, [](const Operator& op) {
    return op.row->name == "constant" && op.attributes.boolean("causal");
  });
}

Diagnostic causal_refusal(const Operator& products, bool masks) {
  return {.message = fmt::format("the attention '{}' is written as products, and no mask says that "
                                 "it hides later tokens, so that keys and values cannot be kept "
                                 "from token to token",
                                 products.name),
          .span = products.span,
          .hint = masks ? hint_of(Cure::one_attention_call)
                        : std::string("a cache serves decoders alone")};
}

}  // namespace

/// Checks attention that is written as products, then each operator that the output needs; at least
/// one attention must be causal.
std::optional<Diagnostic> serving_refusal(const ModelGraph& model, bool has_encoder) {
  const std::vector<bool> needed = leads_to_output(model);
  bool any_causal = false;
  for (const AttentionProducts& products : attention_products(model)) {
    if (!needed[products.first().index()]) continue;
    if (products.is_causal) {
      any_causal = true;
      continue;
    }
    if (has_encoder) continue;
    return causal_refusal(model.op(products.operators.back()), has_causal_mask(model));
  }
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    if (!needed[i]) continue;
    if (keeps_other_state(op)) {
      return Diagnostic{
          .message = fmt::format("'{}' ({}) may carry a state from token to token that is no cache "
                                 "of keys and values",
                                 op.name, op.row->name),
          .span = op.span};
    }
    if (!is_attention(op)) continue;
    if (!is_causal_attention(op)) {
      if (has_encoder) continue;
      return Diagnostic{
          .message = fmt::format("the attention '{}' is not causal: it sees later tokens too, so "
                                 "that keys and values cannot be kept from token to token",
                                 op.name),
          .span = op.span,
          .hint = "a cache serves decoders alone: attention with `causal: true` or a `window`"};
    }
    if (const Shape& query = model.tensor(op.inputs[0]).type.shape; query.size() != 4) {
      return Diagnostic{
          .message = fmt::format("the attention '{}' is over {}; a cache holds [batch, heads, "
                                 "length, features]",
                                 op.name, to_string(query)),
          .span = op.span};
    }
    any_causal = true;
  }
  if (any_causal) return std::nullopt;
  return Diagnostic{
      .message = fmt::format("model '{}' has no causal attention, and so no keys and values to "
                             "keep from token to token",
                             model.name),
      .hint =
          fmt::format("a cache serves models with scaled_dot_product_attention, `causal: true`; {}",
                      in_words(Cure::one_attention_call))};
}

std::optional<Diagnostic> caching_refusal(const ModelGraph& model, const ModelAttention& attended,
                                          const CachedAttention& sizes,
                                          const ServingSettings& settings, const CachePass& pass) {
  const auto refused = [&](std::string message, std::string hint) {
    return Diagnostic{
        .message = std::move(message), .span = attended.span, .hint = std::move(hint)};
  };
  if (chunks_exceed_window(sizes, settings, pass)) {
    return refused(fmt::format("prompts in chunks fill a static cache past the window of '{}', "
                               "{} tokens, which is not served",
                               attended.name, sizes.window),
                   "take prompts at once, or another kind of cache");
  }
  if (settings.cache != CacheKind::quantised) return std::nullopt;
  if (sizes.window > 0) {
    return refused(fmt::format("the attention '{}' sees a window of {} tokens, and transformers "
                               "refuses a quantised cache for a model with windows",
                               attended.name, sizes.window),
                   hint_of(Cure::cache_as_computed));
  }
  for (const TensorId made : {attended.key, attended.value}) {
    const Shape& shape = model.tensor(made).type.shape;
    const std::int64_t of_token = shape[1].constant * shape[3].constant;
    if (!is_packed(settings.format) || of_token % settings.group == 0) continue;
    return refused(fmt::format("the {} heads of '{}' have {} elements a token, which quanto's "
                               "groups of {} do not divide",
                               shape[1].constant, attended.name, of_token, settings.group),
                   hint_of(Cure::cache_as_computed));
  }
  return std::nullopt;
}

}  // namespace stowage
