#include "gpu_probe/cudnn/engine_name.hpp"

#include <fmt/format.h>

#include <charconv>

namespace stowage {
namespace {

/// Removes the text up to the next space, and the space, from its front; returns it.
std::string_view next_word(std::string_view& text) {
  const std::size_t end = text.find(' ');
  const std::string_view word = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return word;
}

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

}  // namespace

std::string to_string(const EngineName& name) {
  std::string text = fmt::format("cudnn {} eng{}", name.version, name.index);
  for (const auto& [kind, value] : name.knobs) text += fmt::format(" k{}={}", kind, value);
  return text;
}

std::optional<EngineName> parse_engine_name(std::string_view text) {
  EngineName name;
  if (next_word(text) != "cudnn") return std::nullopt;
  name.version = next_word(text);
  const std::string_view engine = next_word(text);
  if (name.version.empty() || !engine.starts_with("eng")) return std::nullopt;
  const auto index = whole(engine.substr(3));
  if (!index || *index < 0) return std::nullopt;
  name.index = *index;
  while (!text.empty()) {
    const std::string_view knob = next_word(text);
    const std::size_t equals = knob.find('=');
    if (!knob.starts_with('k') || equals == std::string_view::npos) return std::nullopt;
    const auto kind = whole(knob.substr(1, equals - 1)), value = whole(knob.substr(equals + 1));
    if (!kind || !value) return std::nullopt;
    name.knobs.emplace_back(*kind, *value);
  }
  return name;
}

}  // namespace stowage
