#include "estimator/memory/card_file.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <string_view>

namespace stowage {
namespace {

struct Scalar {
  std::string text;
  SourceSpan span;
};

struct Entry {
  Scalar key;
  Scalar value;
};

SourceSpan span_at(const SourceTextPtr& source, const YAML::Mark& mark, std::size_t length) {
  if (mark.is_null()) return {source, 0, 0, 1};
  return {source, mark.line + 1, mark.column + 1,
          static_cast<int>(std::max<std::size_t>(length, 1))};
}

Result<std::vector<Entry>> read_mapping(const SourceTextPtr& source) {
  YAML::Node root;
  try {
    root = YAML::Load(source->text);
  } catch (const YAML::Exception& error) {
    return failure({.message = error.msg, .span = span_at(source, error.mark, 1)});
  }
  if (!root.IsMap()) {
    return failure({.message = "a card file is a mapping of keys to values",
                    .span = span_at(source, root.Mark(), 1),
                    .hint = "configs/gpus/ has examples"});
  }
  std::vector<Entry> entries;
  Diagnostics errors;
  for (const auto& item : root) {
    const YAML::Node& key = item.first;
    const YAML::Node& value = item.second;
    const std::string name = key.IsScalar() ? key.Scalar() : "";
    const SourceSpan at = span_at(source, key.Mark(), name.size());
    if (!key.IsScalar() || !value.IsScalar()) {
      errors.push_back({.message = fmt::format("'{}' takes one plain value", name), .span = at});
      continue;
    }
    const std::string& text = value.Scalar();
    entries.push_back({{name, at}, {text, span_at(source, value.Mark(), text.size())}});
  }
  if (!errors.empty()) return tl::unexpected(errors);
  return entries;
}

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number >= 0)) return {};
  return number;
}

// What a key holds, and where it goes. `set` returns what is wrong, or "".
struct Key {
  std::string_view name;
  bool required;
  std::function<std::string(Card&, const std::string&)> set;
};

Key text_key(std::string_view name, std::string Card::*field, bool required = true) {
  return {name, required, [field](Card& card, const std::string& text) -> std::string {
            card.*field = text;
            return text.empty() ? "is empty" : "";
          }};
}

Key bytes_key(std::string_view name, Bytes Card::*field) {
  return {name, true, [field](Card& card, const std::string& text) -> std::string {
            const auto bytes = parse_bytes(text);
            if (bytes) card.*field = *bytes;
            return bytes ? "" : fmt::format("is not a size such as 24576 MiB: '{}'", text);
          }};
}

Key rate_key(std::string_view name, double Card::*field, std::string_view unit, double scale) {
  return {name, true, [field, unit, scale](Card& card, const std::string& text) -> std::string {
            const std::string_view view = text;
            const std::size_t blank = view.find(' ');
            const auto number = parse_number(view.substr(0, blank));
            if (!number || blank == view.npos || view.substr(blank + 1) != unit) {
              return fmt::format("is not a rate in {}: '{}'", unit, text);
            }
            card.*field = *number * scale;
            return "";
          }};
}

std::string set_compute_capability(Card& card, const std::string& text) {
  const auto number = parse_number(text);
  card.compute_capability = number.value_or(0);
  return number || text == "none" ? "" : fmt::format("is neither a number nor 'none': '{}'", text);
}

std::string set_sm_count(Card& card, const std::string& text) {
  const auto number = parse_number(text);
  const bool good = number && *number >= 1 && *number <= 100000 && *number == int(*number);
  if (good) card.sm_count = static_cast<int>(*number);
  return good ? "" : fmt::format("is not a count: '{}'", text);
}

const auto& keys() {
  static const std::array table = {
      text_key("name", &Card::name),
      text_key("architecture", &Card::architecture),
      Key{"compute_capability", true, set_compute_capability},
      Key{"sm_count", true, set_sm_count},
      bytes_key("nvml_total", &Card::nvml_total),
      bytes_key("cuda_total", &Card::cuda_total),
      text_key("total_source", &Card::total_source),
      bytes_key("context", &Card::context),
      text_key("context_source", &Card::context_source),
      rate_key("memory_bandwidth", &Card::memory_bandwidth, "GB/s", 1e9),
      rate_key("fp32", &Card::fp32_flops, "TFLOP/s", 1e12),
      rate_key("tf32", &Card::tf32_flops, "TFLOP/s", 1e12),
      rate_key("fp16", &Card::fp16_flops, "TFLOP/s", 1e12),
      text_key("pcie", &Card::pcie),
      rate_key("h2d_bandwidth", &Card::h2d_bandwidth, "GB/s", 1e9),
      rate_key("d2h_bandwidth", &Card::d2h_bandwidth, "GB/s", 1e9),
      rate_key("pageable_bandwidth", &Card::pageable_bandwidth, "GB/s", 1e9),
      text_key("rate_source", &Card::rate_source),
      text_key("confidence", &Card::confidence),
      text_key("cudnn_device", &Card::cudnn_device_json, false),
  };
  return table;
}

void set_entry(Card& card, const Entry& entry, Diagnostics& errors) {
  const auto key = std::ranges::find(keys(), std::string_view(entry.key.text), &Key::name);
  if (key == keys().end()) {
    std::vector<std::string_view> names;
    for (const Key& known : keys()) names.push_back(known.name);
    errors.push_back({.message = fmt::format("unknown key '{}' in a card file", entry.key.text),
                      .span = entry.key.span,
                      .hint = did_you_mean(entry.key.text, names)});
    return;
  }
  const std::string wrong = key->set(card, entry.value.text);
  if (!wrong.empty()) {
    errors.push_back(
        {.message = fmt::format("'{}' {}", key->name, wrong), .span = entry.value.span});
  }
}

void check_sense(const Card& card, const SourceTextPtr& source, Diagnostics& errors) {
  if (card.cuda_total <= Bytes(0) || card.memory_bandwidth <= 0 || card.fp32_flops <= 0 ||
      card.h2d_bandwidth <= 0 || card.d2h_bandwidth <= 0) {
    errors.push_back({.message = "cuda_total, memory_bandwidth, fp32, h2d_bandwidth and "
                                 "d2h_bandwidth must be above 0",
                      .span = {source, 0, 0, 1}});
  }
}

}  // namespace

Result<Card> read_card(const SourceTextPtr& source) {
  const auto entries = read_mapping(source);
  if (!entries) return tl::unexpected(entries.error());
  Card card;
  Diagnostics errors;
  std::vector<std::string_view> seen;
  for (const Entry& entry : *entries) {
    if (std::ranges::find(seen, entry.key.text) != seen.end()) {
      errors.push_back(
          {.message = fmt::format("'{}' is given twice", entry.key.text), .span = entry.key.span});
      continue;
    }
    seen.push_back(entry.key.text);
    set_entry(card, entry, errors);
  }
  for (const Key& key : keys()) {
    if (key.required && std::ranges::find(seen, key.name) == seen.end()) {
      errors.push_back(
          {.message = fmt::format("the card lacks '{}'", key.name), .span = {source, 0, 0, 1}});
    }
  }
  if (errors.empty()) check_sense(card, source, errors);
  if (!errors.empty()) return tl::unexpected(errors);
  return card;
}

}  // namespace stowage
