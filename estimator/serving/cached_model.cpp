#include "estimator/serving/cached_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "estimator/base/cure.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/serving/graph_editor.hpp"
#include "estimator/serving/serving_rows.hpp"

namespace stowage {

namespace {

constexpr std::string_view attention_name = "scaled_dot_product_attention";

bool is_attention(const Operator& op) { return op.row->name == attention_name; }

bool is_causal(const Operator& op) {
  return op.attributes.boolean("causal") || op.attributes.integer("window") > 0;
}

/// By operator: whether the model's output needs it.
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

bool keeps_other_state(const Operator& op) {
  constexpr std::array<std::string_view, 4> recurrent{"lstm", "gru", "rnn", "custom"};
  return std::ranges::find(recurrent, op.row->name) != recurrent.end();
}

std::optional<Diagnostic> why_not_served(const ModelGraph& model, bool has_encoder) {
  const std::vector<bool> needed = leads_to_output(model);
  bool any_causal = false;
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
    if (!is_causal(op)) {
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

/// One attention's sizes in a pass.
struct CachedAttention {
  std::int64_t heads = 0, key_heads = 0;
  std::int64_t tokens = 0;  ///< new ones, which are its queries
  std::int64_t window = 0;  ///< 0: none
  std::int64_t kept = 0;    ///< tokens of a user that the cache has room for
  std::int64_t read = 0;    ///< keys that attention reads
  bool masked = false;
};

class CachedModel {
 public:
  CachedModel(const ModelGraph& model, const ServingSettings& settings, const CachePass& pass)
      : model_(model), settings_(settings), pass_(pass), editor_(model) {}

  Result<ModelGraph> build() {
    find_head();
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = model_.operators[i];
      if (is_attention(op) && is_causal(op)) {
        if (auto problem = cache(op)) return failure(*std::move(problem));
      } else if (OperatorId::of(i) == head_) {
        keep_last_position(op);
      } else {
        editor_.keep(op);
      }
    }
    const ModelGraph served = std::move(editor_).finish();
    return without_replaced_masks(served);
  }

 private:
  // Leaves out what made a mask that the cache's own has taken the place of.
  [[nodiscard]] ModelGraph without_replaced_masks(const ModelGraph& served) const {
    const std::vector<bool> before = leads_to_output(model_), now = leads_to_output(served);
    std::vector<bool> was_needed(served.tensors.size());
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      if (!before[i]) continue;
      for (const TensorId made : model_.operators[i].outputs) was_needed[made.index()] = true;
    }
    GraphEditor kept(served);
    for (std::size_t i = 0; i < served.operators.size(); ++i) {
      const Operator& op = served.operators[i];
      if (now[i] || !was_needed[op.outputs[0].index()]) kept.keep(op);
    }
    return std::move(kept).finish();
  }

  // The layer that makes the logits: the last linear one, behind which each position is alone.
  void find_head() {
    TensorId at = model_.output;
    while (model_.tensor(at).producer.valid()) {
      const OperatorId producer = model_.tensor(at).producer;
      const Operator& op = model_.op(producer);
      if (op.row->name == "linear") {
        const Shape& shape = model_.tensor(op.inputs[0]).type.shape;
        if (shape.size() == 3 && shape[1] != Affine(1)) head_ = producer;
        return;
      }
      const bool flattens = op.row->name == "reshape";
      const bool alike = op.inputs.size() == 1 && op.outputs.size() == 1 &&
                         model_.tensor(op.inputs[0]).type.shape == model_.tensor(at).type.shape;
      if (!flattens && !alike) return;
      behind_head_.push_back(producer);
      at = op.inputs[0];
    }
  }

  void keep_last_position(const Operator& head) {
    TensorType hidden = model_.tensor(head.inputs[0]).type;
    hidden.shape[1] = 1;
    Operator short_head = head;
    short_head.inputs = editor_.add(head.name + ".last_position", serving_rows::last_position(), {},
                                    {head.inputs[0]}, {hidden}, head.span);
    editor_.keep(short_head);
    TensorType logits = model_.tensor(head.outputs[0]).type;
    logits.shape[1] = 1;
    editor_.set_type(head.outputs[0], logits);
    editor_.set_output(head.outputs[0]);
    for (std::size_t i = behind_head_.size(); i-- > 0;) {
      const Operator& op = model_.op(behind_head_[i]);
      if (op.row->name == "reshape") break;  // the loss's: what comes before it is the answer
      TensorType type = model_.tensor(op.outputs[0]).type;
      type.shape[1] = 1;
      editor_.set_type(op.outputs[0], type);
      editor_.set_output(op.outputs[0]);
    }
  }

  [[nodiscard]] CachedAttention sizes_of(const Operator& op) const {
    const Shape& query = model_.tensor(op.inputs[0]).type.shape;
    const Shape& key = model_.tensor(op.inputs[1]).type.shape;
    CachedAttention sizes{.heads = query[1].constant,
                          .key_heads = key[1].constant,
                          .tokens = key[2].constant,
                          .window = op.attributes.integer("window")};
    const std::int64_t context = settings_.context_length;
    const std::int64_t window = sizes.window > 0 ? sizes.window : context;
    sizes.kept = cached_tokens(std::min(window, context), settings_);
    const std::int64_t all = pass_.past + sizes.tokens;
    const bool is_cut = sizes.window > 0;
    switch (settings_.cache) {
      case CacheKind::dynamic:
        sizes.read = is_cut ? std::min(pass_.past, sizes.window - 1) + sizes.tokens : all;
        sizes.masked = (pass_.past > 0 && sizes.tokens > 1) || (is_cut && sizes.read >= window);
        break;
      case CacheKind::static_: {
        const bool fills = all <= sizes.kept || sizes.tokens == 1;
        sizes.read = fills ? sizes.kept : sizes.tokens;
        const bool whole = sizes.read == sizes.tokens && !(is_cut && sizes.read >= window);
        sizes.masked = sizes.tokens == 1 || !whole;
        break;
      }
      case CacheKind::paged:
        sizes.read = std::min(window, all);
        break;
    }
    return sizes;
  }

  [[nodiscard]] const OperatorRow& cache_row() const {
    switch (settings_.cache) {
      case CacheKind::dynamic:
        return serving_rows::dynamic_cache();
      case CacheKind::static_:
        return serving_rows::static_cache();
      case CacheKind::paged:
        break;
    }
    return serving_rows::paged_cache();
  }

  std::vector<TensorId> add_cache(const Operator& op, const CachedAttention& sizes) {
    Attributes attributes;
    attributes.set("past", pass_.past);
    attributes.set("kept", sizes.kept);
    attributes.set("window", sizes.window);
    attributes.set("users", pass_.users);
    attributes.set("scale", has_scale(settings_.format));
    std::vector<TensorType> types;
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
      TensorType type = model_.tensor(op.inputs[i]).type;
      type.shape[2] = sizes.read;
      type.type = stored_type(settings_.format, type.type);
      types.push_back(std::move(type));
    }
    return editor_.add(op.name + ".cache", cache_row(), std::move(attributes),
                       {op.inputs[1], op.inputs[2]}, std::move(types), op.span);
  }

