#include "estimator/model/description_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "estimator/model/block_nesting.hpp"
#include "estimator/model/scope_reader.hpp"

namespace stowage {

namespace {

constexpr std::string_view top_keys[] = {"model",  "source",   "arguments", "symbols",
                                         "inputs", "defaults", "blocks",    "layers",
                                         "output", "loss",     "train"};
constexpr std::string_view block_keys[] = {"arguments", "layers", "output"};
constexpr std::string_view input_keys[] = {"shape", "dtype"};
constexpr std::string_view type_names[] = {"float32", "float64", "float16", "bfloat16",
                                           "int64",   "int32",   "uint8",   "bool"};
constexpr std::string_view reserved_names[] = {"if",    "else", "batch", "index", "true",
                                               "false", "and",  "or",    "not"};

class DescriptionReader {
 public:
  DescriptionReader(const YamlNode& root, const ModelOptions& options, Mistakes& mistakes)
      : root_(root), options_(options), mistakes_(mistakes) {}

  ModelDescription read() {
    refuse_unknown_keys(root_, top_keys, "the description");
    read_texts();
    read_arguments();
    read_symbols();
    refuse_unknown_options();
    read_inputs();
    declare_blocks();
    read_defaults_section();
    read_block_scopes();
    refuse_recursion(model_.blocks, mistakes_);
    read_layers();
    if (const YamlNode* train = section("train")) {
      model_.train = read_train(*train, model_, mistakes_);
    }
    return std::move(model_);
  }

 private:
  void refuse_unknown_keys(const YamlNode& node, std::span<const std::string_view> known,
                           std::string_view of) {
    for (std::size_t i = 0; i < node.entry_count(); ++i) {
      const YamlNode& key = node.key(i);
      if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
      std::string hint = mistakes_.suggest(key.text, known);
      if (hint.empty()) hint = fmt::format("{} has {}", of, fmt::join(known, ", "));
      mistakes_.error(key.mark, fmt::format("unknown key '{}'", key.text), std::move(hint));
    }
  }

  // A section that is a mapping; null where it is absent, empty or something else.
  const YamlNode* section(std::string_view key) {
    const YamlNode* node = root_.find(key);
    if (node == nullptr || node->kind == YamlNode::Kind::null) return nullptr;
    if (node->is_mapping()) return node;
    mistakes_.error(node->mark,
                    fmt::format("'{}' takes 'name: value' entries, not {}", key, describe(*node)));
    return nullptr;
  }

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
    if (root_.find("model") == nullptr) {
      mistakes_.error(root_.mark, "the description has no 'model: name'");
    }
  }

  bool is_free_name(const YamlNode& key) {
    if (!is_symbol_name(key.text)) {
      mistakes_.error(key.mark, fmt::format("'{}' is not a name", key.text),
                      "a name has letters, digits and '_', and starts with a letter");
      return false;
    }
    if (std::find(std::begin(reserved_names), std::end(reserved_names), key.text) !=
        std::end(reserved_names)) {
      mistakes_.error(key.mark, fmt::format("'{}' has a meaning of its own", key.text));
      return false;
    }
    const auto& names = model_.value_names;
    if (std::find(names.begin(), names.end(), key.text) != names.end()) {
      mistakes_.error(key.mark, fmt::format("'{}' is an argument already", key.text));
      return false;
    }
    return true;
  }

  std::optional<Value> value_of(const YamlNode& node, std::string_view what, bool any_word) {
    const ValueRules rules{
        .names = {.model = model_.value_names, .has_batch = false, .has_index = false},
        .any_word = any_word};
    const auto written = read_value(node, what, rules, mistakes_);
    return written ? evaluate(*written, {.model = model_.values}, mistakes_) : std::nullopt;
  }

  void bind(const std::string& name, Value value) {
    model_.value_names.push_back(name);
    model_.values.push_back(std::move(value));
  }

  void read_arguments() {
    if (const YamlNode* node = section("arguments")) {
      for (std::size_t i = 0; i < node->entry_count(); ++i) {
        const YamlNode& key = node->key(i);
        if (!is_free_name(key)) continue;
        const auto value = value_of(node->value(i), key.text, true);
        bind(key.text, override_of(key.text, value.value_or(Value{Affine(1)})));
      }
    }
  }

