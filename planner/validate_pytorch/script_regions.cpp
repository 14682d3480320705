#include "planner/validate_pytorch/script_regions.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <utility>

namespace stowage {

namespace {

constexpr std::size_t most_digits = 9;  // as stowage.apply reads them

std::optional<std::int64_t> number_of(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || text.size() > most_digits || !std::ranges::all_of(text, is_digit)) {
    return std::nullopt;
  }
  std::int64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The rows of children of one module that are regions.
class RowsOfModule {
 public:
  void add(const ChildRow& row) {
    if (row.first < row.end) rows_.emplace(row.first, row.end);
  }

  /// After the last add().
  void count() {
    for (const auto& [first, end] : rows_) {
      ++covering_[first];
      --covering_[end];
    }
    std::int64_t sum = 0;
    for (auto& change : covering_) change.second = sum += change.second;
  }

  /// How many of them have the child in them.
  [[nodiscard]] std::size_t covering(std::int64_t place) const {
    const auto behind = covering_.upper_bound(place);
    return behind == covering_.begin() ? 0 : static_cast<std::size_t>(std::prev(behind)->second);
  }

 private:
  std::set<std::pair<std::int64_t, std::int64_t>> rows_;
  std::map<std::int64_t, std::int64_t> covering_;  // from each place on, up to the next
};

}  // namespace

ScriptRegion region_named(const std::string& name) {
  const std::string_view text = name;
  const std::size_t open = text.rfind('['), colon = text.rfind(':');
  const bool is_row = text.ends_with(']') && open != std::string_view::npos && open > 0 &&
                      colon != std::string_view::npos && colon > open;
  if (is_row) {
    const auto first = number_of(text.substr(open + 1, colon - open - 1));
    const auto end = number_of(text.substr(colon + 1, text.size() - colon - 2));
    if (first && end) {
      return {.name = name, .module = name.substr(0, open), .row = ChildRow{*first, *end}};
    }
  }
  return {.name = name, .module = name, .row = std::nullopt};
}

ScriptModules::ScriptModules(const std::vector<RecordedModule>& modules) {
  for (const RecordedModule& module : modules) by_path_.emplace(module.path, &module);
  if (modules.empty()) return;
  // The model is called before its children.
  const std::string_view front = modules.front().path;
  const bool begins_others = std::ranges::any_of(modules, [&](const RecordedModule& other) {
    return other.path.size() > front.size() && other.path.starts_with(front) &&
           other.path[front.size()] == '.';
  });
  if (!begins_others) root_ = front;
}

const RecordedModule* ScriptModules::find(std::string_view path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? nullptr : found->second;
}

std::optional<std::string_view> ScriptModules::below(std::string_view module,
                                                     std::string_view path) const {
  if (path.empty() || path == module) return std::nullopt;
  if (!root_.empty() && module == root_) return path;
  if (!path.starts_with(module) || path[module.size()] != '.') return std::nullopt;
  return path.substr(module.size() + 1);
}

const RecordedModule* ScriptModules::child(std::string_view module, std::int64_t place) const {
  const std::string name = std::to_string(place);
  const bool is_root = !root_.empty() && module == root_;
  return find(is_root ? name : std::string(module) + "." + name);
}

std::int64_t ScriptModules::children(std::string_view module) const {
  std::int64_t count = 0;
  for (const auto& one : by_path_) {
    const auto rest = below(module, one.first);
    if (!rest) continue;
    const auto number = number_of(rest->substr(0, rest->find('.')));
    if (number) count = std::max(count, *number + 1);
  }
  return count;
}

bool ScriptModules::covers(const ScriptRegion& region, std::string_view path) const {
  const auto rest = below(region.module, path);
  if (!region.row) return rest.has_value() || (path == region.module && !path.empty());
  if (!rest) return false;
  const auto number = number_of(rest->substr(0, rest->find('.')));
  return number && *number >= region.row->first && *number < region.row->end;
}

std::vector<std::size_t> ScriptModules::nesting_depths(
    const std::vector<ScriptRegion>& regions) const {
  std::set<std::string_view> wholes;
  std::map<std::string_view, RowsOfModule> rows;
  for (const ScriptRegion& region : regions) {
    if (region.row) {
      rows[region.module].add(*region.row);
    } else {
      wholes.insert(region.module);
    }
  }
  for (auto& of : rows) of.second.count();
  // What of the regions `module` has in it the path below it.
  const auto around = [&](std::string_view module, std::string_view path_below) {
    const auto found = rows.find(module);
    const auto place = number_of(path_below.substr(0, path_below.find('.')));
    return std::size_t{wholes.contains(module)} +
           (found != rows.end() && place ? found->second.covering(*place) : 0);
  };
  std::vector<std::size_t> depths;
  depths.reserve(regions.size());
  for (const ScriptRegion& region : regions) {
    const std::string_view path = region.module;
    std::size_t depth = region.row && wholes.contains(path) ? 1 : 0;
    if (!root_.empty() && path != root_) depth += around(root_, path);
    for (std::size_t dot = path.find('.'); dot != std::string_view::npos;
         dot = path.find('.', dot + 1)) {
      depth += around(path.substr(0, dot), path.substr(dot + 1));
    }
    depths.push_back(depth);
  }
  return depths;
}

}  // namespace stowage
