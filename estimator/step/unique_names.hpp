// Names made of parts, and names that are given twice, made unique.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stowage {

/// "<owner>.<part>", "<owner>.<part>.<of part>"
[[nodiscard]] std::string dotted(std::string_view owner, std::string_view part,
                                 std::string_view of_part = {});

/// Gives the second of equal names the ending "~2", the third "~3", and so on, by their order among
/// `names`. Does not look whether a name made so is there already. O(names): a large step has a
/// million, of which only those are compared whose hashes meet. `hashes`: of each name, by whoever
/// had it at hand when it was made.
void number_repeated(const std::vector<std::string*>& names,
                     const std::vector<std::size_t>& hashes);

/// The name without the number that made it unique.
[[nodiscard]] std::string unnumbered(const std::string& name);

[[nodiscard]] inline std::size_t name_hash(std::string_view name) {
  return std::hash<std::string_view>()(name);
}

/// number_repeated for the `name` of each element.
template <typename Named>
void number_repetitions(std::vector<Named>& all, const std::vector<std::size_t>& hashes) {
  std::vector<std::string*> names;
  names.reserve(all.size());
  for (Named& named : all) names.push_back(&named.name);
  number_repeated(names, hashes);
}

/// As above, for the elements from `first` on.
template <typename Named>
void number_repetitions(std::vector<Named>& all, std::size_t first = 0) {
  std::vector<std::string*> names;
  std::vector<std::size_t> hashes;
  names.reserve(all.size() - first);
  hashes.reserve(all.size() - first);
  for (std::size_t i = first; i < all.size(); ++i) {
    names.push_back(&all[i].name);
    hashes.push_back(name_hash(all[i].name));
  }
  number_repeated(names, hashes);
}

}  // namespace stowage
