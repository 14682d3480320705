#include "estimator/step/unique_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>

namespace stowage {

namespace {

constexpr int names_a_group = 256;

/// A name's hash, its lowest bits replaced by the name's index.
using Key = std::uint64_t;

/// Keys of one hash stand together, in the order of their names: grouped by the highest bits, then
/// sorted group by group, which stay in the processor's nearest cache.
std::vector<Key> sorted(const std::vector<Key>& keys) {
  const int bits = std::bit_width(keys.size() / names_a_group);  // of the group's number
  const auto group = [bits](Key key) { return bits == 0 ? 0 : key >> (64 - bits); };
  std::vector<std::size_t> place((std::size_t{1} << bits) + 1);
  for (const Key key : keys) ++place[group(key) + 1];
  for (std::size_t i = 1; i < place.size(); ++i) place[i] += place[i - 1];
  std::vector<Key> result(keys.size());
  for (const Key key : keys) result[place[group(key)]++] = key;
  std::size_t begin = 0;
  for (std::size_t i = 0; i + 1 < place.size(); ++i) {  // each is its group's end by now
    std::sort(result.begin() + static_cast<std::ptrdiff_t>(begin),
              result.begin() + static_cast<std::ptrdiff_t>(place[i]));
    begin = place[i];
  }
  return result;
}

/// Numbers the equal ones among names of one hash.
void number(const std::vector<std::string*>& names, std::span<const Key> keys, Key index_mask) {
  std::vector<std::pair<std::string*, int>> changes;
  std::map<std::string_view, int> count;
  for (const Key key : keys) {
    std::string* const name = names[key & index_mask];
    const int number = ++count[*name];
    if (number > 1) changes.emplace_back(name, number);
  }
  for (const auto& [name, number] : changes) *name += fmt::format("~{}", number);
}

}  // namespace

std::string dotted(std::string_view owner, std::string_view part) {
  std::string name;
  name.reserve(owner.size() + 1 + part.size());
  return name.append(owner).append(1, '.').append(part);
}

void number_repeated(const std::vector<std::string*>& names) {
  const Key index_mask = std::bit_ceil(names.size() + 1) - 1;
  std::vector<Key> keys;
  keys.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    keys.push_back((std::hash<std::string_view>()(*names[i]) & ~index_mask) | i);
  }
  keys = sorted(keys);
  for (std::size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
    for (end = begin + 1; end < keys.size() && (keys[begin] ^ keys[end]) <= index_mask;) ++end;
    if (end - begin > 1) number(names, std::span(keys).subspan(begin, end - begin), index_mask);
  }
}

}  // namespace stowage
