#include "estimator/serving/serving_passes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/serving/cached_model.hpp"

namespace stowage {

namespace {

/// What a prefill takes.
struct Prefill {
  std::int64_t batch = 1, tokens = 1;
};

Prefill prefill_of(const ServingSettings& settings) {
  const std::int64_t context = settings.context_length;
  if (!settings.prefill_chunk) return {settings.users, context};
  const std::int64_t chunk = *settings.prefill_chunk;
  if (settings.cache != CacheKind::paged) return {settings.users, std::min(chunk, context)};
  if (chunk <= context) return {1, chunk};
  return {std::min(settings.users, (chunk + context - 1) / context), context};
}

Result<ServingPass> pass_over(const ModelAtLength& read, const ServingSettings& settings,
                              const Prefill& taken) {
  ServingPass pass{.model = {},
                   .batch = taken.batch,
                   .tokens = taken.tokens,
                   .past = settings.context_length - taken.tokens};
  auto model = read(taken.tokens);
  if (!model) return tl::unexpected(std::move(model.error()));
  const std::int64_t others = taken.batch == settings.users ? 0 : settings.users;
  auto cached = with_cache(*model, settings, {.past = pass.past, .users = others});
  if (!cached) return tl::unexpected(std::move(cached.error()));
  pass.model = *std::move(cached);
  return pass;
}

}  // namespace

Result<ServingPasses> serving_passes(const ModelAtLength& read, const ServingSettings& settings) {
  const auto whole = read(settings.context_length);
  if (!whole) return tl::unexpected(whole.error());
  if (whole->default_seq == 0) {
    return failure(fmt::format("model '{}' has no symbol 'seq', so that its context has no length",
                               whole->name));
  }
  auto prefill = pass_over(read, settings, prefill_of(settings));
  if (!prefill) return tl::unexpected(std::move(prefill.error()));
  auto decode = pass_over(read, settings, {.batch = settings.users, .tokens = 1});
  if (!decode) return tl::unexpected(std::move(decode.error()));
  return ServingPasses{*std::move(prefill), *std::move(decode)};
}

}  // namespace stowage
