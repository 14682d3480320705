#include "estimator/card/measurement_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace stowage {

namespace {

constexpr std::array<std::string_view, 7> measurement_keys{"runtime", "cuda",  "loading", "context",
                                                           "cublas",  "cudnn", "source"};

/// One entry of the list.
class Entry {
 public:
  Entry(const SourceTextPtr& source, const YamlNode& node, Diagnostics& errors)
      : source_(source), node_(node), errors_(errors) {}

  ProcessMeasurement read() {
    for (std::size_t i = 0; i < node_.entry_count(); ++i) {
      const YamlNode& key = node_.key(i);
      if (std::ranges::find(measurement_keys, std::string_view(key.text)) != measurement_keys.end())
        continue;
      errors_.push_back(
          {.message = fmt::format("unknown key '{}' in a measurement", key.text),
           .span = span_of(source_, key.mark),
           .hint = did_you_mean(key.text, {measurement_keys.begin(), measurement_keys.end()})});
    }
    ProcessMeasurement result;
    result.runtime = runtime();
    if (const auto cuda = text("cuda", true)) set_cuda(*cuda, result);
    result.context = size("context");
    result.cublas = size("cublas");
    result.cudnn = size("cudnn");
    if (const auto said = text("source", true)) result.source = said->text;
    if (!result.context && !result.cublas && !result.cudnn) {
      wrong(node_, "a measurement has at least one of context, cublas and cudnn");
    }
    return result;
  }

 private:
  void wrong(const YamlNode& at, std::string message) {
    errors_.push_back({.message = std::move(message), .span = span_of(source_, at.mark)});
  }

  struct Text {
    const YamlNode& node;
    const std::string& text;
  };
  std::optional<Text> text(std::string_view key, bool required) {
    const YamlNode* value = node_.find(key);
    if (value == nullptr) {
      if (required) wrong(node_, fmt::format("the measurement lacks '{}'", key));
      return std::nullopt;
    }
    if (!value->is_scalar() || value->text.empty()) {
      wrong(*value, fmt::format("'{}' takes one plain value, not {}", key, describe(*value)));
      return std::nullopt;
    }
    return Text{*value, value->text};
  }

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

  const SourceTextPtr& source_;
  const YamlNode& node_;
  Diagnostics& errors_;
};

}  // namespace

std::vector<ProcessMeasurement> read_measurements(const SourceTextPtr& source, const YamlNode& list,
                                                  Diagnostics& errors) {
  std::vector<ProcessMeasurement> result;
  if (!list.is_sequence()) {
    errors.push_back({.message = "'measurements' is a list, not " + describe(list),
                      .span = span_of(source, list.mark)});
    return result;
  }
  for (const YamlNode* item : list.items) {
    if (item->is_mapping()) {
      result.push_back(Entry(source, *item, errors).read());
    } else {
      errors.push_back(
          {.message = "a measurement is a mapping of keys to values, not " + describe(*item),
           .span = span_of(source, item->mark)});
    }
  }
  return result;
}

}  // namespace stowage
