#include "estimator/model/scope_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

#include "estimator/model/attributes_reader.hpp"
#include "estimator/model/expand.hpp"
#include "estimator/model/modules_reader.hpp"
#include "estimator/model/reference_reader.hpp"

namespace stowage {

namespace {

constexpr std::string_view layer_keys[] = {
    "name", "from",   "repeat",     "dense",     "when",
    "tie",  "frozen", "checkpoint", "precision", "parameter_names"};

bool is_layer_key(std::string_view key) {
  return std::find(std::begin(layer_keys), std::end(layer_keys), key) != std::end(layer_keys);
}

class ScopeReader {
 public:
  ScopeReader(const ScopeContext& context, Mistakes& mistakes)
      : context_(context), mistakes_(mistakes), attributes_(context, names_, mistakes) {
    if (context.block != nullptr) names_.block = context.block->argument_names;
    names_.model = context.model.value_names;
  }

  Scope read(const ScopeNodes& nodes) {
    if (nodes.layers != nullptr && has_room(nodes.layers->items)) {
      scope_.layers.reserve(nodes.layers->items.size() + 1);
      name_marks_.reserve(nodes.layers->items.size() + 1);
      for (const YamlNode* node : nodes.layers->items) read_layer(*node, "");
    }
    if (nodes.modules != nullptr) read_modules(*nodes.modules, scope_, mistakes_);
    const std::size_t layers = scope_.layers.size();
    if (nodes.loss != nullptr) read_losses(*nodes.loss);
    if (scope_.layers.size() > layers) scope_.loss = static_cast<int>(layers);
    for (std::size_t i = layers; i < scope_.layers.size(); ++i) {
      if (const auto& checkpoint = scope_.layers[i].checkpoint) {
        mistakes_.error(checkpoint->mark, "a loss is not checkpointed",
                        "put 'checkpoint: true' on layers or blocks");
      }
    }
    ReferenceReader references(scope_, context_, mistakes_);
    for (std::size_t i = 0; i < scope_.layers.size(); ++i) {
      LayerEntry& entry = scope_.layers[i];
      entry.from = from_nodes_[i] != nullptr ? references.read(*from_nodes_[i], "from")
                                             : references.implied(i);
    }
    if (nodes.output != nullptr) {
      scope_.outputs = references.read(*nodes.output, "output");
    } else if (layers > 0) {
      scope_.outputs = {references.to_layer(layers - 1)};
    }
    return std::move(scope_);
  }

 private:
  // More layers in a list than a model may have are refused before they are read.
  template <typename Items>
  bool has_room(const Items& items) {
    if (items.size() <= static_cast<std::size_t>(most_operators)) return true;
    mistakes_.error(items[static_cast<std::size_t>(most_operators)]->mark,
                    fmt::format("the model has more than {} layers", most_operators));
    return false;
  }

  // One loss, called "loss", or a list of them, whose sum is.
  void read_losses(const YamlNode& node) {
    const bool nothing =
        node.kind == YamlNode::Kind::null || (node.is_sequence() && node.items.empty());
    if (nothing) {
      mistakes_.error(node.mark,
                      fmt::format("'loss' takes a loss or a list of them, not {}",
                                  node.is_sequence() ? "an empty one" : "nothing"),
                      "such as 'loss: {mse: {from: [output, target]}}'");
      return;
    }
    if (!node.is_sequence()) return read_layer(node, "loss");
    scope_.layers.reserve(scope_.layers.size() + node.items.size());
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      read_layer(*node.items[i], fmt::format("loss_{}", i + 1));
    }
  }

  void read_layer(const YamlNode& node, std::string_view default_name) {
    const YamlNode* body = nullptr;
    const YamlNode* head = &node;
    if (node.is_mapping() && node.entry_count() > 0) {
      head = &node.key(0);
      body = &node.value(0);
      if (node.entry_count() > 1) refuse_second_key(node);
    } else if (!node.is_scalar()) {
      mistakes_.error(node.mark,
                      fmt::format("expected an operator or a block, found {}", describe(node)),
                      "a layer is 'relu' or 'relu: {name: a}'");
      return;
    }
    LayerEntry entry{.mark = head->mark};
    entry.row = find_operator(head->text);
    if (entry.row == nullptr) find_block(head->text, entry);
    if (entry.row != nullptr && entry.row->is_loss && default_name.empty()) {
      mistakes_.error(head->mark, fmt::format("{} is a loss, not a layer", head->text),
                      "put it under 'loss:'");
      entry.broken = true;
    }
    if (body != nullptr && !body->is_mapping()) {
      if (body->kind != YamlNode::Kind::null) {
        mistakes_.error(
            body->mark,
            fmt::format("expected the attributes of {}, found {}", head->text, describe(*body)),
            fmt::format("write '{}: {{attribute: value}}'", head->text));
        entry.broken = true;
      }
      body = nullptr;
    }
    name_layer(entry, *head, body, default_name);
    from_nodes_.push_back(body != nullptr ? body->find("from") : nullptr);
    if (body != nullptr) read_common(*body, entry);
    if (entry.row != nullptr) {
      attributes_.read(body, entry);
    } else if (entry.block >= 0) {
      read_arguments(body, entry);
    }
    scope_.layers.push_back(std::move(entry));
  }

