#include "estimator/import/write_description.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "estimator/base/printable.hpp"

namespace stowage {

namespace {

bool is_plain(std::string_view text) {
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
         std::ranges::all_of(text, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' ||
                  c == '-' || c == '/';
         });
}

// A YAML scalar for any text, with escapes for control characters.
std::string scalar(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string quoted = "'";
  for (const char c : printable_line(text)) {
    if (c == '\'') quoted.push_back('\'');
    quoted.push_back(c);
  }
  return quoted + "'";
}

// A description's texts have 4096 bytes at most; an escape of one byte has four.
constexpr std::size_t longest_import_text = 1000;

std::string_view name_of_model(std::string_view text) {
  return text.empty() ? std::string_view("model") : text.substr(0, longest_import_text);
}

std::string mapping(const std::vector<NamedText>& entries) {
  std::string text;
  for (const auto& [key, value] : entries) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, scalar(value));
  }
  return fmt::format("{{{}}}", text);
}

class DescriptionWriter {
 public:
  DescriptionWriter(const LayerList& layers, const DescriptionFrame& frame)
      : layers_(layers), frame_(frame), needed_(needed_layers(layers, frame)) {}

  std::string write() {
    text_ = fmt::format("model: {}\n", scalar(name_of_model(frame_.model)));
    if (!frame_.source.empty())
      text_ += fmt::format("source: {}\n",
                           scalar(std::string_view(frame_.source).substr(0, longest_import_text)));
    if (!frame_.symbols.empty()) {
      std::vector<std::string> symbols;
      for (const auto& [name, value] : frame_.symbols) {
        symbols.push_back(fmt::format("{}: {}", name, value));
      }
      text_ += fmt::format("symbols: {{{}}}\n", fmt::join(symbols, ", "));
    }
    write_inputs();
    text_ += "layers:\n";
    for (int i = 0; i < layers_.count(); ++i) {
      if (needed_[static_cast<std::size_t>(i)] && !layers_.at(i).is_input) write_layer(i);
    }
    text_ += fmt::format("output: {}\n", reference(frame_.output));
    write_losses();
    if (!frame_.train.empty()) {
      std::vector<std::string> entries;
      for (const auto& [key, value] : frame_.train) {
        entries.push_back(fmt::format("{}: {}", key, value));
      }
      text_ += fmt::format("train: {{{}}}\n", fmt::join(entries, ", "));
    }
    return std::move(text_);
  }

 private:
  [[nodiscard]] std::string reference(const LayerOutput& output) const {
    const ImportedLayer& layer = layers_.at(output.layer);
    if (layer.outputs.size() == 1) return layer.name;
    return fmt::format("{}.{}", layer.name, output.output);
  }

  [[nodiscard]] std::string references(const std::vector<LayerOutput>& from) const {
    if (from.size() == 1) return reference(from[0]);
    std::vector<std::string> names;
    for (const LayerOutput& output : from) names.push_back(reference(output));
    return fmt::format("[{}]", fmt::join(names, ", "));
  }

  void write_inputs() {
    text_ += "inputs:\n";
    for (int i = 0; i < layers_.count(); ++i) {
      const ImportedLayer& layer = layers_.at(i);
      if (!needed_[static_cast<std::size_t>(i)] || !layer.is_input) continue;
      const TensorType& type = layer.outputs[0];
      const std::string format =
          type.type == DataType::float32 ? "" : fmt::format(", dtype: {}", to_string(type.type));
      text_ += fmt::format("  {}: {{shape: {}{}}}\n", layer.name, to_string(type.shape), format);
    }
  }

  void write_layer(int number) {
    const ImportedLayer& layer = layers_.at(number);
    std::string entries = fmt::format("name: {}", layer.name);
    // The layer before it is read without a `from`; the first layer reads the first input.
    if (!layer.from.empty()) entries += fmt::format(", from: {}", references(layer.from));
    for (const auto& [key, value] : layer.given) {
      entries += fmt::format(", {}: {}", key, to_string(value));
    }
    if (!layer.ties.empty()) entries += fmt::format(", tie: {}", mapping(layer.ties));
    if (!layer.parameter_names.empty()) {
      entries += fmt::format(", parameter_names: {}", mapping(layer.parameter_names));
    }
    if (layer.frozen) entries += ", frozen: true";
    text_ += fmt::format("  - {}: {{{}}}\n", layer.row->name, entries);
  }

  void write_losses() {
    if (frame_.losses.empty()) return;
    text_ += "loss:\n";
    for (const ImportedLoss& loss : frame_.losses) {
      std::string entries = fmt::format("from: {}", references(loss.from));
      for (const auto& [key, value] : loss.given) {
        entries += fmt::format(", {}: {}", key, to_string(value));
      }
      text_ +=
          fmt::format("  {}{}: {{{}}}\n", frame_.losses.size() > 1 ? "- " : "", loss.row, entries);
    }
  }

  const LayerList& layers_;
  const DescriptionFrame& frame_;
  std::vector<bool> needed_;
  std::string text_;
};

}  // namespace

std::vector<bool> needed_layers(const LayerList& layers, const DescriptionFrame& frame) {
  std::vector<bool> needed(static_cast<std::size_t>(layers.count()));
  std::vector<int> open;
  const auto want = [&](const LayerOutput& output) {
    if (!output.valid() || needed[static_cast<std::size_t>(output.layer)]) return;
    needed[static_cast<std::size_t>(output.layer)] = true;
    open.push_back(output.layer);
  };
  want(frame.output);
  for (const ImportedLoss& loss : frame.losses) std::ranges::for_each(loss.from, want);
  while (!open.empty()) {
    const int layer = open.back();
    open.pop_back();
    std::ranges::for_each(layers.at(layer).from, want);
  }
  return needed;
}

std::string write_description(const LayerList& layers, const DescriptionFrame& frame) {
  return DescriptionWriter(layers, frame).write();
}

}  // namespace stowage
