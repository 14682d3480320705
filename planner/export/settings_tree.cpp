#include "planner/export/settings_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "estimator/document/step_text.hpp"

namespace stowage {

namespace {

// Shared by the three forms: JSON's texts and numbers are also YAML's and TOML's.
std::string plain_text(const SettingsTree::Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return "null";
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* real = std::get_if<double>(&value)) {
    // YAML 1.1 takes 1e-05 for a text.
    std::string text = fmt::format("{:.12f}", *real);
    text.erase(std::max(text.find_last_not_of('0') + 1, text.find('.') + 2));
    return text;
  }
  return step_text::json_text(std::get<std::string>(value));
}

const SettingsTree::List* as_list(const SettingsTree& tree) {
  return std::get_if<SettingsTree::List>(&tree.value());
}
const SettingsTree::Members* as_members(const SettingsTree& tree) {
  return std::get_if<SettingsTree::Members>(&tree.value());
}

bool is_plain(const SettingsTree& tree) { return !as_list(tree) && !as_members(tree); }

bool is_short(const SettingsTree::List& list) { return std::ranges::all_of(list, is_plain); }

std::string one_line(const SettingsTree::List& list) {
  std::string text = "[";
  for (const SettingsTree& item : list) {
    if (text.size() > 1) text += ", ";
    text += plain_text(item.value());
  }
  return text + ']';
}

/// An object of plain values in one line: a row of a list.
std::string one_line(const SettingsTree::Members& members) {
  std::string text = "{";
  for (const auto& [name, value] : members) {
    if (text.size() > 1) text += ", ";
    const SettingsTree::List* const list = as_list(value);
    text +=
        step_text::json_text(name) + ": " + (list ? one_line(*list) : plain_text(value.value()));
  }
  return text + '}';
}

/// Whether it fits a line: no object in it, and no list of lists.
bool is_short(const SettingsTree::Members& members) {
  return std::ranges::all_of(members, [](const auto& member) {
    const SettingsTree::List* const list = as_list(member.second);
    return list ? is_short(*list) : is_plain(member.second);
  });
}

std::string spaces(std::size_t count) { return std::string(count, ' '); }

void put_json(const SettingsTree& tree, std::size_t indentation, std::string& text) {
  const SettingsTree::List* const list = as_list(tree);
  const SettingsTree::Members* const members = as_members(tree);
  if (list && is_short(*list)) {
    text += one_line(*list);
    return;
  }
  if (is_plain(tree)) {
    text += plain_text(tree.value());
    return;
  }
  if (members && members->empty()) {
    text += "{}";
    return;
  }
  text += list ? "[\n" : "{\n";
  const std::size_t count = list ? list->size() : members->size();
  for (std::size_t i = 0; i < count; ++i) {
    text += spaces(indentation + 2);
    if (members) text += step_text::json_text((*members)[i].first) + ": ";
    const SettingsTree& part = list ? (*list)[i] : (*members)[i].second;
    if (const auto* row = as_members(part); list && row && is_short(*row)) {
      text += one_line(*row);
    } else {
      put_json(part, indentation + 2, text);
    }
    text += i + 1 < count ? ",\n" : "\n";
  }
  text += spaces(indentation) + (list ? "]" : "}");
}

/// A name that is written without quotes in YAML and TOML.
bool is_bare(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }) && !(name[0] >= '0' && name[0] <= '9');
}
std::string key_text(std::string_view name) {
  return is_bare(name) ? std::string(name) : step_text::json_text(name);
}

void put_yaml(const SettingsTree::Members& members, std::size_t indentation, std::string& text);

void put_yaml_list(const SettingsTree::List& list, std::size_t indentation, std::string& text) {
  for (const SettingsTree& item : list) {
    if (const auto* members = as_members(item); members && !members->empty()) {
      std::string inner;
      put_yaml(*members, indentation + 2, inner);
      inner.replace(0, indentation + 2, spaces(indentation) + "- ");
      text += inner;
    } else {
      text += spaces(indentation) + "- " + plain_text(item.value()) + '\n';
    }
  }
}

void put_yaml(const SettingsTree::Members& members, std::size_t indentation, std::string& text) {
  for (const auto& [name, value] : members) {
    text += spaces(indentation) + key_text(name) + ':';
    if (const auto* inner = as_members(value)) {
      text += inner->empty() ? " {}\n" : "\n";
      put_yaml(*inner, indentation + 2, text);
    } else if (const auto* list = as_list(value)) {
      if (is_short(*list)) {
        text += ' ' + one_line(*list) + '\n';
      } else {
        text += '\n';
        put_yaml_list(*list, indentation + 2, text);
      }
    } else {
      text += ' ' + plain_text(value.value()) + '\n';
    }
  }
}

void put_toml(const SettingsTree::Members& members, const std::string& path, std::string& text) {
  for (const auto& [name, value] : members) {
    if (as_members(value) || std::holds_alternative<std::monostate>(value.value())) continue;
    const auto* list = as_list(value);
    text += fmt::format("{} = {}\n", key_text(name),
                        list ? one_line(*list) : plain_text(value.value()));
  }
  for (const auto& [name, value] : members) {
    const auto* inner = as_members(value);
    if (!inner) continue;
    const std::string table = path.empty() ? key_text(name) : path + '.' + key_text(name);
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", table);
    put_toml(*inner, table, text);
  }
}

}  // namespace

SettingsTree SettingsTree::list_of(const std::vector<std::string>& words) {
  List list;
  for (const std::string& word : words) list.emplace_back(word);
  return list;
}

void SettingsTree::add(std::string name, SettingsTree value) {
  if (std::holds_alternative<std::monostate>(value_)) value_ = Members{};
  std::get<Members>(value_).emplace_back(std::move(name), std::move(value));
}

std::string plain_value(const SettingsTree& tree) { return plain_text(tree.value()); }

std::string json_text(const SettingsTree& tree) {
  std::string text;
  put_json(tree, 0, text);
  return text + '\n';
}

std::string yaml_text(const SettingsTree& tree) {
  assert(as_members(tree));
  std::string text;
  put_yaml(*as_members(tree), 0, text);
  return text;
}

std::string toml_text(const SettingsTree& tree) {
  assert(as_members(tree));
  std::string text;
  put_toml(*as_members(tree), "", text);
  return text;
}

}  // namespace stowage
