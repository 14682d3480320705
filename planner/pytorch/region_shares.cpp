#include "planner/pytorch/region_shares.hpp"

#include <fmt/format.h>

#include <cmath>

namespace stowage {

namespace {

// Of those regions that save most for their time.
constexpr double shares_of_regions[] = {0, 0.25, 0.5, 0.75, 1};

}  // namespace

std::vector<std::size_t> shares_of(const std::vector<ModuleRegion>& regions) {
  std::vector<std::size_t> counts;
  for (const double share : shares_of_regions) {
    const auto all = static_cast<double>(regions.size());
    const auto count = static_cast<std::size_t>(std::ceil(share * all));
    if (counts.empty() || counts.back() != count) counts.push_back(count);
  }
  return counts;
}

std::vector<ModuleRegion> first_of(const std::vector<ModuleRegion>& regions, std::size_t count) {
  return {regions.begin(), regions.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::string share_name(std::size_t count, std::size_t regions) {
  if (count == 0) return "offload";
  if (count == regions) return "checkpoint-all";
  return fmt::format("checkpoint-{}-of-{}", count, regions);
}

}  // namespace stowage
