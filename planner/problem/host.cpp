#include "planner/problem/host.hpp"

#include <fmt/format.h>

#include <span>
#include <string_view>
#include <utility>

#include "estimator/text/field_reader.hpp"

namespace stowage {

namespace {

constexpr Presence optional = Presence::optional;

class HostFields : public FieldReader {
 public:
  HostFields(const YamlNode& node, Mistakes& mistakes)
      : FieldReader(
            node, {.of = "the host", .file = "a host file", .refusal = FieldWords::Refusal::takes},
            mistakes) {}

  void positive_size(std::string_view key, Bytes& target, std::string_view example) {
    if (!size(key, target, optional, example) || target > Bytes()) return;
    refuse(*find(key), key, fmt::format("a size such as {}", example));
  }
  void positive(std::string_view key, double& target, std::span<const Unit> units,
                std::string_view expected) {
    if (quantity(key, target, units, optional, expected) && target <= 0) {
      refuse(*find(key), key, expected);
    }
  }
};

void read_fields(const YamlNode& node, Host& host, Mistakes& mistakes) {
  HostFields fields(node, mistakes);
  fields.word("name", host.name, optional, "a name");
  fields.positive_size("memory", host.memory, "32 GiB");
  fields.positive_size("pinned_limit", host.pinned_limit, "16 GiB");
  fields.positive("cpu_flops", host.cpu_flops, flop_rate_units, "a rate such as 400 GFLOP/s");
  fields.positive("memory_bandwidth", host.memory_bandwidth, byte_rate_units,
                  "a rate such as 40 GB/s");
  fields.positive("kernel_latency", host.kernel_latency, time_units, "a time such as 2 us");
  fields.positive("h2d_bandwidth", host.h2d_bandwidth, byte_rate_units, "a rate such as 12 GB/s");
  fields.positive("d2h_bandwidth", host.d2h_bandwidth, byte_rate_units, "a rate such as 12 GB/s");
  fields.positive("link_latency", host.link_latency, time_units, "a time such as 10 us");
  fields.finish();
}

void read_rates(const YamlNode& node, Host& host, Mistakes& mistakes) {
  HostFields fields(node, mistakes);
  fields.positive("cpu_flops", host.cpu_flops, flop_rate_units, "a rate such as 400 GFLOP/s");
  fields.positive("memory_bandwidth", host.memory_bandwidth, byte_rate_units,
                  "a rate such as 40 GB/s");
  fields.positive("kernel_latency", host.kernel_latency, time_units, "a time such as 2 us");
  fields.finish();
}

}  // namespace

Result<Host> calibrated_host(const SourceTextPtr& calibration, Host of) {
  const Result<YamlDocument> document = read_yaml(calibration);
  if (!document) return tl::unexpected(document.error());
  const YamlNode* const node =
      document->root->is_mapping() ? document->root->find("host") : nullptr;
  if (node == nullptr) return of;
  Mistakes mistakes(calibration);
  read_rates(*node, of, mistakes);
  Diagnostics errors = std::move(mistakes).in_order();
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  of.source += ", calibrated";
  return of;
}

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
  Mistakes mistakes(source);
  for (const Diagnostic& mistake : document->mistakes) mistakes.add(mistake);
  read_fields(root, host, mistakes);
  Diagnostics errors = std::move(mistakes).in_order();
  for (const char* key : {"name", "memory", "cpu_flops", "memory_bandwidth"}) {
    if (root.find(key) != nullptr) continue;
    errors.push_back(
        {.message = fmt::format("the host lacks '{}'", key), .span = {source, 0, 0, 1}});
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
