#include "planner/problem/step_names.hpp"

#include <set>

#include "estimator/model/device_pin.hpp"

namespace stowage {

bool is_placeable(const Storage& storage) {
  return storage.storage_class != StorageClass::temporary &&
         storage.storage_class != StorageClass::workspace;
}

std::string_view without_micro_batch(std::string_view name) {
  const std::size_t at = name.rfind('@');
  if (at == std::string_view::npos || at + 1 == name.size()) return name;
  const std::string_view digits = name.substr(at + 1);
  const bool number = digits.find_first_not_of("0123456789") == std::string_view::npos;
  return number ? name.substr(0, at) : name;
}

std::string_view without_recompute_suffix(std::string_view name) {
  constexpr std::string_view ending = ".recomputed";
  const std::size_t number = name.rfind('~');
  const std::string_view whole = name.substr(0, number);
  return whole.ends_with(ending) ? whole.substr(0, whole.size() - ending.size()) : name;
}

bool matches_name(std::string_view pattern, std::string_view name) {
  if (const std::string_view first = without_recompute_suffix(name); first != name) {
    return matches_name(pattern, first) || fits_pattern(name, pattern);
  }
  return fits_pattern(name, pattern) || fits_pattern(without_micro_batch(name), pattern);
}

bool scope_contains_layer(std::string_view scope, std::string_view layer) {
  if (layer.empty()) return false;
  if (fits_pattern(layer, scope)) return true;
  if (scope.ends_with(".*") && fits_pattern(layer, scope.substr(0, scope.size() - 2))) return true;
  return !has_wildcard(scope) && layer.size() > scope.size() && layer.starts_with(scope) &&
         layer[scope.size()] == '.';
}

std::vector<std::string> names_in(const StepGraph& step) {
  std::set<std::string> names;
  for (const Origin& origin : step.origins) {
    for (std::size_t dot = origin.layer.find('.'); dot != std::string::npos;
         dot = origin.layer.find('.', dot + 1)) {
      names.insert(origin.layer.substr(0, dot));
    }
    if (!origin.layer.empty()) names.insert(origin.layer);
  }
  for (const KernelNode& node : step.nodes) names.insert(node.name);
  for (const Storage& storage : step.storages) {
    if (is_placeable(storage)) names.insert(storage.name);
  }
  return {names.begin(), names.end()};
}

}  // namespace stowage
