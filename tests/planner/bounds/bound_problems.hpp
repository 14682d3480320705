// Converts residency problems to the form of the checker of bounds, so that both sides can be
// compared.
#pragma once

#include "planner/bounds/bound_problem.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage::test {

inline Side side_of(Pin pin) {
  return pin == Pin::free ? Side::open : pin == Pin::gpu ? Side::gpu : Side::away;
}

/// Storages are numbered as the items.
inline BoundProblem bound_problem_of(const ResidencyProblem& problem, Bytes limit) {
  BoundProblem result;
  result.limit = limit.count();
  for (const Operation& operation : problem.operations) {
    BoundNode node;
    for (const EngineCost& engine : operation.engines) {
      node.engines.push_back({engine.seconds, engine.workspace.count()});
    }
    node.cpu_cost = operation.cpu_seconds;
    node.temporaries = operation.temporaries.count();
    node.side = side_of(operation.pin);
    result.nodes.push_back(std::move(node));
  }
  for (const Item& item : problem.items) {
    BoundItem of;
    of.number = static_cast<std::int32_t>(result.items.size());
    of.bytes = item.bytes.count();
    for (const Touch& touch : item.touches) {
      of.touches.push_back({touch.step, touch.reads, touch.writes});
    }
    of.goes_round = item.wraps;
    of.host_at_start = item.host_at_start;
    of.upload = item.h2d_seconds;
    of.download = item.d2h_seconds;
    const std::size_t gaps = item.touches.size() - (item.wraps ? 0 : 1);
    for (std::size_t gap = 0; gap < gaps; ++gap) {
      const GapPin pin = gap_pin(item, static_cast<std::int32_t>(gap));
      of.gaps.push_back(pin == GapPin::free       ? Side::open
                        : pin == GapPin::resident ? Side::gpu
                                                  : Side::away);
    }
    result.items.push_back(std::move(of));
  }
  return result;
}

}  // namespace stowage::test
