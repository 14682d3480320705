#include "estimator/card/measurement_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "estimator/text/field_reader.hpp"

namespace stowage {

namespace {

constexpr Presence optional = Presence::optional, required = Presence::required;

std::optional<Bytes> size(FieldReader& fields, std::string_view key) {
  Bytes bytes;
  return fields.size(key, bytes, optional, "470 MiB") ? std::optional(bytes) : std::nullopt;
}

Runtime read_runtime(FieldReader& fields) {
  std::string name;
  if (!fields.word("runtime", name, required)) return default_runtime;
  const auto found = find_runtime(name);
  if (found && traits(*found).has_process) return *found;
  fields.wrong(*fields.find("runtime"),
               fmt::format("'runtime' is pytorch, tensorflow or stowage, not '{}'", name));
  return default_runtime;
}

void read_stack(FieldReader& fields, ProcessMeasurement& result) {
  std::string cuda, loading;
  const bool has_cuda = fields.word("cuda", cuda, required);
  const bool has_loading = fields.word("loading", loading, optional);
  if (!has_cuda) return;
  const auto version = parse_version(cuda);
  if (!version) {
    fields.wrong(*fields.find("cuda"),
                 fmt::format("'cuda' is a version such as 12.1, not '{}'", cuda));
    return;
  }
  result.stack = {*version, usual_loading(*version, result.runtime)};
  if (!has_loading) return;
  const YamlNode& written = *fields.find("loading");
  if (loading == "lazy" && *version < first_lazy_cuda) {
    fields.wrong(written, fmt::format("CUDA {} loads eagerly; lazy loading came with {}", cuda,
                                      to_string(first_lazy_cuda)));
  } else if (loading == "lazy" || loading == "eager") {
    result.stack.loading = loading == "lazy" ? ModuleLoading::lazy : ModuleLoading::eager;
  } else {
    fields.wrong(written, fmt::format("'loading' is lazy or eager, not '{}'", loading));
  }
}

void read_entry(const YamlNode& node, FieldReader& fields, ProcessMeasurement& result) {
  result.runtime = read_runtime(fields);
  read_stack(fields, result);
  result.context = size(fields, "context");
  result.cublas = size(fields, "cublas");
  result.cudnn = size(fields, "cudnn");
  fields.word("source", result.source, required);
  if (!result.context && !result.cublas && !result.cudnn) {
    fields.wrong(node, "a measurement has at least one of context, cublas and cudnn");
  }
}

void read_entry(const YamlNode& node, FieldReader& fields, ObservedTotal& result) {
  result.nvml = size(fields, "nvml");
  result.cuda = size(fields, "cuda");
  fields.word("source", result.source, required);
  if (!result.nvml && !result.cuda) {
    fields.wrong(node, "an observed total has at least one of nvml and cuda");
  }
}

std::optional<double> share(FieldReader& fields, std::string_view key) {
  constexpr double least = 1e-6, most = 100;
  double value = 0;
  return fields.real(key, value, optional, "a share above 0, such as 0.8", least, most)
             ? std::optional(value)
             : std::nullopt;
}

void read_entry(const YamlNode& node, FieldReader& fields, KernelShare& result) {
  fields.choice("kind", all_kernel_kinds, result.kind);
  result.arithmetic = share(fields, "arithmetic");
  result.bandwidth = share(fields, "bandwidth");
  if (!result.arithmetic && !result.bandwidth) {
    fields.wrong(node, "a kernel share has at least one of arithmetic and bandwidth");
  }
}

/// `name`: the list's key; `noun`: one of its entries.
template <typename Entry>
std::vector<Entry> read_list(const YamlNode& list, std::string_view name, std::string_view noun,
                             Mistakes& mistakes) {
  std::vector<Entry> result;
  if (!list.is_sequence()) {
    mistakes.error(list.mark, fmt::format("'{}' is a list, not {}", name, describe(list)));
    return result;
  }
  for (const YamlNode* item : list.items) {
    if (!item->is_mapping()) {
      mistakes.error(item->mark, fmt::format("{} is a mapping of keys to values, not {}", noun,
                                             describe(*item)));
      continue;
    }
    FieldReader fields(*item, {.of = noun, .file = noun, .refusal = FieldWords::Refusal::is_not},
                       mistakes);
    read_entry(*item, fields, result.emplace_back());
    fields.finish();
  }
  return result;
}

}  // namespace

std::vector<ProcessMeasurement> read_measurements(const YamlNode& list, Mistakes& mistakes) {
  return read_list<ProcessMeasurement>(list, "measurements", "a measurement", mistakes);
}

std::vector<ObservedTotal> read_observed_totals(const YamlNode& list, Mistakes& mistakes) {
  return read_list<ObservedTotal>(list, "observed_totals", "an observed total", mistakes);
}

std::vector<KernelShare> read_kernel_shares(const YamlNode& list, Mistakes& mistakes) {
  std::vector<KernelShare> shares =
      read_list<KernelShare>(list, "kernel_shares", "a kernel share", mistakes);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const auto same = std::ranges::find(shares, shares[i].kind, &KernelShare::kind);
    if (same == shares.begin() + static_cast<std::ptrdiff_t>(i)) continue;
    mistakes.error(list.mark,
                   fmt::format("'kernel_shares' has '{}' twice", to_string(shares[i].kind)));
    return {};
  }
  return shares;
}

}  // namespace stowage
