#include "estimator/huggingface/description_text.hpp"

#include <fmt/format.h>

#include <cctype>

namespace stowage {

namespace {

/// In double quotes, so that no character of a name is YAML's.
std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      result += ' ';
    } else {
      result += c;
    }
  }
  return result + '"';
}

void write_lines(std::string& text, const LayerLines& layers, std::string_view indent) {
  for (const std::string& line : layers.lines()) text += fmt::format("{}- {}\n", indent, line);
}

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string with_word_replaced(const std::string& text, std::string_view word,
                               std::string_view by) {
  std::string replaced;
  std::size_t from = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool whole =
        (at == 0 || !is_of_word(text[at - 1])) && (end == text.size() || !is_of_word(text[end]));
    if (!whole) continue;
    replaced.append(text, from, at - from).append(by);
    from = end;
  }
  return replaced.append(text, from);
}

}  // namespace

DescriptionText::DescriptionText(std::string name, std::string source)
    : name_(std::move(name)), source_(std::move(source)) {}

void DescriptionText::argument(std::string name, std::string value) {
  arguments_.emplace_back(std::move(name), std::move(value));
}
void DescriptionText::symbol(std::string name, std::string value) {
  symbols_.emplace_back(std::move(name), std::move(value));
}
void DescriptionText::input(std::string name, std::string type) {
  inputs_.emplace_back(std::move(name), std::move(type));
}
void DescriptionText::defaults(std::string op, std::string attributes) {
  defaults_.emplace_back(std::move(op), std::move(attributes));
}

LayerLines& DescriptionText::block(std::string name, std::vector<std::string> head) {
  blocks_.push_back({std::move(name), std::move(head), {}});
  return blocks_.back().layers;
}

std::string DescriptionText::text() const {
  std::string text =
      fmt::format("model: {}\nsource: {}\n", quoted_text(name_), quoted_text(source_));
  const auto section = [&](std::string_view title, const Entries& entries) {
    if (entries.empty()) return;
    text += fmt::format("{}:\n", title);
    for (const auto& [name, value] : entries) text += fmt::format("  {}: {}\n", name, value);
  };
  section("arguments", arguments_);
  section("symbols", symbols_);
  section("inputs", inputs_);
  section("defaults", defaults_);
  if (!blocks_.empty()) text += "blocks:\n";
  for (const Block& block : blocks_) {
    text += fmt::format("  {}:\n", block.name);
    for (const std::string& line : block.head) text += fmt::format("    {}\n", line);
    text += "    layers:\n";
    write_lines(text, block.layers, "      ");
  }
  text += "layers:\n";
  write_lines(text, layers_, "  ");
  if (!output_.empty()) text += fmt::format("output: {}\n", output_);
  if (!loss_.empty()) text += fmt::format("loss:\n  {}\n", loss_);
  if (!train_.empty()) text += fmt::format("train: {{{}}}\n", train_);
  return fixed_batch_.empty() ? text : with_word_replaced(text, "batch", fixed_batch_);
}

}  // namespace stowage
