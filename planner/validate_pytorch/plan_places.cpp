#include "planner/validate_pytorch/plan_places.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace stowage {

namespace {

std::optional<JsonValue> child_of(const JsonValue& value, const PlanPlaces::PathPart& part) {
  if (const auto* const member = std::get_if<std::string_view>(&part)) {
    return value.is(JsonValue::Kind::object) ? value.find(*member) : std::nullopt;
  }
  const std::size_t index = std::get<std::size_t>(part);
  if (!value.is(JsonValue::Kind::array) || index >= value.size()) return std::nullopt;
  auto at = value.begin();
  for (std::size_t i = 0; i < index; ++i) ++at;
  return *at;
}

}  // namespace

PlanPlaces::PlanPlaces(SourceTextPtr source) : tree_(read_json(std::move(source))) {}

std::string PlanPlaces::at(std::initializer_list<PathPart> path) const {
  if (!tree_) return "the plan";
  JsonValue value = tree_->root();
  for (const PathPart& part : path) {
    const auto child = child_of(value, part);
    if (!child) break;
    value = *child;
  }
  const SourceSpan span = value.span();
  return fmt::format("{}:{}:{}", span.source->name, span.line, span.column);
}

}  // namespace stowage
