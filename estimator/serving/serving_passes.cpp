#include "estimator/serving/serving_passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "estimator/base/cure.hpp"
#include "estimator/serving/cached_model.hpp"
#include "estimator/serving/encoder_decoder.hpp"

namespace stowage {

namespace {

/// The sizes of a prefill pass.
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

std::optional<Diagnostic> encoder_refusal(const std::string& model, const ServingSettings& settings,
                                          std::int64_t fixed) {
  if (settings.cache == CacheKind::paged) {
    return Diagnostic{
        .message = fmt::format("'{}' is an encoder-decoder, which a paged cache does not serve: "
                               "what a server allocates for it is not known",
                               model),
        .hint = "transformers' generate() serves it with a dynamic or a static cache"};
  }
  if (settings.cache == CacheKind::quantised) {
    return Diagnostic{.message = fmt::format("'{}' is an encoder-decoder, for which generate() has "
                                             "no quantised cache",
                                             model),
                      .hint = hint_of(Cure::cache_as_computed)};
  }
  if (settings.prefill_chunk) {
    return Diagnostic{.message = fmt::format("'{}' is an encoder-decoder, whose encoder takes its "
                                             "input at once, not in chunks",
                                             model)};
  }
  if (fixed > 0 && settings.encoder_length.value_or(fixed) != fixed) {
    return Diagnostic{.message = fmt::format("the encoder of '{}' always has {} positions, and {} "
                                             "are asked for",
                                             model, fixed, *settings.encoder_length)};
  }
  return std::nullopt;
}

Result<ServingPasses> encoder_decoder_passes(const ModelAtLength& read, const ModelGraph& whole,
                                             const ServingSettings& settings) {
  const auto decoder = read(1);
  if (!decoder) return tl::unexpected(decoder.error());
  const std::int64_t fixed = fixed_encoder_length(*decoder);
  if (auto problem = encoder_refusal(whole.name, settings, fixed)) {
    return failure(*std::move(problem));
  }
  const std::int64_t length =
      fixed > 0 ? fixed : settings.encoder_length.value_or(whole.default_seq);
  const auto encoder = fixed > 0 ? decoder : read(length);
  if (!encoder) return tl::unexpected(encoder.error());
  const auto pass_behind = [&](std::int64_t past) -> Result<ServingPass> {
    const auto step = decoding_step(*encoder, *decoder, settings, past);
    if (!step) return tl::unexpected(step.error());
    auto cached = with_cache(*step, settings, {.past = past, .has_encoder = true});
    if (!cached) return tl::unexpected(std::move(cached.error()));
    return ServingPass{.model = *std::move(cached),
                       .batch = settings.users,
                       .tokens = 1,
                       .past = past,
                       .encoded = length};
  };
  auto prefill = pass_behind(0);
  if (!prefill) return tl::unexpected(std::move(prefill.error()));
  // A context of one token ends with the first step.
  auto decode = pass_behind(settings.context_length - 1);
  if (!decode) return tl::unexpected(std::move(decode.error()));
  return ServingPasses{*std::move(prefill), *std::move(decode)};
}

}  // namespace

Result<ServingPasses> serving_passes(const ModelAtLength& read, const ServingSettings& settings) {
  const auto whole = read(settings.context_length);
  if (!whole) return tl::unexpected(whole.error());
  if (whole->default_seq == 0) {
    return failure(fmt::format("model '{}' has no symbol 'seq', so that its context has no length",
                               whole->name));
  }
  if (find_encoder(*whole)) return encoder_decoder_passes(read, *whole, settings);
  auto prefill = pass_over(read, settings, prefill_of(settings));
  if (!prefill) return tl::unexpected(std::move(prefill.error()));
  auto decode = pass_over(read, settings, {.batch = settings.users, .tokens = 1});
  if (!decode) return tl::unexpected(std::move(decode.error()));
  return ServingPasses{*std::move(prefill), *std::move(decode)};
}

}  // namespace stowage
