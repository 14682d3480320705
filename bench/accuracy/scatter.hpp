// A scatter plot of predicted against measured, as SVG.
#pragma once

#include <string>
#include <vector>

#include "bench/accuracy/score.hpp"

namespace stowage::accuracy {

struct Series {
  std::string name;
  std::vector<Pair> pairs;
};

/// Both axes logarithmic, in GiB; the diagonal is what it should be, dashed lines are 10 percent to
/// either side.
[[nodiscard]] std::string scatter_svg(const std::vector<Series>& series);

}  // namespace stowage::accuracy