  void refuse_second_key(const YamlNode& node) {
    mistakes_.error(node.key(1).mark,
                    fmt::format("'{}' stands beside '{}': a layer is one 'operator: attributes'",
                                node.key(1).text, node.key(0).text),
                    "indent the attributes below the operator, or put them in {}");
  }

  void find_block(const std::string& name, LayerEntry& entry) {
    const auto found = context_.blocks.find(name);
    if (found != context_.blocks.end()) {
      entry.block = found->second;
      return;
    }
    entry.broken = true;
    std::vector<std::string_view> candidates;
    for (const OperatorRow& row : operator_catalogue()) candidates.push_back(row.name);
    for (const Block& block : context_.model.blocks) candidates.push_back(block.name);
    mistakes_.error(entry.mark, fmt::format("unknown operator or block '{}'", name),
                    mistakes_.suggest(name, candidates));
  }

  // An unnamed layer is named after its operator and a count within the scope.
  void name_layer(LayerEntry& entry, const YamlNode& head, const YamlNode* body,
                  std::string_view default_name) {
    const int number = ++counts_[head.text];
    Mark mark = entry.mark;
    const YamlNode* given = body != nullptr ? body->find("name") : nullptr;
    if (given != nullptr) {
      mark = given->mark;
      if (given->is_scalar() && is_layer_name(given->text)) {
        entry.name = given->text;
      } else {
        mistakes_.error(mark, fmt::format("{} is not a name", describe(*given)),
                        layer_name_hint(given->text));
      }
    }
    if (entry.name.empty()) {
      entry.name = default_name.empty() ? fmt::format("{}_{}", head.text, number)
                                        : std::string(default_name);
    }
    if (context_.block != nullptr && entry.name == "input") {
      mistakes_.error(mark, "'input' is the input of the block, not a layer's name");
    }
    if (context_.block == nullptr) {
      for (const InputDeclaration& input : context_.model.inputs) {
        if (input.name != entry.name) continue;
        mistakes_.error(mark, fmt::format("'{}' is the name of an input", entry.name))
            .notes.push_back(mistakes_.note(input.mark, "declared here"));
      }
    }
    const auto [first, fresh] = name_marks_.emplace(entry.name, mark);
    if (!fresh) {
      mistakes_.error(mark, fmt::format("two layers are called '{}'", entry.name))
          .notes.push_back(mistakes_.note(first->second, "the first is here"));
    }
  }

  void read_common(const YamlNode& body, LayerEntry& entry) {
    const ValueRules rules{.names = names_};
    const auto read = [&](std::string_view key, std::optional<WrittenValue>& into) {
      const YamlNode* node = body.find(key);
      if (node == nullptr) return;
      into = read_value(*node, key, rules, mistakes_);
      if (!into) entry.broken = true;
    };
    read("repeat", entry.repeat);
    read_dense(body, entry);
    read("when", entry.when);
    read("frozen", entry.frozen);
    read("checkpoint", entry.checkpoint);
    if (const YamlNode* names = body.find("parameter_names")) read_parameter_names(*names, entry);
    read_type(body, entry);
    const YamlNode* tie = body.find("tie");
    if (tie == nullptr) return;
    if (!tie->is_mapping() || entry.block >= 0) {
      mistakes_.error(tie->mark,
                      entry.block >= 0
                          ? std::string("a block has no parameters of its own to tie")
                          : fmt::format("expected a mapping, found {}", describe(*tie)),
                      "write 'tie: {weight: other_layer.weight}'");
      return;
    }
    for (std::size_t i = 0; i < tie->entry_count(); ++i) {
      if (!tie->value(i).is_scalar()) {
        mistakes_.error(tie->value(i).mark, fmt::format("expected a parameter's name, found {}",
                                                        describe(tie->value(i))));
        continue;
      }
      entry.ties.push_back(
          {tie->key(i).text, tie->value(i).text, tie->key(i).mark, tie->value(i).mark});
    }
  }

