#include "estimator/serving/cached_attention.hpp"

#include <algorithm>

#include "estimator/model/operator_row.hpp"

namespace stowage {

bool is_attention(const Operator& op) { return op.row->name == "scaled_dot_product_attention"; }

bool is_causal_attention(const Operator& op) {
  return is_attention(op) &&
         (op.attributes.boolean("causal") || op.attributes.integer("window") > 0);
}

ModelAttention model_attention(const Operator& op) {
  return {.name = op.name,
          .query = op.inputs[0],
          .key = op.inputs[1],
          .value = op.inputs[2],
          .window = op.attributes.integer("window"),
          .span = op.span};
}

ModelAttention model_attention(const AttentionProducts& products, const ModelGraph& model) {
  const Operator& last = model.op(model.tensor(products.result).producer);
  return {.name = last.name,
          .query = products.query,
          .key = products.key,
          .value = products.value,
          .window = products.window,
          .span = last.span};
}

CachedAttention cached_attention(const Shape& query, const Shape& key, std::int64_t window,
                                 const ServingSettings& settings, const CachePass& pass) {
  CachedAttention sizes{.heads = query[1].constant,
                        .key_heads = key[1].constant,
                        .tokens = key[2].constant,
                        .window = window};
  const std::int64_t context = settings.context_length;
  const bool is_cut = window > 0;
  const std::int64_t seen = is_cut ? window : context;
  sizes.kept = cached_tokens(std::min(seen, context), settings);
  const std::int64_t all = pass.past + sizes.tokens;
  // The whole prompt is quantised. The peak is highest in the step whose token fills the residual
  // length, since then all tokens are quantised again.
  if (settings.cache == CacheKind::quantised && is_packed(settings.format) && pass.past > 0) {
    sizes.newest = std::min(settings.residual - 1, pass.past - 1);
  }
  switch (settings.cache) {
    case CacheKind::dynamic:
    case CacheKind::quantised:
      sizes.read = is_cut ? std::min(pass.past, window - 1) + sizes.tokens : all;
      sizes.masked = (pass.past > 0 && sizes.tokens > 1) || (is_cut && sizes.read >= seen);
      break;
    case CacheKind::static_: {
      const bool fills = all <= sizes.kept || sizes.tokens == 1;
      sizes.read = fills ? sizes.kept : sizes.tokens;
      const bool whole = sizes.read == sizes.tokens && !(is_cut && sizes.read >= seen);
      sizes.masked = sizes.tokens == 1 || !whole;
      break;
    }
    case CacheKind::paged:
      sizes.read = std::min(seen, all);
      break;
  }
  return sizes;
}

bool chunks_exceed_window(const CachedAttention& sizes, const ServingSettings& settings,
                          const CachePass& pass) {
  return settings.cache == CacheKind::static_ && sizes.window > 0 && pass.past > 0 &&
         sizes.tokens > 1 && pass.past + sizes.tokens > sizes.kept;
}

}  // namespace stowage
