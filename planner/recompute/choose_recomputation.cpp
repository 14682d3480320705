#include "planner/recompute/choose_recomputation.hpp"

#include <algorithm>
#include <cmath>

#include "planner/recompute/recompute_search.hpp"

namespace stowage {

namespace {

// The effort of a point, in nodes walked: a fifth of a second on one core of a server.
constexpr double nodes_a_point = 10e6;
constexpr double most_trials = 100'000, least_trials = 1'000;

std::int64_t trials_for(const SizedStep& step, double effort) {
  const double nodes = static_cast<double>(std::max<std::size_t>(1, step.graph->nodes.size()));
  const double trials = std::clamp(nodes_a_point / nodes, least_trials, most_trials);
  return std::llround(std::max(1.0, trials * effort));
}

/// The bytes that copies can bring down during the forward pass and back during the backward pass.
double hidden_bytes(const SizedStep& step, const Rates& rates) {
  double forward = 0, backward = 0;
  for (std::size_t i = 0; i < step.graph->nodes.size(); ++i) {
    const Phase phase = step.graph->nodes[i].phase;
    if (phase == Phase::update) continue;
    (phase == Phase::backward ? backward : forward) += gpu_seconds(rates, step, NodeId::of(i));
  }
  return std::min(forward * rates.d2h_bandwidth, backward * rates.h2d_bandwidth);
}

}  // namespace

std::vector<RecomputePoint> choose_recomputation(const SizedStep& step, const Rates& rates,
                                                 const RecomputeOptions& options) {
  const StepGraph& graph = *step.graph;
  if (graph.settings.mode != Mode::train || !graph.kernel_set().executable ||
      !graph.settings.recomputed.empty()) {
    return {};
  }
  RecomputeModel model(step, rates, options.pins);
  RecomputeChoice choice(model.decisions(), false);
  const Bytes whole = model.outcome(choice, options.budget.bytes).peak;
  if (options.budget.fits(whole) || choice.empty()) return {};
  const double above = static_cast<double>(options.budget.excess(whole).count());
  const double most_swapped = std::min(above, hidden_bytes(step, rates));
  std::vector<RecomputePoint> points;
  for (const double factor : options.swapped) {
    const Bytes limit =
        options.budget.bytes + Bytes(static_cast<std::int64_t>(factor * most_swapped));
    FoundChoice found = search_choice(
        model, step,
        {.limit = limit, .most_trials = trials_for(step, options.effort), .work = options.work},
        choice);
    choice = std::move(found.choice);  // less is recomputed from one to the next
    RecomputePoint point{.values = model.values(choice),
                         .extra_seconds = found.outcome.extra_seconds,
                         .live_peak = found.outcome.peak,
                         .limit = limit,
                         .fits = found.outcome.valid && found.outcome.peak <= limit};
    const bool is_new = points.empty() || points.back().values != point.values;
    if (found.outcome.valid && is_new && !point.values.empty()) points.push_back(std::move(point));
    if (options.work != nullptr && options.work->is_over()) break;
  }
  return points;
}

}  // namespace stowage