  void read_dense(const YamlNode& body, LayerEntry& entry) {
    const YamlNode* const node = body.find("dense");
    if (node == nullptr) return;
    const bool is_true = node->is_scalar() && node->text == "true";
    if (!is_true && !(node->is_scalar() && node->text == "false")) {
      mistakes_.error(node->mark, "'dense' is true or false");
      entry.broken = true;
    } else if (is_true && !entry.repeat) {
      mistakes_.error(node->mark, "'dense' says what a repeated layer takes, and this one is not",
                      "write 'repeat: N' beside it");
      entry.broken = true;
    }
    entry.dense = is_true;
  }

  // A repeated layer or a block would give all its parameters one name.
  void read_parameter_names(const YamlNode& node, LayerEntry& entry) {
    const bool stands_alone = context_.block == nullptr && entry.block < 0 && !entry.repeat;
    if (!node.is_mapping() || !stands_alone) {
      mistakes_.error(node.mark,
                      stands_alone ? fmt::format("expected a mapping, found {}", describe(node))
                                   : std::string("'parameter_names' is for single layers, outside "
                                                 "of blocks and without 'repeat'"),
                      "write 'parameter_names: {weight: layer1.0.conv1.weight}'");
      return;
    }
    for (std::size_t i = 0; i < node.entry_count(); ++i) {
      const YamlNode& name = node.value(i);
      if (name.is_scalar() && !name.text.empty()) {
        entry.parameter_names.push_back({node.key(i).text, name.text, node.key(i).mark});
      } else {
        mistakes_.error(name.mark,
                        fmt::format("expected a parameter's name, found {}", describe(name)));
      }
    }
  }

  void read_type(const YamlNode& body, LayerEntry& entry) {
    const YamlNode* node = body.find("precision");
    if (node == nullptr) return;
    if (node->is_scalar()) entry.type = parse_format_word(node->text);
    if (entry.type) return;
    mistakes_.error(node->mark, fmt::format("'precision' of a layer takes {}, not {}",
                                            format_words_text, describe(*node)));
    entry.broken = true;
  }

  void read_arguments(const YamlNode* body, LayerEntry& entry) {
    const Block& block = context_.model.blocks[static_cast<std::size_t>(entry.block)];
    std::set<std::string_view> settled;
    for (std::size_t i = 0; body != nullptr && i < body->entry_count(); ++i) {
      const YamlNode& key = body->key(i);
      if (is_layer_key(key.text)) continue;
      const auto found =
          std::find(block.argument_names.begin(), block.argument_names.end(), key.text);
      if (found == block.argument_names.end()) {
        refuse_argument(block, key, settled);
        entry.broken = true;
        continue;
      }
      settled.insert(*found);
      const auto number = found - block.argument_names.begin();
      const ValueRules rules{
          .names = names_,
          .any_word = block.arguments[static_cast<std::size_t>(number)].takes_words};
      auto value = read_value(body->value(i), key.text, rules, mistakes_);
      if (!value) entry.broken = true;
      if (value) entry.arguments.push_back({static_cast<int>(number), std::move(*value)});
    }
    std::vector<std::string_view> missing;
    for (const ArgumentDeclaration& argument : block.arguments) {
      if (!argument.default_value && !settled.contains(argument.name)) {
        missing.push_back(argument.name);
      }
    }
    if (missing.empty()) return;
    entry.broken = true;
    mistakes_
        .error(entry.mark, fmt::format("{} needs '{}'", block.name, fmt::join(missing, "' and '")))
        .notes.push_back(mistakes_.note(block.mark, "the block is here"));
  }

  void refuse_argument(const Block& block, const YamlNode& key,
                       std::set<std::string_view>& settled) {
    std::vector<std::string_view> candidates(block.argument_names.begin(),
                                             block.argument_names.end());
    candidates.insert(candidates.end(), std::begin(layer_keys), std::end(layer_keys));
    if (const auto meant = closest(key.text, candidates)) settled.insert(*meant);
    mistakes_
        .error(key.mark, fmt::format("unknown argument '{}' of block {}", key.text, block.name),
               mistakes_.suggest(key.text, candidates))
        .notes.push_back(mistakes_.note(block.mark, "the block is here"));
  }

  const ScopeContext& context_;
  Mistakes& mistakes_;
  ExpressionNames names_;
  AttributesReader attributes_;  // reads names_
  Scope scope_;
  std::vector<const YamlNode*> from_nodes_;  // of each layer, or null
  std::unordered_map<std::string, int> counts_;
  std::unordered_map<std::string, Mark> name_marks_;
};

}  // namespace

Scope read_scope(const ScopeNodes& nodes, const ScopeContext& context, Mistakes& mistakes) {
  return ScopeReader(context, mistakes).read(nodes);
}

std::span<const std::string_view> common_layer_keys() { return layer_keys; }

}  // namespace stowage
