#include "estimator/model/description_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "estimator/base/name_match.hpp"
#include "estimator/model/block_nesting.hpp"
#include "estimator/model/inputs_reader.hpp"
#include "estimator/model/model_values_reader.hpp"
#include "estimator/model/scope_reader.hpp"
#include "estimator/model/sections.hpp"

namespace stowage {

namespace {

constexpr std::string_view top_keys[] = {"model",    "source", "arguments", "symbols", "inputs",
                                         "defaults", "blocks", "layers",    "output",  "loss",
                                         "train",    "pins",   "modules"};
constexpr std::string_view block_keys[] = {"arguments", "layers", "output", "modules"};
class DescriptionReader {
 public:
  DescriptionReader(const YamlNode& root, const ModelOptions& options, Mistakes& mistakes)
      : root_(root), options_(options), mistakes_(mistakes) {}

  ModelDescription read() {
    refuse_unknown_keys(root_, top_keys, "the description", mistakes_);
    read_texts();
    read_model_values(root_, options_, model_, mistakes_);
    read_inputs(root_, model_, mistakes_);
    declare_blocks();
    read_defaults_section();
    read_block_scopes();
    refuse_recursion(model_.blocks, mistakes_);
    read_layers();
    if (const YamlNode* train = find_section(root_, "train", mistakes_)) {
      model_.train = read_train(*train, model_, mistakes_);
    }
    if (const YamlNode* pins = find_section(root_, "pins", mistakes_)) {
      model_.pins = read_pins(*pins, mistakes_);
    }
    return std::move(model_);
  }

 private:
  void read_texts() {
    const auto read = [&](std::string_view key, std::string& into) {
      const YamlNode* node = root_.find(key);
      if (node == nullptr) return;
      if (node->is_scalar())
        into = node->text;
      else
        mistakes_.error(node->mark, fmt::format("'{}' takes a word, not {}", key, describe(*node)));
    };
    read("model", model_.name);
    read("source", model_.source);
    const YamlNode* name = root_.find("model");
    if (name != nullptr && name->is_scalar() && name->text.empty()) {
      mistakes_.error(name->mark, "'model' is an empty name");
    }
    if (name == nullptr) {
      mistakes_.error(root_.mark, "the description has no 'model: name'");
    }
  }

  void declare_blocks() {
    const YamlNode* node = find_section(root_, "blocks", mistakes_);
    if (node == nullptr) return;
    model_.blocks.reserve(node->entry_count());
    for (std::size_t i = 0; i < node->entry_count(); ++i) {
      const YamlNode& key = node->key(i);
      Block block{.name = key.text, .mark = key.mark};
      if (!is_layer_name(key.text)) {
        mistakes_.error(key.mark, fmt::format("'{}' is not a name", key.text),
                        layer_name_hint(key.text));
      } else if (find_operator(key.text) != nullptr) {
        mistakes_.error(key.mark, fmt::format("'{}' is the name of an operator", key.text));
      }
      if (node->value(i).is_mapping()) {
        refuse_unknown_keys(node->value(i), block_keys, "a block", mistakes_);
        declare_block_arguments(node->value(i), block);
      } else {
        mistakes_.error(key.mark, fmt::format("block '{}' needs its layers", key.text));
      }
      model_.blocks.push_back(std::move(block));
    }
    for (std::size_t i = 0; i < model_.blocks.size(); ++i) {
      block_numbers_.emplace(model_.blocks[i].name, static_cast<int>(i));
    }
  }

  void declare_block_arguments(const YamlNode& body, Block& block) {
    const YamlNode* node = body.find("arguments");
    if (node == nullptr || node->kind == YamlNode::Kind::null) return;
    if (!node->is_mapping()) {
      mistakes_.error(
          node->mark,
          fmt::format("'arguments' takes 'name: default' entries, not {}", describe(*node)),
          "an argument without a default is 'name:' alone");
      return;
    }
    const auto reserved = common_layer_keys();
    for (std::size_t i = 0; i < node->entry_count(); ++i) {
      const YamlNode& key = node->key(i);
      if (std::find(reserved.begin(), reserved.end(), key.text) != reserved.end()) {
        mistakes_.error(key.mark, fmt::format("'{}' has a meaning of its own", key.text));
        continue;
      }
      const auto& names = model_.value_names;
      const bool hides = std::find(names.begin(), names.end(), key.text) != names.end();
      if (!hides && !is_free_name(key, names, mistakes_)) continue;
      ArgumentDeclaration argument{.name = key.text, .mark = key.mark};
      if (node->value(i).kind != YamlNode::Kind::null) {
        const ValueRules rules{.names = {.block = block.argument_names, .model = names},
                               .any_word = true};
        argument.default_value = read_value(node->value(i), key.text, rules, mistakes_);
        argument.takes_words = is_word(argument.default_value);
      }
      block.argument_names.push_back(argument.name);
      block.arguments.push_back(std::move(argument));
    }
  }

