#include "planner/problem/levers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "estimator/base/diagnostic.hpp"

namespace stowage {
namespace {

struct NamedLever {
  std::string_view name;
  bool Levers::*lever;
};

constexpr std::array<NamedLever, 6> named_levers{{{"operators", &Levers::operators},
                                                  {"activations", &Levers::activations},
                                                  {"saved", &Levers::saved},
                                                  {"optimizer", &Levers::optimizer},
                                                  {"weights", &Levers::weights},
                                                  {"recompute", &Levers::recompute}}};

constexpr Levers no_levers{false, false, false, false, false, false};

tl::unexpected<Diagnostics> unknown_lever(std::string_view word) {
  std::vector<std::string_view> names{"all"};
  for (const NamedLever& named : named_levers) names.push_back(named.name);
  std::string hint = did_you_mean(word, names);
  if (hint.empty()) hint = fmt::format("it is all, or of: {}", fmt::join(names, ", "));
  return failure(fmt::format("'{}' is no means of placement", word), std::move(hint));
}

}  // namespace

Result<Levers> parse_levers(std::string_view text) {
  Levers levers = no_levers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word == "all") {
      levers = {};
      continue;
    }
    const auto named = std::ranges::find(named_levers, word, &NamedLever::name);
    if (named == named_levers.end()) return unknown_lever(word);
    levers.*named->lever = true;
  }
  return levers;
}

std::string to_string(const Levers& levers) {
  if (levers == Levers{}) return "all";
  std::vector<std::string_view> names;
  for (const NamedLever& named : named_levers) {
    if (levers.*named.lever) names.push_back(named.name);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace stowage
