#include "estimator/keras/keras_config.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace stowage {

bool is_nothing(const YamlNode* node) {
  return node == nullptr || node->kind == YamlNode::Kind::null;
}

std::optional<std::int64_t> integer_of(const YamlNode& node) {
  if (!node.is_scalar() || node.quoted) return std::nullopt;
  std::int64_t value = 0;
  const char* end = node.text.data() + node.text.size();
  const auto [stop, code] = std::from_chars(node.text.data(), end, value);
  if (code != std::errc() || stop != end) return std::nullopt;
  constexpr std::int64_t most = 1'000'000'000'000;
  if (value > most || value < -most) return std::nullopt;
  return value;
}

const YamlNode* KerasConfig::find(std::string_view key) const {
  if (node_ == nullptr || !node_->is_mapping()) return nullptr;
  const YamlNode* found = node_->find(key);
  return is_nothing(found) ? nullptr : found;
}

std::string KerasConfig::text(std::string_view key, std::string_view otherwise) const {
  const YamlNode* found = find(key);
  return found != nullptr && found->is_scalar() ? found->text : std::string(otherwise);
}

bool KerasConfig::flag(std::string_view key, bool otherwise) const {
  const std::string word = text(key);
  if (word == "true") return true;
  if (word == "false") return false;
  return otherwise;
}

std::optional<double> KerasConfig::number(std::string_view key) const {
  const YamlNode* found = find(key);
  if (found == nullptr || !found->is_scalar() || found->text.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(found->text.c_str(), &end);
  if (end != found->text.c_str() + found->text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> KerasConfig::integer(std::string_view key) const {
  const YamlNode* found = find(key);
  return found != nullptr ? integer_of(*found) : std::nullopt;
}

std::vector<std::int64_t> KerasConfig::list(std::string_view key) const {
  const YamlNode* found = find(key);
  std::vector<std::int64_t> all;
  if (found == nullptr || !found->is_sequence()) return all;
  for (const YamlNode* item : found->items) {
    const auto number = integer_of(*item);
    if (!number) return {};
    all.push_back(*number);
  }
  return all;
}

std::vector<std::int64_t> KerasConfig::integers(std::string_view key, std::size_t count) const {
  if (const auto one = integer(key)) return std::vector<std::int64_t>(count, *one);
  std::vector<std::int64_t> all = list(key);
  if (all.size() != count) all.clear();
  return all;
}

std::string KerasConfig::class_name(std::string_view key) const {
  const YamlNode* found = find(key);
  if (found == nullptr) return {};
  if (found->is_scalar()) return found->text;
  const KerasConfig object(found);
  const std::string inner = object.at("config").class_name("class_name");
  const std::string own = object.text("class_name");
  // A function: {"class_name": "function", "config": "relu"}.
  return own == "function" ? object.text("config") : own.empty() ? inner : own;
}

}  // namespace stowage