  /// One mask serves all layers alike.
  TensorId mask_of(const Operator& op, const CachedAttention& sizes) {
    const auto key = std::tuple(sizes.tokens, sizes.read, sizes.window);
    const auto known = masks_.find(key);
    if (known != masks_.end()) return known->second;
    Attributes attributes;
    attributes.set("queries", sizes.tokens);
    attributes.set("keys", sizes.read);
    attributes.set("window", sizes.window);
    attributes.set("past", pass_.past);
    const Affine batch = model_.tensor(op.inputs[0]).type.shape[0];
    const TensorType type{{batch, 1, sizes.tokens, sizes.read}, DataType::boolean};
    const TensorId mask =
        editor_.add(fmt::format("{}.cache_mask", op.name), serving_rows::cache_mask(),
                    std::move(attributes), {}, {type}, op.span)[0];
    masks_.emplace(key, mask);
    return mask;
  }

  std::optional<Diagnostic> cache(const Operator& op) {
    const CachedAttention sizes = sizes_of(op);
    const bool has_mask = op.inputs.size() > 3;
    if (has_mask && !is_own_mask(op, sizes) && !is_bias_of_a_token(op, sizes)) {
      return Diagnostic{
          .message = fmt::format("the attention '{}' has a mask or a bias of its own, which does "
                                 "not say what it is over a cache",
                                 op.name),
          .span = op.span};
    }
    const bool cut_by_chunks = settings_.cache == CacheKind::static_ && sizes.window > 0 &&
                               pass_.past > 0 && sizes.tokens > 1 &&
                               pass_.past + sizes.tokens > sizes.kept;
    if (cut_by_chunks) {
      return Diagnostic{.message = fmt::format("prompts in chunks fill a static cache past the "
                                               "window of '{}', {} tokens, which is not served",
                                               op.name, sizes.window),
                        .span = op.span,
                        .hint = "take prompts at once, or another kind of cache"};
    }
    const std::vector<TensorId> cached = add_cache(op, sizes);
    if (settings_.cache == CacheKind::paged) {
      Operator attention = op;
      attention.row = &serving_rows::paged_attention();
      attention.attributes.set("implementation", std::string("flash"));
      attention.inputs = {op.inputs[0], cached[0], cached[1]};
      editor_.keep(attention);
    } else {
      attend(op, sizes, cached);
    }
    return std::nullopt;
  }