  [[nodiscard]] bool is_word(const std::optional<WrittenValue>& written) const {
    if (!written || written->is_list || !is_constant(*written)) return false;
    const auto value = written->items[0].evaluate({.model = model_.values});
    return value && value->word() != nullptr;
  }

  void read_defaults_section() {
    const YamlNode* node = find_section(root_, "defaults", mistakes_);
    if (node == nullptr) return;
    for (std::size_t i = 0; i < node->entry_count(); ++i) {
      const YamlNode& key = node->key(i);
      const OperatorRow* row = find_operator(key.text);
      if (row == nullptr) {
        std::vector<std::string_view> names;
        for (const OperatorRow& one : operator_catalogue()) names.push_back(one.name);
        mistakes_.error(key.mark, fmt::format("unknown operator '{}'", key.text),
                        mistakes_.suggest(key.text, names));
      } else if (!node->value(i).is_mapping()) {
        mistakes_.error(node->value(i).mark, fmt::format("expected attributes of {}, found {}",
                                                         key.text, describe(node->value(i))));
      } else {
        defaults_[row] = read_defaults(node->value(i), *row, model_, mistakes_);
      }
    }
  }

  // The layers of a scope, or null where there are none; that has been reported.
  const YamlNode* layers_of(const YamlNode& body, std::string_view owner, const Mark& mark) {
    const YamlNode* layers = body.find("layers");
    if (layers != nullptr && layers->is_sequence() && !layers->items.empty()) return layers;
    const bool absent = layers == nullptr || layers->kind == YamlNode::Kind::null;
    mistakes_.error(absent ? mark : layers->mark,
                    absent
                        ? fmt::format("{} has no 'layers:'", owner)
                        : fmt::format("'layers' takes a list of layers, not {}",
                                      layers->is_sequence() ? "an empty one" : describe(*layers)),
                    absent ? "" : "each layer starts with '- '");
    return nullptr;
  }

  void read_block_scopes() {
    const YamlNode* node = find_section(root_, "blocks", mistakes_);
    for (std::size_t i = 0; i < model_.blocks.size(); ++i) {
      Block& block = model_.blocks[i];
      const YamlNode& body = node->value(i);
      if (!body.is_mapping()) continue;
      const YamlNode* layers = layers_of(body, fmt::format("block '{}'", block.name), block.mark);
      if (layers == nullptr) continue;
      block.scope = read_scope({layers, body.find("output"), nullptr, body.find("modules")},
                               {model_, block_numbers_, defaults_, &block}, mistakes_);
    }
  }

  void read_layers() {
    const YamlNode* layers = layers_of(root_, "the description", root_.mark);
    if (layers == nullptr) return;
    model_.scope =
        read_scope({layers, root_.find("output"), root_.find("loss"), root_.find("modules")},
                   {model_, block_numbers_, defaults_, nullptr}, mistakes_);
    if (model_.scope.loss < 0) return;
    const auto first = static_cast<std::size_t>(model_.scope.loss);
    for (std::size_t i = first; i < model_.scope.layers.size(); ++i) {
      check_loss(model_.scope.layers[i], i > first);
    }
  }

  // Those of a list that come after the first may be left out.
  void check_loss(LayerEntry& loss, bool may_be_left_out) {
    if (loss.broken) return;
    if (loss.row == nullptr || !loss.row->is_loss) {
      std::vector<std::string_view> losses;
      for (const OperatorRow& row : operator_catalogue()) {
        if (row.is_loss) losses.push_back(row.name);
      }
      mistakes_.error(loss.mark, fmt::format("a loss is {}", alternatives(losses)));
    } else if (loss.repeat) {
      mistakes_.error(loss.repeat->mark, "a loss is not repeated");
    } else if (loss.when && !may_be_left_out) {
      mistakes_.error(loss.when->mark, "the first loss cannot be left out");
    } else {
      return;
    }
    loss.broken = true;
  }

  const YamlNode& root_;
  const ModelOptions& options_;
  Mistakes& mistakes_;
  ModelDescription model_;
  std::map<std::string_view, int> block_numbers_;
  std::map<const OperatorRow*, OperatorDefaults> defaults_;
};

}  // namespace

ModelDescription read_description(const YamlDocument& document, const ModelOptions& options,
                                  Mistakes& mistakes) {
  const YamlNode& root = *document.root;
  if (!root.is_mapping()) {
    mistakes.error(root.mark, fmt::format("expected 'key: value' entries such as 'model: name', "
                                          "found {}",
                                          describe(root)));
    return {};
  }
  return DescriptionReader(root, options, mistakes).read();
}

}  // namespace stowage
