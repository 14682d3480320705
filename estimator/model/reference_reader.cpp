#include "estimator/model/reference_reader.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace stowage {

namespace {

struct Path {
  std::string_view name;
  std::vector<int> numbers;  // after the dots
  bool sound = true;         // all of them are numbers
  bool all = false;          // ".*" stands at its end
};

Path split_path(std::string_view text) {
  constexpr std::size_t most_digits = 9;
  Path path;
  if (text.ends_with(".*")) {
    path.all = true;
    text.remove_suffix(2);
  }
  std::size_t dot = text.find('.');
  path.name = text.substr(0, dot);
  while (dot != std::string_view::npos) {
    const std::size_t begin = dot + 1;
    dot = text.find('.', begin);
    const std::string_view part =
        text.substr(begin, dot == std::string_view::npos ? dot : dot - begin);
    int number = 0;
    const auto [end, code] = std::from_chars(part.begin(), part.end(), number);
    if (part.empty() || part.size() > most_digits || code != std::errc() || end != part.end() ||
        number < 0) {
      path.sound = false;
      return path;
    }
    path.numbers.push_back(number);
  }
  return path;
}

}  // namespace

ReferenceReader::ReferenceReader(const Scope& scope, const ScopeContext& context,
                                 Mistakes& mistakes)
    : layers_(scope.layers), loss_(scope.loss), context_(context), mistakes_(mistakes) {
  layer_numbers_.reserve(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layer_numbers_.emplace(layers_[i].name, static_cast<int>(i));
  }
  if (context.block != nullptr) return;
  for (std::size_t i = 0; i < context.model.inputs.size(); ++i) {
    input_numbers_.emplace(context.model.inputs[i].name, static_cast<int>(i));
  }
}

std::vector<Reference> ReferenceReader::read(const YamlNode& node, std::string_view key) {
  std::vector<Reference> references;
  if (node.is_scalar()) {
    references.push_back(read_one(node));
    return references;
  }
  if (!node.is_sequence() || node.items.empty()) {
    mistakes_.error(node.mark,
                    fmt::format("'{}' takes a layer's name or a list of them, not {}", key,
                                node.is_sequence() ? "an empty list" : describe(node)));
    references.push_back({.mark = node.mark});
    return references;
  }
  references.reserve(node.items.size());
  for (const YamlNode* item : node.items) references.push_back(read_one(*item));
  return references;
}

Reference ReferenceReader::unknown(const YamlNode& node, std::string_view name) {
  std::vector<std::string_view> candidates;
  candidates.reserve(layers_.size() + input_numbers_.size() + 1);
  if (context_.block != nullptr) candidates.push_back("input");
  if (context_.block == nullptr) {
    for (const InputDeclaration& input : context_.model.inputs) candidates.push_back(input.name);
  }
  for (const LayerEntry& layer : layers_) candidates.push_back(layer.name);
  std::string where =
      context_.block != nullptr
          ? fmt::format("no layer of block {} is called '{}'", context_.block->name, name)
          : fmt::format("no layer or input is called '{}'", name);
  mistakes_.error(node.mark, std::move(where), mistakes_.suggest(name, candidates));
  return {.mark = node.mark};
}

/// Reads one name. It is an input of the block or model if it is called so, else a layer with an
/// instance and an output after its name; the loss is no layer that can be read.
Reference ReferenceReader::read_one(const YamlNode& node) {
  Reference reference{.mark = node.mark};
  if (!node.is_scalar()) {
    mistakes_.error(node.mark, fmt::format("expected a layer's name, found {}", describe(node)));
    return reference;
  }
  const Path path = split_path(node.text);
  const auto refuse = [&](std::string message, std::string hint) {
    mistakes_.error(node.mark, std::move(message), std::move(hint));
    return Reference{.mark = node.mark};
  };
  const bool is_block_input = context_.block != nullptr && path.name == "input";
  const auto input = input_numbers_.find(path.name);
  if (is_block_input || input != input_numbers_.end()) {
    if (!path.sound || path.numbers.size() > (is_block_input && !path.all ? 1u : 0u) ||
        (path.all && !is_block_input)) {
      return refuse(fmt::format("'{}' is not an input", node.text), "");
    }
    reference.kind = Reference::Kind::input;
    reference.all = path.all;
    if (!is_block_input) reference.index = input->second;
    if (is_block_input && !path.numbers.empty()) reference.index = path.numbers[0];
    return reference;
  }
  const auto layer = layer_numbers_.find(path.name);
  if (layer == layer_numbers_.end()) return unknown(node, path.name);
  const LayerEntry& entry = layers_[static_cast<std::size_t>(layer->second)];
  if (loss_ >= 0 && layer->second >= loss_) {
    return refuse("the loss is no layer's input", "");
  }
  const bool is_repeated = entry.repeat.has_value();
  if (path.all && (!is_repeated || !path.numbers.empty())) {
    return refuse(
        fmt::format("'{}' is of a repeated layer: all outputs of its instances", node.text),
        fmt::format("'{}' is not repeated", entry.name));
  }
  const std::size_t most_numbers = is_repeated ? 2 : 1;
  if (!path.sound || path.numbers.size() > most_numbers) {
    const bool inner = entry.block >= 0;
    return refuse(
        fmt::format("'{}' is not an output of '{}'", node.text, entry.name),
        inner ? "a block's inner layers are its own: list them in its 'output:' to use them here"
              : "");
  }
  reference.kind = Reference::Kind::layer;
  reference.index = layer->second;
  reference.all = path.all;
  std::size_t next = 0;
  if (entry.repeat && !path.numbers.empty()) reference.instance = path.numbers[next++];
  if (next < path.numbers.size()) reference.output = path.numbers[next];
  return reference;
}

Reference ReferenceReader::to_layer(std::size_t layer) const {
  return {.kind = Reference::Kind::layer,
          .index = static_cast<int>(layer),
          .implied = true,
          .mark = layers_[layer].mark};
}

std::vector<Reference> ReferenceReader::implied(std::size_t layer) const {
  const LayerEntry& entry = layers_[layer];
  if (entry.row != nullptr && entry.row->max_inputs == 0) return {};
  if (layer > 0) {
    Reference reference = to_layer(layer - 1);
    reference.mark = entry.mark;
    return {reference};
  }
  const bool has_input = context_.block != nullptr || !context_.model.inputs.empty();
  return {{.kind = has_input ? Reference::Kind::input : Reference::Kind::unknown,
           .index = context_.block != nullptr ? -1 : 0,
           .implied = true,
           .mark = entry.mark}};
}

}  // namespace stowage
