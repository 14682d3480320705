// The frontier of step times over budgets, as a table and as a drawing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/propose/frontier.hpp"

namespace stowage {

enum class FrontierFormat { csv, svg };
/// By how the file's name ends; none: neither.
[[nodiscard]] std::optional<FrontierFormat> frontier_format(std::string_view path);

/// CSV: a row a budget, bytes and seconds. SVG: the step over the budget, with the bound below it.
[[nodiscard]] std::string frontier_text(const std::vector<FrontierPoint>& points,
                                        FrontierFormat format, std::string_view title);

}  // namespace stowage
