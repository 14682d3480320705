#include "estimator/serving/cached_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "estimator/base/cure.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/serving/attention_products.hpp"
#include "estimator/serving/cache_refusals.hpp"
#include "estimator/serving/graph_editor.hpp"
#include "estimator/serving/rewired_products.hpp"
#include "estimator/serving/serving_rows.hpp"

namespace stowage {

namespace {

class CachedModel {
 public:
  CachedModel(const ModelGraph& model, const ServingSettings& settings, const CachePass& pass)
      : model_(model),
        settings_(settings),
        pass_(pass),
        products_(causal_products(model)),
        editor_(model),
        rewired_(model, products_, editor_) {}

  Result<ModelGraph> build() {
    find_head();
    if (auto problem = widen_masks()) return failure(*std::move(problem));
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = model_.operators[i];
      if (is_causal_attention(op)) {
        if (auto problem = cache(op)) return failure(*std::move(problem));
      } else if (const auto* products = rewired_.part_of(OperatorId::of(i))) {
        cache_products(OperatorId::of(i), *products);
      } else if (const TensorId mask = masked_by(op); mask.valid()) {
        rewired_.put_widened(op, model_.tensor(mask).type.shape.size() - 1, widened_.at(mask));
      } else if (OperatorId::of(i) == head_) {
        keep_last_position(op);
      } else {
        editor_.keep(op);
      }
      const bool is_last = !op.outputs.empty() && op.outputs[0] == hidden_;
      if (is_last) hold_masks(op);
      if (settings_.cache != CacheKind::paged) rewired_.after(OperatorId::of(i));
    }
    const ModelGraph served = std::move(editor_).finish();
    return without_replaced_masks(served);
  }

 private:
  // The decoder's forward() holds its masks until it returns the last hidden states.
  void hold_masks(const Operator& last) {
    if (widened_.empty() || settings_.cache == CacheKind::paged) return;
    std::vector<TensorId> held{hidden_};
    for (const auto& [mask, read] : widened_) held.push_back(mask);
    editor_.add(last.name + ".masks", serving_rows::held_variables(), {}, std::move(held),
                {model_.tensor(hidden_).type}, last.span);
  }

  /// The mask of numbers that the operator makes or passes on.
  [[nodiscard]] TensorId masked_by(const Operator& op) const {
    if (op.outputs.empty()) return {};
    TensorId made = op.outputs[0];
    while (model_.tensor(made).producer.valid()) {
      if (widened_.contains(made)) return made;
      const Operator& by = model_.op(model_.tensor(made).producer);
      if (by.row->name != "identity") return {};
      made = by.inputs[0];
    }
    return {};
  }

  // Leaves out the operators of a mask that the cache's mask replaces.
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

