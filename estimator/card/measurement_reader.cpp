#include "estimator/card/measurement_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace stowage {

namespace {

/// One entry of a list in a card file: a mapping of plain values.
class Entry {
 public:
  /// `noun`: "a measurement", in messages.
  Entry(std::string_view noun, const SourceTextPtr& source, const YamlNode& node,
        Diagnostics& errors)
      : noun_(noun), source_(source), node_(node), errors_(errors) {}

  void refuse_unknown_keys(std::span<const std::string_view> keys) {
    for (std::size_t i = 0; i < node_.entry_count(); ++i) {
      const YamlNode& key = node_.key(i);
      if (std::ranges::find(keys, std::string_view(key.text)) != keys.end()) continue;
      errors_.push_back({.message = fmt::format("unknown key '{}' in {}", key.text, noun_),
                         .span = span_of(source_, key.mark),
                         .hint = did_you_mean(key.text, {keys.begin(), keys.end()})});
    }
  }

  void wrong(const YamlNode& at, std::string message) {
    errors_.push_back({.message = std::move(message), .span = span_of(source_, at.mark)});
  }
  void wrong(std::string message) { wrong(node_, std::move(message)); }

  struct Text {
    const YamlNode& node;
    const std::string& text;
  };
  std::optional<Text> text(std::string_view key, bool required) {
    const YamlNode* value = node_.find(key);
    if (value == nullptr) {
      if (required) wrong(node_, fmt::format("{} lacks '{}'", noun_, key));
      return std::nullopt;
    }
    if (!value->is_scalar() || value->text.empty()) {
      wrong(*value, fmt::format("'{}' takes one plain value, not {}", key, describe(*value)));
      return std::nullopt;
    }
    return Text{*value, value->text};
  }

  std::optional<Bytes> size(std::string_view key) {
    const auto written = text(key, false);
    if (!written) return std::nullopt;
    const auto bytes = parse_bytes(written->text);
    if (!bytes) {
      wrong(written->node,
            fmt::format("'{}' is not a size such as 470 MiB: '{}'", key, written->text));
      return std::nullopt;
    }
    return *bytes;
  }

 private:
  std::string_view noun_;
  const SourceTextPtr& source_;
  const YamlNode& node_;
  Diagnostics& errors_;
};

class MeasurementEntry : private Entry {
 public:
  static constexpr std::string_view list = "measurements", noun = "a measurement";

  MeasurementEntry(const SourceTextPtr& source, const YamlNode& node, Diagnostics& errors)
      : Entry(noun, source, node, errors) {}

  ProcessMeasurement read() {
    constexpr std::array<std::string_view, 7> keys{"runtime", "cuda",  "loading", "context",
                                                   "cublas",  "cudnn", "source"};
    refuse_unknown_keys(keys);
    ProcessMeasurement result;
    result.runtime = runtime();
    if (const auto cuda = text("cuda", true)) set_cuda(*cuda, result);
    result.context = size("context");
    result.cublas = size("cublas");
    result.cudnn = size("cudnn");
    if (const auto said = text("source", true)) result.source = said->text;
    if (!result.context && !result.cublas && !result.cudnn) {
      wrong("a measurement has at least one of context, cublas and cudnn");
    }
    return result;
  }

 private:
  Runtime runtime() {
    const auto name = text("runtime", true);
    if (!name) return Runtime::pytorch;
    const auto found = find_runtime(name->text);
    if (found && *found != Runtime::ideal) return *found;
    wrong(name->node,
          fmt::format("'runtime' is pytorch, tensorflow or stowage, not '{}'", name->text));
    return Runtime::pytorch;
  }

  void set_cuda(const Text& cuda, ProcessMeasurement& result) {
    const auto version = parse_version(cuda.text);
    if (!version) {
      wrong(cuda.node, fmt::format("'cuda' is a version such as 12.1, not '{}'", cuda.text));
      return;
    }
    result.stack = {*version, usual_loading(*version, result.runtime)};
    const auto loading = text("loading", false);
    if (!loading) return;
    if (loading->text == "lazy" && *version < first_lazy_cuda) {
      wrong(loading->node, fmt::format("CUDA {} loads eagerly; lazy loading came with {}",
                                       cuda.text, to_string(first_lazy_cuda)));
    } else if (loading->text == "lazy" || loading->text == "eager") {
      result.stack.loading = loading->text == "lazy" ? ModuleLoading::lazy : ModuleLoading::eager;
    } else {
      wrong(loading->node, fmt::format("'loading' is lazy or eager, not '{}'", loading->text));
    }
  }
};

class ObservedTotalEntry : private Entry {
 public:
  static constexpr std::string_view list = "observed_totals", noun = "an observed total";

  ObservedTotalEntry(const SourceTextPtr& source, const YamlNode& node, Diagnostics& errors)
      : Entry(noun, source, node, errors) {}

  ObservedTotal read() {
    constexpr std::array<std::string_view, 3> keys{"nvml", "cuda", "source"};
    refuse_unknown_keys(keys);
    ObservedTotal result{.nvml = size("nvml"), .cuda = size("cuda")};
    if (const auto said = text("source", true)) result.source = said->text;
    if (!result.nvml && !result.cuda) wrong("an observed total has at least one of nvml and cuda");
    return result;
  }
};

template <typename EntryReader>
auto read_list(const SourceTextPtr& source, const YamlNode& list, Diagnostics& errors) {
  std::vector<decltype(EntryReader(source, list, errors).read())> result;
  if (!list.is_sequence()) {
    errors.push_back(
        {.message = fmt::format("'{}' is a list, not {}", EntryReader::list, describe(list)),
         .span = span_of(source, list.mark)});
    return result;
  }
  for (const YamlNode* item : list.items) {
    if (item->is_mapping()) {
      result.push_back(EntryReader(source, *item, errors).read());
    } else {
      errors.push_back({.message = fmt::format("{} is a mapping of keys to values, not {}",
                                               EntryReader::noun, describe(*item)),
                        .span = span_of(source, item->mark)});
    }
  }
  return result;
}

}  // namespace

std::vector<ProcessMeasurement> read_measurements(const SourceTextPtr& source, const YamlNode& list,
                                                  Diagnostics& errors) {
  return read_list<MeasurementEntry>(source, list, errors);
}

std::vector<ObservedTotal> read_observed_totals(const SourceTextPtr& source, const YamlNode& list,
                                                Diagnostics& errors) {
  return read_list<ObservedTotalEntry>(source, list, errors);
}

}  // namespace stowage
