#include "estimator/card/card_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>

#include "estimator/card/card_rules.hpp"
#include "estimator/card/measurement_reader.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {
namespace {

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number >= 0) ||
      !std::isfinite(number)) {
    return {};
  }
  return number;
}

// What a key holds, and where it goes. `set` returns what is wrong, or "".
struct Key {
  std::string_view name;
  bool required;
  std::function<std::string(Card&, const std::string&)> set;
};

Key text_key(std::string_view name, std::string Card::*field, bool required = false) {
  return {name, required, [field](Card& card, const std::string& text) -> std::string {
            card.*field = text;
            return text.empty() ? "is empty" : "";
          }};
}

Key bytes_key(std::string_view name, Bytes Card::*field) {
  return {name, false, [field](Card& card, const std::string& text) -> std::string {
            const auto bytes = parse_bytes(text);
            if (bytes) card.*field = *bytes;
            return bytes ? "" : fmt::format("is not a size such as 24576 MiB: '{}'", text);
          }};
}

Key rate_key(std::string_view name, double Card::*field, std::string_view unit, double scale) {
  return {name, false, [field, unit, scale](Card& card, const std::string& text) -> std::string {
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
  const bool good = number && *number >= 1 && *number < 100;
  if (good) card.compute_capability = *number;
  return good ? "" : fmt::format("is not a number such as 8.6: '{}'", text);
}

std::string set_sm_count(Card& card, const std::string& text) {
  const auto number = parse_number(text);
  const bool good = number && *number >= 1 && *number <= 100000 && *number == int(*number);
  if (good) card.sm_count = static_cast<int>(*number);
  return good ? "" : fmt::format("is not a count: '{}'", text);
}

std::string set_board(Card& card, const std::string& text) {
  card.professional = text == "professional";
  return card.professional || text == "consumer"
             ? ""
             : fmt::format("is professional or consumer, not '{}'", text);
}

const auto& keys() {
  static const std::array table = {
      text_key("name", &Card::name, true),
      text_key("architecture", &Card::architecture),
      Key{"compute_capability", true, set_compute_capability},
      Key{"board", false, set_board},
      Key{"sm_count", false, set_sm_count},
      bytes_key("memory", &Card::memory),
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
      text_key("cudnn_device", &Card::cudnn_device_json),
  };
  return table;
}

constexpr std::string_view measurements_key = "measurements";
constexpr std::string_view observed_totals_key = "observed_totals";

void set_entry(Card& card, const SourceTextPtr& source, const YamlNode& name, const YamlNode& value,
               Diagnostics& errors) {
  if (name.text == measurements_key) {
    card.measurements = read_measurements(source, value, errors);
    return;
  }
  if (name.text == observed_totals_key) {
    card.observed_totals = read_observed_totals(source, value, errors);
    return;
  }
  const auto key = std::ranges::find(keys(), std::string_view(name.text), &Key::name);
  if (key == keys().end()) {
    std::vector<std::string_view> names{measurements_key, observed_totals_key};
    for (const Key& known : keys()) names.push_back(known.name);
    errors.push_back({.message = fmt::format("unknown key '{}' in a card file", name.text),
                      .span = span_of(source, name.mark),
                      .hint = did_you_mean(name.text, names)});
    return;
  }
  const std::string wrong = value.is_scalar()
                                ? key->set(card, value.text)
                                : fmt::format("takes one plain value, not {}", describe(value));
  if (!wrong.empty()) {
    errors.push_back(
        {.message = fmt::format("'{}' {}", key->name, wrong), .span = span_of(source, value.mark)});
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

Result<YamlDocument> read_mapping(const SourceTextPtr& source, std::string_view what,
                                  Diagnostics& errors) {
  auto document = read_yaml(source);
  if (!document) return tl::unexpected(document.error());
  if (!document->root->is_mapping()) {
    return failure({.message = fmt::format("{} is a mapping of keys to values, not {}", what,
                                           describe(*document->root)),
                    .span = span_of(source, document->root->mark),
                    .hint = "configs/gpus/ has examples"});
  }
  errors = document->mistakes;
  return document;
}

}  // namespace

Result<Card> read_card(const SourceTextPtr& source) {
  Diagnostics errors;
  const auto document = read_mapping(source, "a card file", errors);
  if (!document) return tl::unexpected(document.error());
  const YamlNode& root = *document->root;
  Card card;
  for (std::size_t i = 0; i < root.entry_count(); ++i) {
    set_entry(card, source, root.key(i), root.value(i), errors);
  }
  GivenKeys given;
  std::vector<std::string> missing;
  for (const Key& key : keys()) {
    if (root.find(key.name)) given.emplace(key.name);
    if (key.required && !root.find(key.name)) missing.push_back(fmt::format("'{}'", key.name));
  }
  const auto is_given = [&](const char* key) { return given.contains(key); };
  if (!is_given("memory") && !is_given("nvml_total") && !is_given("cuda_total")) {
    missing.emplace_back("'memory'");
  }
  if (!missing.empty()) {
    errors.push_back({.message = fmt::format("the card lacks {}", fmt::join(missing, ", ")),
                      .span = {source, 0, 0, 1}});
  }
  if (errors.empty()) {
    card = completed_by_rule(std::move(card), given);
    check_sense(card, source, errors);
  }
  if (!errors.empty()) return tl::unexpected(errors);
  return card;
}

Result<Card> read_calibration(const SourceTextPtr& source, const Card& of) {
  Diagnostics errors;
  const auto document = read_mapping(source, "a calibration", errors);
  if (!document) return tl::unexpected(document.error());
  const YamlNode& root = *document->root;
  Card card = of;
  card.measurements.clear();
  for (std::size_t i = 0; i < root.entry_count(); ++i) {
    set_entry(card, source, root.key(i), root.value(i), errors);
  }
  if (const YamlNode* name = root.find("name"); name != nullptr && card.name != of.name) {
    errors.push_back(
        {.message = fmt::format("the calibration is of '{}', the card is '{}'", card.name, of.name),
         .span = span_of(source, name->mark)});
  }
  if (errors.empty()) check_sense(card, source, errors);
  if (!errors.empty()) return tl::unexpected(errors);
  std::erase_if(card.by_rule, [&](const std::string& key) { return root.find(key) != nullptr; });
  for (ProcessMeasurement& measurement : card.measurements) measurement.calibrated = true;
  card.measurements.insert(card.measurements.end(), of.measurements.begin(), of.measurements.end());
  return card;
}

}  // namespace stowage
