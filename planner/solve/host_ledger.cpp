#include "planner/solve/host_ledger.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stowage {
namespace {

StepProfile below(Bytes limit, std::size_t steps) {
  return StepProfile(std::vector<std::int64_t>(steps, -limit.count()));
}

}  // namespace

HostLedger::HostLedger(const CutModel& model)
    : model_(model),
      stays_(model.problem->items.size()),
      pinned_(below(model.host.pinned, model.problem->operations.size())),
      all_(below(model.host.all, model.problem->operations.size())) {}

void HostLedger::add(std::int32_t item, StepRange range, bool crosses, std::int64_t sign) {
  const std::int64_t bytes = model_.problem->items[static_cast<std::size_t>(item)].bytes.count();
  if (model_.host.all != HostLimits::none) all_.add(range, sign * bytes);
  if (crosses && model_.host.pinned != HostLimits::none) pinned_.add(range, sign * bytes);
}

void HostLedger::set(std::int32_t item, HostStay stay) {
  HostStay& known = stays_[static_cast<std::size_t>(item)];
  // Most changes leave most ranges as they are.
  std::size_t same = 0;
  while (known.crosses == stay.crosses && same < known.ranges.size() && same < stay.ranges.size() &&
         known.ranges[same] == stay.ranges[same]) {
    ++same;
  }
  for (std::size_t i = same; i < known.ranges.size(); ++i) {
    add(item, known.ranges[i], known.crosses, -1);
  }
  for (std::size_t i = same; i < stay.ranges.size(); ++i) {
    add(item, stay.ranges[i], stay.crosses, 1);
  }
  known = std::move(stay);
}

void HostLedger::set_temporaries(std::int32_t operation, bool on_cpu) {
  const Operation& of = model_.problem->operations[static_cast<std::size_t>(operation)];
  const std::int64_t bytes = of.temporaries.count();
  if (bytes != 0 && model_.host.all != HostLimits::none)
    all_.add(StepRange::single(operation), on_cpu ? bytes : -bytes);
}

std::int64_t HostLedger::excess() const { return std::max(pinned_.largest(), all_.largest()); }

HostPlace HostLedger::worst() const {
  if (pinned_.largest() >= all_.largest()) return {true, pinned_.largest_at()};
  return {false, all_.largest_at()};
}

bool HostLedger::is_at(std::int32_t item, HostPlace place) const {
  const HostStay& of = stay(item);
  return (of.crosses || !place.pinned) &&
         std::ranges::any_of(of.ranges,
                             [&](const StepRange& range) { return range.contains(place.step); });
}

void HostLedger::set_prices(const HostPrices& prices) {
  prices_.reset();
  if (prices.empty()) return;
  const std::size_t steps = model_.problem->operations.size();
  prices_ = {PriceSums<double>(prices.all, steps), PriceSums<double>(prices.pinned, steps)};
}

Capacity HostLedger::cost(std::int32_t item, const HostStay& stay) const {
  double price = 0;
  for (const StepRange& range : stay.ranges) {
    price += prices_->all.in(range);
    if (stay.crosses) price += prices_->pinned.in(range);
  }
  const Bytes bytes = model_.problem->items[static_cast<std::size_t>(item)].bytes;
  const double cost = std::ldexp(price * static_cast<double>(bytes.count()), -model_.price_bits);
  return static_cast<Capacity>(std::min(cost, static_cast<double>(model_.cost_cap)));
}

}  // namespace stowage