  void refuse_unknown_options() {
    std::vector<std::string_view> names(model_.value_names.begin(), model_.value_names.end());
    for (const auto& [name, text] : options_.arguments) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      std::string hint = did_you_mean(name, names);
      if (hint.empty() && !names.empty()) {
        hint = fmt::format("its arguments are {}", fmt::join(names, ", "));
      }
      mistakes_.add({.message = fmt::format("the model has no argument or symbol '{}'", name),
                     .span = option_span(name, 0, static_cast<int>(name.size())),
                     .hint = std::move(hint)});
    }
  }

  SourceSpan option_span(const std::string& name, int offset, int length) const {
    if (const auto place = options_.places.find(name); place != options_.places.end()) {
      return place->second;
    }
    auto source = std::make_shared<const SourceText>(SourceText{
        "<option --set>", fmt::format("{}={}", name, options_.arguments.find(name)->second)});
    return {std::move(source), 1, offset + 1, length};
  }

  // The command line's value of an argument, of the kind that its default has.
  Value override_of(const std::string& name, Value declared) {
    const auto given = options_.arguments.find(name);
    if (given == options_.arguments.end()) return declared;
    const std::string& text = given->second;
    const auto parsed = parse_expression(text, {.has_batch = false, .has_index = false});
    std::optional<Value> value;
    if (declared.word() != nullptr && is_layer_name(text)) {
      value = Value{text};
    } else if (parsed) {
      if (const auto result = parsed->evaluate({})) value = *result;
    }
    if (value && declared.real() != nullptr && value->affine() != nullptr) {
      value = Value{static_cast<double>(value->affine()->constant)};
    }
    if (value && value->of.index() == declared.of.index()) return *value;
    mistakes_.add({.message = fmt::format("'{}' takes a value like its default, {}, not '{}'", name,
                                          describe(declared), text),
                   .span = option_span(name, static_cast<int>(name.size()) + 1,
                                       std::max(static_cast<int>(text.size()), 1))});
    return declared;
  }

  void read_symbols() {
    if (const YamlNode* node = section("symbols")) {
      for (std::size_t i = 0; i < node->entry_count(); ++i) {
        const YamlNode& key = node->key(i);
        if (!is_free_name(key)) continue;
        const auto value = value_of(node->value(i), key.text, false);
        const auto size =
            value ? to_integer(key.text, 1, largest_symbol, *value, node->value(i).mark, mistakes_)
                  : std::nullopt;
        const Value chosen = override_of(key.text, {Affine(size.value_or(1))});
        std::int64_t bound = chosen.affine() != nullptr ? chosen.affine()->constant : 1;
        if (bound < 1 || bound > largest_symbol) {
          mistakes_.add({.message = fmt::format("'{}' takes an integer between 1 and {}", key.text,
                                                largest_symbol),
                         .span = option_span(key.text, static_cast<int>(key.text.size()) + 1, 1)});
          bound = 1;
        }
        if (key.text == "seq") model_.default_seq = bound;
        if (key.text == "seq" && options_.seq) bound = *options_.seq;
        bind(key.text, {Affine(bound)});
      }
    }
    if (!options_.seq) return;
    if (model_.default_seq == 0) {
      mistakes_.add({.message = "the model has no symbol 'seq'", .span = seq_span()});
    } else if (*options_.seq < 1 || *options_.seq > largest_symbol) {
      mistakes_.add(
          {.message = fmt::format("'seq' takes an integer between 1 and {}", largest_symbol),
           .span = seq_span()});
    }
  }

  [[nodiscard]] SourceSpan seq_span() const {
    const std::string text = fmt::format("{}", *options_.seq);
    return {std::make_shared<const SourceText>(SourceText{"<option --seq>", text}), 1, 1,
            static_cast<int>(text.size())};
  }

