#include "cli/options/serving_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "answers/sizing/serving_cache.hpp"

namespace stowage {

namespace {

constexpr std::string_view cache_options[] = {"users", "kv-dtype", "cache", "kv-block",
                                              "prefill-chunk"};

void refuse_with_cache(const Arguments& arguments, Diagnostics& mistakes) {
  const auto refuse = [&](std::string message, std::string hint = {}) {
    mistakes.push_back(command_line_error(std::move(message), std::move(hint)));
  };
  if (arguments.text("mode").value_or("inference") != "inference") {
    refuse("--context-length is of inference, and --mode asks for training");
  }
  if (arguments.given("batch") && arguments.given("users")) {
    refuse("--batch and --users both say how many are served; give --users");
  }
  for (const std::string_view option :
       {"eval-batch", "rule-of-thumb", "global-batch", "accumulation", "zero", "fsdp", "offload",
        "gpus", "optimizer"}) {
    if (arguments.given(option)) {
      refuse(
          fmt::format("--{} is not of serving: --context-length asks for an inference with a "
                      "cache",
                      option));
    }
  }
}

}  // namespace

Result<std::optional<ServingSettings>> read_serving(const Arguments& arguments,
                                                    std::string_view searched) {
  Diagnostics mistakes;
  if (!arguments.given("context-length") && searched != "context-length") {
    for (const std::string_view option : cache_options) {
      if (!arguments.given(option) && searched != option) continue;
      mistakes.push_back(command_line_error(
          fmt::format("--{} is of serving, which needs --context-length",
                      searched == option ? std::string("of users") : std::string(option))));
    }
    if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
    return std::optional<ServingSettings>();
  }
  ServingSettings settings{.context_length = arguments.integer("context-length").value_or(1),
                           .prefill_chunk = arguments.integer("prefill-chunk")};
  const auto batch = arguments.given("batch") ? arguments.integer("batch") : std::nullopt;
  settings.users = arguments.integer("users").value_or(batch.value_or(1));
  settings.cache_is_default = !arguments.given("cache");
  if (const auto word = arguments.text("cache")) {
    settings.cache = find_cache_kind(*word).value_or(settings.cache);
  }
  if (const auto word = arguments.text("kv-dtype")) {
    settings.format = find_cache_format(*word).value_or(settings.format);
  }
  settings.block = arguments.integer("kv-block").value_or(settings.block);
  refuse_with_cache(arguments, mistakes);
  const auto suitable = with_suitable_cache(settings);
  if (!suitable) std::ranges::copy(suitable.error(), std::back_inserter(mistakes));
  const CacheKind kind = suitable ? suitable->cache : settings.cache;
  if (arguments.given("kv-block") && kind != CacheKind::paged) {
    mistakes.push_back(command_line_error(
        fmt::format("--kv-block is of --cache paged, not of {}", to_string(kind))));
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return std::optional(*suitable);
}

Result<LargestOfRequest> read_largest_of(const Arguments& arguments) {
  LargestOfRequest request;
  const std::string word = arguments.text("of").value_or("batch");
  if (word == "users") request.what = LargestOf::users;
  if (word == "context-length") request.what = LargestOf::context_length;
  if (word == "seq") request.what = LargestOf::seq;
  Diagnostics mistakes;
  if (arguments.given(word)) {
    mistakes.push_back(command_line_error(fmt::format("--{} is what stowage batch looks for", word),
                                          "stowage check takes it"));
  }
  if (arguments.given("at-batch") && word != "seq") {
    mistakes.push_back(command_line_error("--at-batch is for --of seq"));
  }
  if (request.what && arguments.given("global-batch")) {
    mistakes.push_back(command_line_error("--global-batch and --of cannot be combined"));
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  const bool serves = request.what && request.what != LargestOf::seq;
  auto serving = read_serving(arguments, serves ? word : std::string_view());
  if (!serving) return tl::unexpected(std::move(serving.error()));
  if (*serving && !serves) {
    return failure(command_line_error("--context-length is of serving, whose users have no batch",
                                      "--of users looks for the most of them"));
  }
  request.serving = *serving;
  return request;
}

}  // namespace stowage