  // A window's mask that the description gives is of the pass's own tokens.
  [[nodiscard]] bool is_own_mask(const Operator& op, const CachedAttention& sizes) const {
    return sizes.window > 0 && model_.tensor(op.inputs[3]).type.type == DataType::boolean;
  }

  // A bias over all that a single query reads, where the cache has no mask beside it.
  [[nodiscard]] bool is_bias_of_a_token(const Operator& op, const CachedAttention& sizes) const {
    const TensorType& bias = model_.tensor(op.inputs[3]).type;
    return pass_.has_encoder && !sizes.masked && sizes.tokens == 1 &&
           bias.type != DataType::boolean && bias.shape.back() == Affine(sizes.read);
  }

  void attend(const Operator& op, const CachedAttention& sizes,
              const std::vector<TensorId>& cached) {
    Operator attention = op;
    attention.inputs = {op.inputs[0], cached[0], cached[1]};
    if (sizes.masked) {
      const bool given = op.inputs.size() > 3 && sizes.read == sizes.tokens;
      attention.inputs.push_back(given ? op.inputs[3] : mask_of(op, sizes));
    } else if (op.inputs.size() > 3 && !is_own_mask(op, sizes)) {
      attention.inputs.push_back(op.inputs[3]);
    }
    attention.attributes.set("causal", !sizes.masked && sizes.tokens > 1);
    const bool shares_heads = sizes.heads != sizes.key_heads;
    if (!shares_heads || !sizes.masked) {
      editor_.keep(attention);
      return;
    }
    if (sizes.tokens > 1) {
      attention.attributes.set("grouped", std::string("repeat"));
      editor_.keep(attention);
      return;
    }
    pack(op, sizes, std::move(attention));
  }

  // A single query: the query heads that share a key head become its queries.
  void pack(const Operator& op, const CachedAttention& sizes, Operator attention) {
    const TensorType query = model_.tensor(op.inputs[0]).type;
    const TensorType result = model_.tensor(op.outputs[0]).type;
    const auto packed = [&](TensorType type) {
      type.shape[1] = sizes.key_heads;
      type.shape[2] = sizes.heads / sizes.key_heads;
      return type;
    };
    attention.inputs[0] = editor_.add(op.name + ".packed_query", serving_rows::same_elements(), {},
                                      {op.inputs[0]}, {packed(query)}, op.span)[0];
    const TensorId attended = editor_.add(op.name, *attention.row, attention.attributes,
                                          attention.inputs, {packed(result)}, op.span)[0];
    editor_.keep({.name = op.name + ".unpacked",
                  .row = &serving_rows::same_elements(),
                  .inputs = {attended},
                  .outputs = op.outputs,
                  .span = op.span});
  }

  const ModelGraph& model_;
  const ServingSettings& settings_;
  const CachePass& pass_;
  GraphEditor editor_;
  OperatorId head_;                      // none: no logits, or of one position
  std::vector<OperatorId> behind_head_;  // from the output backwards
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, TensorId> masks_;
};

}  // namespace

Result<ModelGraph> with_cache(const ModelGraph& model, const ServingSettings& settings,
                              const CachePass& pass) {
  if (auto problem = why_not_served(model, pass.has_encoder)) return failure(*std::move(problem));
  return CachedModel(model, settings, pass).build();
}

}  // namespace stowage
