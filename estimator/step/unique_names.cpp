#include "estimator/step/unique_names.hpp"

#include <fmt/format.h>

#include <bit>
#include <cassert>
#include <string_view>
#include <unordered_map>

namespace stowage {

std::string dotted(std::string_view owner, std::string_view part, std::string_view of_part) {
  std::string name;
  name.reserve(owner.size() + part.size() + of_part.size() + 2);
  name.append(owner).append(1, '.').append(part);
  if (!of_part.empty()) name.append(1, '.').append(of_part);
  return name;
}

void number_repeated(const std::vector<std::string*>& names,
                     const std::vector<std::size_t>& hashes) {
  assert(names.size() == hashes.size());
  // By a name's hash, sixteen times as many places as names.
  std::vector<bool> taken(16 * std::bit_ceil(names.size() + 1)), shared(taken.size());
  const auto place_of = [&](std::size_t i) { return hashes[i] & (taken.size() - 1); };
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (taken[place_of(i)]) shared[place_of(i)] = true;
    taken[place_of(i)] = true;
  }
  std::unordered_map<std::string_view, int> count;  // of the few that are not alone
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!shared[place_of(i)]) continue;
    // The first of a name stays as it is, so that the key does.
    const int number = ++count[*names[i]];
    if (number > 1) *names[i] += fmt::format("~{}", number);
  }
}

std::string unnumbered(const std::string& name) {
  const std::size_t mark = name.find_last_not_of("0123456789");
  const bool numbered = mark != std::string::npos && mark + 1 < name.size() && name[mark] == '~';
  return numbered ? name.substr(0, mark) : name;
}

}  // namespace stowage
