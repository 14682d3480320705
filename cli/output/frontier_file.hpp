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

struct FrontierTitle {
  std::string_view text;
  Bytes card_budget;  ///< what the card leaves for the arena: a line of the drawing
  std::string_view card;
};

/// CSV: a row a budget, bytes and seconds. SVG: the step over the budget, with the bound below it,
/// and where the card is.
[[nodiscard]] std::string frontier_text(const std::vector<FrontierPoint>& points,
                                        FrontierFormat format, const FrontierTitle& title);

}  // namespace stowage
