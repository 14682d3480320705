// Regions of a script by their names: modules that a plan runs again in backward, and children in
// a row of an nn.Sequential.
//
//   "layer1.0"        the module of that path
//   "features[0:5]"   the children 0 to 4 of the nn.Sequential `features`
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/document/step_document.hpp"

namespace stowage {

/// Children of an nn.Sequential, from `first` to one before `end`.
struct ChildRow {
  std::int64_t first = 0, end = 0;
};

struct ScriptRegion {
  std::string name;
  std::string module;           ///< its path
  std::optional<ChildRow> row;  ///< of its children; none: the whole module
};

[[nodiscard]] ScriptRegion region_named(const std::string& name);

/// The modules that a recording says to run, by their paths. A single model's own path is its
/// class's name, which begins no other path.
class ScriptModules {
 public:
  /// Of a step that was not recorded: none.
  explicit ScriptModules(const std::vector<RecordedModule>& modules);

  [[nodiscard]] bool are_known() const { return !by_path_.empty(); }
  /// Null: it does not run, or more than once.
  [[nodiscard]] const RecordedModule* find(std::string_view path) const;
  /// Null: it has no such child, or that does not run once.
  [[nodiscard]] const RecordedModule* child(std::string_view module, std::int64_t place) const;
  /// One more than the largest number that is the name of one of its children; 0: none is.
  [[nodiscard]] std::int64_t children(std::string_view module) const;

  /// Whether a module of this path is the region's, or lies in it.
  [[nodiscard]] bool covers(const ScriptRegion& region, std::string_view path) const;
  /// In how many of these regions each one lies, by region: 0 for those that lie in none. A region
  /// that is named twice counts once. O(regions * (length of a path + log regions)).
  [[nodiscard]] std::vector<std::size_t> nesting_depths(
      const std::vector<ScriptRegion>& regions) const;

 private:
  /// "0.conv" of "features.0.conv" in "features"; none: the path is not below it.
  [[nodiscard]] std::optional<std::string_view> below(std::string_view module,
                                                      std::string_view path) const;

  std::map<std::string_view, const RecordedModule*> by_path_;
  std::string_view root_;  ///< of a single model; "": of several
};

}  // namespace stowage