  void read_inputs() {
    const YamlNode* node = section("inputs");
    if (node == nullptr) {
      if (root_.find("inputs") == nullptr) {
        mistakes_.error(root_.mark, "the description has no 'inputs:'",
                        "such as 'inputs: {image: {shape: [batch, 3, 224, 224]}}'");
      }
      return;
    }
    for (std::size_t i = 0; i < node->entry_count(); ++i) {
      InputDeclaration input{.name = node->key(i).text, .mark = node->key(i).mark};
      if (!is_layer_name(input.name)) {
        mistakes_.error(input.mark, fmt::format("'{}' is not a name", input.name));
      }
      read_input(node->value(i), input);
      model_.inputs.push_back(std::move(input));
    }
  }

  void read_input(const YamlNode& node, InputDeclaration& input) {
    static const AttributeSpec shape_spec{
        .name = "shape", .type = AttributeType::dimensions, .minimum = 1};
    input.broken = true;
    if (node.is_mapping()) refuse_unknown_keys(node, input_keys, "an input");
    if (const YamlNode* type = node.is_mapping() ? node.find("dtype") : nullptr) {
      const auto parsed = type->is_scalar() ? parse_data_type(type->text) : std::nullopt;
      if (parsed)
        input.type.type = *parsed;
      else
        mistakes_.error(type->mark,
                        type->is_scalar()
                            ? fmt::format("unknown dtype {}", describe(*type))
                            : fmt::format("'dtype' takes a word, not {}", describe(*type)),
                        type_hint(*type));
    }
    const YamlNode* shape = node.is_mapping() ? node.find("shape") : nullptr;
    if (shape == nullptr) {
      mistakes_.error(node.mark, fmt::format("input '{}' needs a shape", input.name),
                      "such as {shape: [batch, 3, 224, 224]}");
      return;
    }
    const ValueRules rules{.names = {.model = model_.value_names, .has_index = false}};
    const auto written = read_value(*shape, "shape", rules, mistakes_);
    const auto value =
        written ? evaluate(*written, {.model = model_.values}, mistakes_) : std::nullopt;
    auto attribute =
        value ? to_attribute(shape_spec, input.name, *value, *written, mistakes_) : std::nullopt;
    if (!attribute) return;
    input.type.shape = std::get<Shape>(std::move(*attribute));
    input.broken = false;
  }

  static std::string type_hint(const YamlNode& node) {
    std::string hint = node.is_scalar() ? did_you_mean(node.text, type_names) : std::string();
    return hint.empty() ? fmt::format("dtypes are {}", fmt::join(type_names, ", ")) : hint;
  }

  void declare_blocks() {
    const YamlNode* node = section("blocks");
    if (node == nullptr) return;
    model_.blocks.reserve(node->entry_count());
    for (std::size_t i = 0; i < node->entry_count(); ++i) {
      const YamlNode& key = node->key(i);
      Block block{.name = key.text, .mark = key.mark};
      if (!is_layer_name(key.text)) {
        mistakes_.error(key.mark, fmt::format("'{}' is not a name", key.text));
      } else if (find_operator(key.text) != nullptr) {
        mistakes_.error(key.mark, fmt::format("'{}' is the name of an operator", key.text));
      }
      if (node->value(i).is_mapping()) {
        refuse_unknown_keys(node->value(i), block_keys, "a block");
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
      if (!hides && !is_free_name(key)) continue;
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
    const YamlNode* node = section("defaults");
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
    const YamlNode* node = section("blocks");
    for (std::size_t i = 0; i < model_.blocks.size(); ++i) {
      Block& block = model_.blocks[i];
      const YamlNode& body = node->value(i);
      if (!body.is_mapping()) continue;
      const YamlNode* layers = layers_of(body, fmt::format("block '{}'", block.name), block.mark);
      if (layers == nullptr) continue;
      block.scope = read_scope({layers, body.find("output"), nullptr},
                               {model_, block_numbers_, defaults_, &block}, mistakes_);
    }
  }

  void read_layers() {
    const YamlNode* layers = layers_of(root_, "the description", root_.mark);
    if (layers == nullptr) return;
    model_.scope = read_scope({layers, root_.find("output"), root_.find("loss")},
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

  static constexpr std::int64_t largest_symbol = std::int64_t{1} << 40;

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
