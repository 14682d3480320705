#include "planner/solve/below_floor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "planner/problem/versions.hpp"

namespace stowage {
namespace {

constexpr std::size_t shown_parts = 8;

struct Part {
  Bytes bytes;
  std::string what;
};

/// Whether a gap that is pinned resident has the step inside it or at one of its ends.
bool is_kept(const Item& item, std::int32_t step, std::int32_t steps) {
  for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
    if (gap_pin(item, gap) != GapPin::resident) continue;
    const std::size_t next = (static_cast<std::size_t>(gap) + 1) % item.touches.size();
    if (item.touches[static_cast<std::size_t>(gap)].step == step) return true;
    if (item.touches[next].step == step || steps_inside(item, gap, steps).contains(step))
      return true;
  }
  return false;
}

bool touches(const Item& item, std::int32_t step) {
  return std::ranges::find(item.touches, step, &Touch::step) != item.touches.end();
}

Bytes smallest_workspace(const Operation& operation) {
  return std::ranges::min_element(operation.engines, {}, &EngineCost::workspace)->workspace;
}

}  // namespace

// 1. Collects what is on the GPU at the floor's step: the operation's own items, workspace and
//    temporaries if it has to run there, and the items that are pinned to stay.
// 2. Writes the message, which names the kept bytes if there are any.
// 3. Adds a note for each of the largest parts, and one for the rest.
Diagnostic below_floor(const ResidencyProblem& problem, GpuBudget budget, const Floor& floor) {
  const Operation& operation = problem.operations[static_cast<std::size_t>(floor.step)];
  const auto steps = static_cast<std::int32_t>(problem.operations.size());
  const bool runs_there = operation.pin == Pin::gpu;
  std::vector<Part> parts;
  Bytes kept;
  for (const Item& item : problem.items) {
    if (runs_there && touches(item, floor.step)) {
      parts.push_back({item.bytes, fmt::format("'{}'", item.name)});
    } else if (is_kept(item, floor.step, steps)) {
      parts.push_back({item.bytes, fmt::format("'{}', which is kept on the GPU,", item.name)});
      kept += item.bytes;
    }
  }
  const Bytes workspace = smallest_workspace(operation);
  if (runs_there && workspace > Bytes()) parts.push_back({workspace, "its least workspace"});
  if (runs_there && operation.temporaries > Bytes()) {
    parts.push_back({operation.temporaries, "what it uses for itself"});
  }
  std::ranges::stable_sort(parts, std::greater<>(), &Part::bytes);
  Diagnostic diagnostic;
  diagnostic.message =
      kept == Bytes()
          ? fmt::format("a budget of {} is below the {} that '{}' alone needs on the GPU",
                        format_bytes(budget.bytes), format_bytes(floor.bytes), operation.name)
          : fmt::format(
                "a budget of {} is below the {} that are on the GPU while '{}' runs: {} "
                "are its own, {} are kept there beside it",
                format_bytes(budget.bytes), format_bytes(floor.bytes), operation.name,
                format_bytes(floor.bytes - kept), format_bytes(kept));
  const auto note = [&](std::string text) {
    diagnostic.notes.push_back({.severity = Severity::note, .message = std::move(text)});
  };
  Bytes others;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i < shown_parts) {
      note(fmt::format("{} takes {}", parts[i].what, format_bytes(parts[i].bytes)));
    } else {
      others += parts[i].bytes;
    }
  }
  if (parts.size() > shown_parts) {
    note(fmt::format("{} more take {}", parts.size() - shown_parts, format_bytes(others)));
  }
  return diagnostic;
}

}  // namespace stowage
