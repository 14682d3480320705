#include "estimator/keras/keras_graph.hpp"

namespace stowage {

namespace {

constexpr int deepest_argument = 8;

std::optional<KerasHistory> history_of(const YamlNode& node) {
  if (!node.is_sequence() || node.items.size() < 3 || !node.items[0]->is_scalar()) {
    return std::nullopt;
  }
  const auto call = integer_of(*node.items[1]);
  const auto output = integer_of(*node.items[2]);
  if (!call || !output) return std::nullopt;
  return KerasHistory{node.items[0]->text, *call, *output};
}

// Keras 3: tensors stand among the arguments, in lists and objects.
void collect_tensors(const YamlNode& node, int depth, KerasInbound& into) {
  if (depth == deepest_argument) return;
  if (node.is_sequence()) {
    for (const YamlNode* item : node.items) collect_tensors(*item, depth + 1, into);
    return;
  }
  const KerasConfig object(&node);
  if (object.text("class_name") == "__keras_tensor__") {
    const KerasConfig config = object.at("config");
    const YamlNode* history = config.find("keras_history");
    const auto from = history != nullptr ? history_of(*history) : std::nullopt;
    if (!from) return;
    into.from.push_back(*from);
    into.shapes.push_back(config.find("shape"));
    return;
  }
  if (!node.is_mapping()) return;
  for (std::size_t i = 0; i < node.entry_count(); ++i) {
    collect_tensors(node.value(i), depth + 1, into);
  }
}

// Keras 2: ["name", 0, 0, {keywords}]; tensors among the keywords are such lists too.
void collect_reference(const YamlNode& node, KerasInbound& into) {
  const auto from = history_of(node);
  if (!from) return;
  into.from.push_back(*from);
  into.shapes.push_back(nullptr);
  if (node.items.size() < 4 || !node.items[3]->is_mapping()) return;
  into.keywords = KerasConfig(node.items[3]);
  for (std::size_t i = 0; i < node.items[3]->entry_count(); ++i) {
    const auto more = history_of(node.items[3]->value(i));
    if (!more) continue;
    into.from.push_back(*more);
    into.shapes.push_back(nullptr);
  }
}

}  // namespace

std::vector<KerasInbound> inbound_calls(const YamlNode* inbound) {
  std::vector<KerasInbound> calls;
  if (is_nothing(inbound) || !inbound->is_sequence()) return calls;
  for (const YamlNode* node : inbound->items) {
    KerasInbound& call = calls.emplace_back();
    if (node->is_mapping()) {
      const KerasConfig object(node);
      call.keywords = object.at("kwargs");
      call.arguments = object.find("args");
      if (call.arguments != nullptr) collect_tensors(*call.arguments, 0, call);
      if (call.keywords.node() != nullptr) collect_tensors(*call.keywords.node(), 0, call);
    } else if (history_of(*node)) {
      collect_reference(*node, call);
    } else if (node->is_sequence()) {
      for (const YamlNode* reference : node->items) collect_reference(*reference, call);
    }
  }
  return calls;
}

std::vector<KerasHistory> histories_of(const YamlNode* node) {
  std::vector<KerasHistory> all;
  if (is_nothing(node)) return all;
  if (const auto one = history_of(*node)) return {*one};
  if (node->is_sequence()) {
    for (const YamlNode* item : node->items) {
      if (const auto one = history_of(*item)) all.push_back(*one);
    }
  } else if (node->is_mapping()) {
    for (std::size_t i = 0; i < node->entry_count(); ++i) {
      if (const auto one = history_of(node->value(i))) all.push_back(*one);
    }
  }
  return all;
}

}  // namespace stowage
