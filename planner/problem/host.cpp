#include "planner/problem/host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "estimator/text/yaml_document.hpp"

namespace stowage {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array<Unit, 2> bandwidth_units{{{"GB/s", 1e9}, {"MB/s", 1e6}}};
constexpr std::array<Unit, 2> flop_units{{{"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}}};
constexpr std::array<Unit, 2> time_units{{{"us", 1e-6}, {"ms", 1e-3}}};

// One key: where its value goes and what it must look like.
struct Key {
  std::string_view name;
  bool required;
  std::string Host::*text = nullptr;
  Bytes Host::*bytes = nullptr;
  double Host::*number = nullptr;
  const std::array<Unit, 2>* units = nullptr;
  std::string_view example;
};

constexpr std::array<Key, 9> keys{{
    {"name", true, &Host::name, nullptr, nullptr, nullptr, "a name"},
    {"memory", true, nullptr, &Host::memory, nullptr, nullptr, "a size such as 32 GiB"},
    {"pinned_limit", false, nullptr, &Host::pinned_limit, nullptr, nullptr,
     "a size such as 16 GiB"},
    {"cpu_flops", true, nullptr, nullptr, &Host::cpu_flops, &flop_units,
     "a rate such as 400 GFLOP/s"},
    {"memory_bandwidth", true, nullptr, nullptr, &Host::memory_bandwidth, &bandwidth_units,
     "a rate such as 40 GB/s"},
    {"kernel_latency", false, nullptr, nullptr, &Host::kernel_latency, &time_units,
     "a time such as 2 us"},
    {"h2d_bandwidth", false, nullptr, nullptr, &Host::h2d_bandwidth, &bandwidth_units,
     "a rate such as 12 GB/s"},
    {"d2h_bandwidth", false, nullptr, nullptr, &Host::d2h_bandwidth, &bandwidth_units,
     "a rate such as 12 GB/s"},
    {"link_latency", false, nullptr, nullptr, &Host::link_latency, &time_units,
     "a time such as 10 us"},
}};

// "400 GFLOP/s": a positive number, a blank, one of the units.
std::optional<double> parse_quantity(std::string_view text, const std::array<Unit, 2>& units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number > 0) || number > 1e9) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& known : units) {
    if (unit.size() == known.name.size() + 1 && unit.front() == ' ' &&
        unit.substr(1) == known.name) {
      return number * known.factor;
    }
  }
  return std::nullopt;
}

bool set(Host& host, const Key& key, const YamlNode& value) {
  if (!value.is_scalar() || value.text.empty()) return false;
  if (key.text != nullptr) host.*key.text = value.text;
  if (key.bytes != nullptr) {
    const Result<Bytes> bytes = parse_bytes(value.text);
    if (!bytes || *bytes <= Bytes()) return false;
    host.*key.bytes = *bytes;
  }
  if (key.number != nullptr) {
    const std::optional<double> number = parse_quantity(value.text, *key.units);
    if (!number) return false;
    host.*key.number = *number;
  }
  return true;
}

void set_entry(Host& host, const SourceTextPtr& source, const YamlNode& name, const YamlNode& value,
               std::vector<std::string_view>& seen, Diagnostics& errors) {
  for (const Key& key : keys) {
    if (name.text != key.name) continue;
    seen.push_back(key.name);
    if (!set(host, key, value)) {
      errors.push_back(
          {.message = fmt::format("'{}' takes {}, not {}", key.name, key.example, describe(value)),
           .span = span_of(source, value.mark)});
    }
    return;
  }
  std::vector<std::string_view> names;
  for (const Key& key : keys) names.push_back(key.name);
  errors.push_back({.message = fmt::format("unknown key '{}' in a host file", name.text),
                    .span = span_of(source, name.mark),
                    .hint = did_you_mean(name.text, names)});
}

}  // namespace

Result<Host> load_host(SourceTextPtr source) {
  const Result<YamlDocument> document = read_yaml(source);
  if (!document) return tl::unexpected(document.error());
  const YamlNode& root = *document->root;
  if (!root.is_mapping()) {
    return failure({.message = "a host file is a mapping of keys to values",
                    .span = span_of(source, root.mark),
                    .hint = "configs/hosts/generic.yaml is an example"});
  }
  Host host;
  host.source = source->name;
  Diagnostics errors = document->mistakes;
  std::vector<std::string_view> seen;
  for (std::size_t i = 0; i < root.entry_count(); ++i) {
    set_entry(host, source, root.key(i), root.value(i), seen, errors);
  }
  for (const Key& key : keys) {
    const bool given = std::find(seen.begin(), seen.end(), key.name) != seen.end();
    if (key.required && !given) {
      errors.push_back(
          {.message = fmt::format("the host lacks '{}'", key.name), .span = {source, 0, 0, 1}});
    }
  }
  if (errors.empty() && host.pinned_limit > host.memory) {
    errors.push_back(
        {.message = fmt::format("'pinned_limit' is {} and 'memory' only {}",
                                format_bytes(host.pinned_limit), format_bytes(host.memory)),
         .span = span_of(source, root.find("pinned_limit")->mark)});
  }
  if (!errors.empty()) return tl::unexpected(errors);
  if (host.pinned_limit == Bytes()) host.pinned_limit = Bytes(host.memory.count() / 2);
  return host;
}

}  // namespace stowage