  // The layer that makes the logits: the last linear one, after which positions are independent.
  void find_head() {
    TensorId at = model_.output;
    while (model_.tensor(at).producer.valid()) {
      const OperatorId producer = model_.tensor(at).producer;
      const Operator& op = model_.op(producer);
      if (op.row->is_linear) {
        hidden_ = op.inputs[0];
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

  [[nodiscard]] CachedAttention sizes_of(const ModelAttention& attended) const {
    return cached_attention(model_.tensor(attended.query).type.shape,
                            model_.tensor(attended.key).type.shape, attended.window, settings_,
                            pass_);
  }

  [[nodiscard]] const OperatorRow& cache_row() const {
    switch (settings_.cache) {
      case CacheKind::dynamic:
        return serving_rows::dynamic_cache();
      case CacheKind::static_:
        return serving_rows::static_cache();
      case CacheKind::quantised:
        return settings_.format == CacheFormat::fp8 ? serving_rows::fp8_cache()
                                                    : serving_rows::packed_cache();
      case CacheKind::paged:
        break;
    }
    return serving_rows::paged_cache();
  }

  std::vector<TensorId> add_cache(const ModelAttention& attended, const CachedAttention& sizes) {
    Attributes attributes;
    attributes.set("past", pass_.past);
    attributes.set("kept", sizes.kept);
    attributes.set("window", sizes.window);
    attributes.set("users", pass_.users);
    attributes.set("scale", has_scale(settings_.format));
    const bool restores = settings_.cache == CacheKind::quantised;
    if (restores) {
      attributes.set("users", settings_.users);
      attributes.set("newest", sizes.newest);
      attributes.set("residual", settings_.residual);
      attributes.set("bits", std::int64_t{settings_.format == CacheFormat::int2 ? 2 : 4});
      attributes.set("group", settings_.group);
    }
    std::vector<TensorType> types;
    for (const TensorId made : {attended.key, attended.value}) {
      TensorType type = model_.tensor(made).type;
      type.shape[2] = sizes.read;
      if (!restores) type.type = stored_type(settings_.format, type.type);
      types.push_back(std::move(type));
    }
    return editor_.add(attended.name + ".cache", cache_row(), std::move(attributes),
                       {attended.key, attended.value}, std::move(types), attended.span);
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
    const ModelAttention attended = model_attention(op);
    const CachedAttention sizes = sizes_of(attended);
    const bool has_mask = op.inputs.size() > 3;
    if (has_mask && !is_own_mask(op, sizes) && !is_bias_of_a_token(op, sizes)) {
      const bool grows = settings_.cache == CacheKind::dynamic;
      return Diagnostic{
          .message = fmt::format("the attention '{}' has a mask or a bias of its own, which does "
                                 "not say what it is over a cache",
                                 op.name),
          .span = op.span,
          .hint = pass_.has_encoder && !grows ? hint_of(Cure::growing_cache) : std::string()};
    }
    if (auto problem = caching_refusal(model_, attended, sizes, settings_, pass_)) return problem;
    const std::vector<TensorId> cached = add_cache(attended, sizes);
    if (settings_.cache == CacheKind::paged) {
      read_blocks(attended, cached, op.outputs[0], op.attributes, {});
    } else {
      attend(op, sizes, cached);
    }
    return std::nullopt;
  }

  /// `sinks`: invalid, if the attention has none.
  void read_blocks(const ModelAttention& attended, const std::vector<TensorId>& cached,
                   TensorId result, Attributes attributes, TensorId sinks) {
    attributes.set("implementation", std::string("flash"));
    std::vector<TensorId> inputs{attended.query, cached[0], cached[1]};
    if (sinks.valid()) inputs.push_back(sinks);
    editor_.keep({.name = attended.name,
                  .row = &serving_rows::paged_attention(),
                  .attributes = std::move(attributes),
                  .inputs = std::move(inputs),
                  .outputs = {result},
                  .span = attended.span});
  }

  // Masks of numbers are made before the first layer, over all keys that a layer reads.
  std::optional<Diagnostic> widen_masks() {
    for (const AttentionProducts& products : products_) {
      const ModelAttention attended = model_attention(products, model_);
      const CachedAttention sizes = sizes_of(attended);
      if (auto problem = caching_refusal(model_, attended, sizes, settings_, pass_)) return problem;
      const auto [known, is_new] = widened_.emplace(products.mask, sizes.read);
      if (!is_new && known->second != sizes.read) {
        return Diagnostic{
            .message = fmt::format("the attention '{}' has the mask of another, which reads {} "
                                   "cached tokens and not {}",
                                   attended.name, known->second, sizes.read),
            .span = attended.span};
      }
    }
    return std::nullopt;
  }

  // An operator of an attention in products.
  void cache_products(OperatorId at, const AttentionProducts& products) {
    const ModelAttention attended = model_attention(products, model_);
    const CachedAttention sizes = sizes_of(attended);
    if (at == products.first()) cached_ = add_cache(attended, sizes);
    if (settings_.cache != CacheKind::paged) return rewired_.put(at, cached_, sizes.read);
    const bool is_last = model_.op(at).outputs[0] == products.result;
    if (is_last) read_blocks(attended, cached_, products.result, {}, products.sinks);
  }

  // A window's mask in the description covers only the tokens of the pass.
  [[nodiscard]] bool is_own_mask(const Operator& op, const CachedAttention& sizes) const {
    return sizes.window > 0 && model_.tensor(op.inputs[3]).type.type == DataType::boolean;
  }

  // A bias over all keys of a single query, if the cache needs no mask.
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
    if (sizes.tokens > 1 || attention.attributes.text("one_query") == "repeat") {
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
  std::vector<AttentionProducts> products_;
  std::map<TensorId, std::int64_t> widened_;  // masks of numbers: the keys they cover
  std::vector<TensorId> cached_;  // of the attention in products that is being rewritten
  GraphEditor editor_;
  RewiredProducts rewired_;
  TensorId hidden_;                      // what the layer that makes the logits reads
  OperatorId head_;                      // none: no logits, or of one position
  std::vector<OperatorId> behind_head_;  // from the output backwards
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, TensorId> masks_;
};

}  // namespace

Result<ModelGraph> with_cache(const ModelGraph& model, const ServingSettings& settings,
                              const CachePass& pass) {
  if (auto problem = serving_refusal(model, pass.has_encoder)) return failure(*std::move(problem));
  return CachedModel(model, settings, pass).build();
}

}  // namespace stowage
