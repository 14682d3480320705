#include "estimator/huggingface/rotary_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace stowage {

namespace {

constexpr std::array<std::string_view, 7> kinds{"default",  "linear", "dynamic", "yarn",
                                                "longrope", "llama3", "su"};

/// A class's defaults if no key is given: its `default_theta` and `partial_rotary_factor`.
RotaryKeys usual_keys(std::string_view type) {
  RotaryKeys keys;
  if (type == "mixtral") keys.base = 1'000'000;
  if (type == "phi") keys.part = 0.5;
  if (type == "stablelm" || type == "gpt_neox") keys.part = 0.25;
  if (type == "gemma3_text") {
    keys.base = 1'000'000;
    keys.local_base = 10'000;
  }
  return keys;
}

double number_at(ConfigReader& config, const YamlNode& value, std::string_view key, double least,
                 double most, double otherwise) {
  if (value.kind == YamlNode::Kind::null) return otherwise;
  double number = 0;
  const char* const end = value.text.data() + value.text.size();
  if (value.is_scalar() && !value.quoted) {
    const auto [rest, error] = std::from_chars(value.text.data(), end, number);
    if (error == std::errc() && rest == end && number >= least && number <= most) return number;
  }
  config.mistakes().error(value.mark, fmt::format("'{}' must be a number from {} to {}, not {}",
                                                  key, least, most, describe(value)));
  return otherwise;
}

constexpr double least_base = 1, most_base = 1e12;

void read_parameters(ConfigReader& config, const YamlNode& parameters, double& base, double& part) {
  if (const YamlNode* value = parameters.find("rope_theta")) {
    base = number_at(config, *value, "rope_theta", least_base, most_base, base);
  }
  if (const YamlNode* value = parameters.find("partial_rotary_factor")) {
    part = number_at(config, *value, "partial_rotary_factor", 0, 1, part);
  }
  for (const std::string_view key : {"rope_type", "type"}) {
    const YamlNode* kind = parameters.find(key);
    if (kind == nullptr) continue;
    if (!kind->is_scalar() || std::ranges::find(kinds, kind->text) == kinds.end()) {
      config.mistakes().error(kind->mark,
                              fmt::format("{} is no kind of rotary positions that is "
                                          "read",
                                          describe(*kind)),
                              "default, linear, dynamic, yarn, longrope or llama3");
    }
    return;
  }
}

}  // namespace

RotaryKeys read_rotary(ConfigReader& config) {
  RotaryKeys keys = usual_keys(config.type());
  const auto from = [&](std::string_view key, double& target, double least, double most) {
    if (const YamlNode* value = config.written(key)) {
      target = number_at(config, *value, key, least, most, target);
    }
  };
  for (const std::string_view key : {"rope_theta", "rotary_emb_base"}) {
    from(key, keys.base, least_base, most_base);
  }
  for (const std::string_view key : {"partial_rotary_factor", "rotary_pct", "rope_pct"}) {
    from(key, keys.part, 0, 1);
  }
  if (keys.local_base) from("rope_local_base_freq", *keys.local_base, least_base, most_base);
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const YamlNode* parameters = config.written(key);
    if (parameters == nullptr || parameters->kind == YamlNode::Kind::null) continue;
    if (!parameters->is_mapping()) {
      config.wrong(key, fmt::format("'{}' must be a mapping, not {}", key, describe(*parameters)));
      continue;
    }
    const YamlNode* full = parameters->find("full_attention");
    if (full == nullptr || !full->is_mapping()) {
      read_parameters(config, *parameters, keys.base, keys.part);
      continue;
    }
    read_parameters(config, *full, keys.base, keys.part);
    const YamlNode* sliding = parameters->find("sliding_attention");
    double part = keys.part;
    if (keys.local_base && sliding != nullptr && sliding->is_mapping()) {
      read_parameters(config, *sliding, *keys.local_base, part);
    }
  }
  return keys;
}

}  // namespace stowage
