#include "estimator/model/modules_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/model/expression.hpp"

namespace stowage {

namespace {

constexpr std::ptrdiff_t most_around = 32;  // each makes all paths within it longer

constexpr std::string_view form =
    "such as 'modules: {mlp: [fc1, fc2]}', the first layer and the last";

std::string said(const YamlNode& layers) {
  return layers.is_sequence() ? fmt::format("a list of {}", layers.items.size()) : describe(layers);
}

class ModulesReader {
 public:
  ModulesReader(Scope& scope, Mistakes& mistakes) : scope_(scope), mistakes_(mistakes) {
    for (LayerEntry& entry : scope_.layers) by_name_.emplace(entry.name, &entry);
  }

  void read(const YamlNode& name, const YamlNode& layers) {
    if (layers.is_scalar() && layers.text == "each") return read_each(name);
    const bool is_range =
        layers.is_sequence() && (layers.items.size() == 1 || layers.items.size() == 2);
    if (!is_range) {
      mistakes_.error(
          layers.mark,
          fmt::format("a module takes its first and its last layer, not {}", said(layers)),
          std::string(form));
      return;
    }
    if (!is_layer_name(name.text)) {
      mistakes_.error(name.mark, fmt::format("'{}' is not a name", name.text),
                      layer_name_hint(name.text));
      return;
    }
    const YamlNode& last_name = *layers.items.back();
    LayerEntry* const first = find(*layers.items.front());
    LayerEntry* const last = find(last_name);
    if (first == nullptr || last == nullptr) return;
    if (first > last) {
      mistakes_.error(last_name.mark,
                      fmt::format("'{}' stands before '{}'", last->name, first->name));
      return;
    }
    put(first, last + 1, name);
  }

 private:
  void read_each(const YamlNode& name) {
    LayerEntry* const chain = find(name);
    if (chain == nullptr) return;
    if (chain->repeat) {
      chain->called_one_by_one = true;
    } else {
      mistakes_.error(name.mark, fmt::format("'{}' has no 'repeat'", chain->name));
    }
  }

  LayerEntry* find(const YamlNode& node) {
    const auto found = by_name_.find(node.text);
    if (node.is_scalar() && found != by_name_.end()) return found->second;
    std::vector<std::string_view> names;
    for (const LayerEntry& entry : scope_.layers) names.push_back(entry.name);
    mistakes_.error(node.mark, fmt::format("{} is none of the layers here", describe(node)),
                    mistakes_.suggest(node.text, names));
    return nullptr;
  }

  // The new module must be within existing modules, and not around one.
  void put(LayerEntry* first, LayerEntry* end, const YamlNode& name) {
    const std::string around = first->module;
    const auto is_alike = [&](const LayerEntry& entry) { return entry.module == around; };
    const LayerEntry* const other = std::find_if_not(first, end, is_alike);
    if (other != end) {
      mistakes_.error(
          name.mark,
          fmt::format("'{}' and '{}' are in different modules already", first->name, other->name),
          "write the outer one before those within it");
      return;
    }
    if (std::ranges::count(around, '.') + 1 >= most_around) {
      mistakes_.error(
          name.mark, fmt::format("'{}' has {} modules around it already", first->name, most_around),
          "modules may stand so deep within one another, and no deeper");
      return;
    }
    const std::string module = around.empty() ? name.text : around + "." + name.text;
    std::for_each(first, end, [&](LayerEntry& entry) { entry.module = module; });
  }

  Scope& scope_;
  Mistakes& mistakes_;
  std::map<std::string_view, LayerEntry*> by_name_;  // of equal names the first
};

}  // namespace

void read_modules(const YamlNode& node, Scope& scope, Mistakes& mistakes) {
  if (!node.is_mapping()) {
    mistakes.error(
        node.mark,
        fmt::format("'modules' takes 'name: [first, last]' entries, not {}", describe(node)),
        std::string(form));
    return;
  }
  ModulesReader reader(scope, mistakes);
  for (std::size_t i = 0; i < node.entry_count(); ++i) reader.read(node.key(i), node.value(i));
}

}  // namespace stowage
