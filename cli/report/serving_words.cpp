#include "cli/report/serving_words.hpp"

#include <fmt/format.h>

#include "estimator/base/grouped_digits.hpp"

namespace stowage {

std::string describe_pass(const DescribedPass& pass) {
  const std::string users =
      pass.batch == 1 ? std::string("one user") : grouped_digits(pass.batch) + " users";
  std::string text = fmt::format("{}: {} {} of {}", pass.name, grouped_digits(pass.tokens),
                                 pass.tokens == 1 ? "token" : "tokens", users);
  if (pass.encoded > 0 && pass.past == 0) {
    text += fmt::format(", behind an encoder over {} positions", grouped_digits(pass.encoded));
  }
  if (pass.past > 0) text += fmt::format(", {} cached before", grouped_digits(pass.past));
  return text;
}

std::string describe_serving(const DescribedServing& serving) {
  const ServingSettings& settings = serving.settings;
  std::string cache = fmt::format("{} cache", to_string(settings.cache));
  if (settings.cache == CacheKind::paged) cache += fmt::format(" in blocks of {}", settings.block);
  if (settings.format != CacheFormat::model) {
    cache += fmt::format(", stored as {}", to_string(settings.format));
  }
  if (is_packed(settings.format)) {
    cache += fmt::format(" in groups of {}, the newest up to {} tokens as computed", settings.group,
                         settings.residual - 1);
  }
  return fmt::format(
      "{} serving {} {} of {} tokens{}, {}, {}", serving.model, grouped_digits(settings.users),
      settings.users == 1 ? "user" : "users", grouped_digits(settings.context_length),
      serving.encoded > 0 ? fmt::format(" behind {} of an encoder", grouped_digits(serving.encoded))
                          : "",
      to_string(serving.precision), cache);
}

Json::Object served_json(const ServingSettings& settings, std::optional<std::int64_t> encoded) {
  Json::Object json{{"context_length", settings.context_length}};
  if (encoded) json.emplace_back("encoder_length", *encoded > 0 ? Json(*encoded) : Json());
  json.emplace_back("users", settings.users);
  json.emplace_back("cache", to_string(settings.cache));
  json.emplace_back("kv_dtype", to_string(settings.format));
  json.emplace_back("kv_block", settings.cache == CacheKind::paged ? Json(settings.block) : Json());
  json.emplace_back("prefill_chunk",
                    settings.prefill_chunk ? Json(*settings.prefill_chunk) : Json());
  return json;
}

void add_pass(const DescribedPass& pass, Json::Object& object) {
  object.emplace_back("sequences", pass.batch);
  object.emplace_back("tokens_of_each", pass.tokens);
  object.emplace_back("cached_before", pass.past);
}

}  // namespace stowage
