#include "planner/problem/work_budget.hpp"

#include <algorithm>
#include <utility>

namespace stowage {
namespace {

constexpr std::int64_t least_parts = 50;  // of the whole search: the least that a part gets

}  // namespace

// In integers: a product in double precision could differ from machine to machine.
Work operator*(double share, Work of) {
  constexpr std::int64_t parts = 1000;
  const auto taken = static_cast<std::int64_t>(share * static_cast<double>(parts) + 0.5);
  return {of.units / parts * taken + of.units % parts * taken / parts};
}

WorkBudget::WorkBudget(Work limit, SearchStops stops)
    : limit_(limit), least_part_{limit.units / least_parts}, own_stops_(std::move(stops)) {}

WorkBudget::WorkBudget(WorkBudget& whole, Work limit)
    : limit_(limit), least_part_(whole.least_part_), whole_(&whole), stops_(whole.stops_) {}

WorkBudget::~WorkBudget() {
  if (whole_ != nullptr) whole_->spend(spent_.units);
}

Work WorkBudget::left() const { return {std::max<std::int64_t>(0, limit_.units - spent_.units)}; }

WorkBudget WorkBudget::part(double share) {
  return WorkBudget(*this, std::max(share * left(), least_part_));
}

bool WorkBudget::is_over() const {
  return is_spent() || is_cancelled() || (stops_->out_of_time && stops_->out_of_time());
}

std::deque<WorkBudget> equal_parts(WorkBudget& whole, std::size_t count, double share) {
  const Work each = whole.part(share).limit();
  std::deque<WorkBudget> parts;
  for (std::size_t i = 0; i < count; ++i) parts.emplace_back(whole, each);
  return parts;
}

}  // namespace stowage
