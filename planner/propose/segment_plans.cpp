#include "planner/propose/segment_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "estimator/base/live_sum.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/rewrite/segments.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/propose/rewritten_steps.hpp"
#include "planner/propose/trials.hpp"

namespace stowage {
namespace {

constexpr std::size_t most_nodes = 10'000;
constexpr int most_counts = 4;                   // of chunks, each at least twice the one before
constexpr std::int64_t shares[] = {64, 52, 40};  // 64ths of the budget: the rest is for copies

Bytes sum_of(const std::vector<Bytes>& all) {
  Bytes sum;
  for (const Bytes bytes : all) sum += bytes;
  return sum;
}

/// What each node of a chunk takes beside all weights, with everything on the GPU.
std::optional<std::vector<Bytes>> bytes_beside_weights(const Planning& planning,
                                                       const StepGraph& chunks, Bytes weights) {
  const auto of = make_case(planning, std::make_shared<const StepGraph>(chunks));
  if (!of) return std::nullopt;
  const Placement placement = all_gpu_placement(of->on_gpu, planning.request.budget);
  const Evaluation evaluation = evaluate(of->on_gpu, placement);
  if (!evaluation.consistent) return std::nullopt;
  std::vector<Bytes> beside;
  const MicroBatch& part = chunks.micro_batch;
  for (std::size_t i = part.first_node.index(); i < part.end_node.index(); ++i) {
    beside.push_back(std::max(evaluation.memory[i] - weights, Bytes()));
  }
  return beside;
}

class SegmentSearch {
 public:
  SegmentSearch(const Planning& planning, const StepCase& whole)
      : planning_(planning), whole_(whole), costs_(segment_costs(whole.step)) {}

  std::optional<Plan> run() && {
    const StepGraph& one = *whole_.step.graph;
    std::int64_t least = 0;
    int counts = 0;
    for (const std::int64_t parts : part_counts(planning_, whole_)) {
      if (parts < least) continue;
      if (nodes_with_micro_batches(one, parts) > most_nodes) break;
      if (is_over()) {
        planning_.gaps.add_untried("segments");
        break;
      }
      const auto chunks = with_micro_batches(one, parts);
      if (!chunks) break;
      const Bytes weights = sum_of(costs_.weights);
      const auto beside = bytes_beside_weights(planning_, *chunks, weights);
      if (!beside) break;
      const Bytes most = *std::ranges::max_element(*beside);
      if (planning_.request.budget.fits(weights + most)) break;  // and beside smaller chunks
      if (!try_limits(*chunks, *beside)) continue;
      least = 2 * parts;
      if (++counts == most_counts) break;
    }
    return best_of(planning_, std::move(trials_), Effort::quick);
  }

 private:
  [[nodiscard]] bool is_over() const {
    return planning_.is_cancelled() || (!trials_.empty() && planning_.is_over());
  }

  /// False: a node of the chunks takes more than the budget.
  bool try_limits(const StepGraph& chunks, const std::vector<Bytes>& beside) {
    std::set<std::vector<std::int32_t>> tried;
    for (const std::int64_t share : shares) {
      if (is_over()) break;
      const Bytes limit = planning_.request.budget.sixty_fourths(share).bytes;
      const auto borders = cheapest_borders(costs_, beside, limit);
      if (!borders || borders->empty() || !tried.insert(*borders).second) continue;
      auto segments = with_segments(chunks, *borders);
      if (!segments) continue;
      std::string name = fmt::format("segments-{}-{}", segment_count(*segments),
                                     parts_name(*segments, segments->settings.micro_batches));
      auto of = case_of(planning_, *std::move(segments));
      if (!of) continue;
      auto trial = trial_of(planning_, *std::move(of), std::move(name), {});
      if (trial) trials_.push_back(*std::move(trial));
    }
    return !tried.empty();
  }

  const Planning& planning_;
  const StepCase& whole_;
  SegmentCosts costs_;
  Trials trials_;
};

}  // namespace

SegmentCosts segment_costs(const SizedStep& step) {
  const StepGraph& graph = *step.graph;
  const std::size_t first = graph.micro_batch.first_node.index();
  const std::size_t end = graph.micro_batch.end_node.index();
  const std::size_t count = end - first;
  struct Reach {
    std::size_t begin = 0, end = 0;  // the first node that touches it, the last
    bool is_touched = false;
  };
  std::vector<Reach> reach(graph.storages.size());
  for (std::size_t i = first; i < end; ++i) {
    const auto touch = [&](const TensorView& view) {
      Reach& of = reach[view.storage.index()];
      if (!of.is_touched) of.begin = i - first;
      of.end = i - first;
      of.is_touched = true;
    };
    for (const TensorView& read : graph.nodes[i].reads) touch(read);
    for (const TensorView& written : graph.nodes[i].writes) touch(written);
  }
  SegmentCosts costs{std::vector<Bytes>(count), {}};
  LiveSum crossing(static_cast<std::int32_t>(count));
  for (std::size_t s = 0; s < reach.size(); ++s) {
    if (!reach[s].is_touched) continue;
    const Storage& storage = graph.storages[s];
    if (storage.persistence == Persistence::persistent) {
      costs.weights[reach[s].begin] += step.storage_bytes[s];
    } else if (storage.persistence == Persistence::transient) {
      crossing.add({static_cast<std::int32_t>(reach[s].begin) + 1,
                    static_cast<std::int32_t>(reach[s].end) + 1},
                   step.storage_bytes[s]);
    }
  }
  costs.crossing = std::move(crossing).by_step();
  return costs;
}

std::optional<std::vector<std::int32_t>> cheapest_borders(const SegmentCosts& costs,
                                                          const std::vector<Bytes>& beside,
                                                          Bytes limit) {
  const std::size_t count = costs.weights.size();
  std::vector<Bytes> before{Bytes()};  // weights of the nodes before
  for (std::size_t i = 0; i < count; ++i) {
    if (costs.weights[i] + beside[i] > limit) return std::nullopt;
    before.push_back(before.back() + costs.weights[i]);
  }
  struct Cut {
    Bytes crossing;
    std::int32_t borders = 0;
    std::int32_t from = 0;  // where the segment that ends here begins
    auto operator<=>(const Cut&) const = default;
  };
  std::vector<Cut> best(count + 1);
  std::set<std::tuple<Bytes, std::int32_t, std::int32_t>> window;  // where a segment may begin
  std::multiset<Bytes> takes;  // by the nodes from the oldest beginning on
  std::size_t oldest = 0;
  for (std::size_t end = 1; end <= count; ++end) {
    const std::size_t begin = end - 1;
    const Bytes crosses = begin == 0 ? Bytes() : costs.crossing[begin];
    window.emplace(best[begin].crossing + crosses, best[begin].borders + (begin > 0 ? 1 : 0),
                   static_cast<std::int32_t>(begin));
    takes.insert(beside[begin]);
    for (; before[end] - before[oldest] + *takes.rbegin() > limit; ++oldest) {
      takes.erase(takes.find(beside[oldest]));
      const Bytes crossed = oldest == 0 ? Bytes() : costs.crossing[oldest];
      window.erase({best[oldest].crossing + crossed, best[oldest].borders + (oldest > 0 ? 1 : 0),
                    static_cast<std::int32_t>(oldest)});
    }
    const auto& [crossing, borders, from] = *window.begin();
    best[end] = {crossing, borders, from};
  }
  std::vector<std::int32_t> borders;
  for (auto at = static_cast<std::size_t>(best[count].from); at > 0;
       at = static_cast<std::size_t>(best[at].from)) {
    borders.push_back(static_cast<std::int32_t>(at));
  }
  std::ranges::reverse(borders);
  return borders;
}

std::optional<Plan> segments_plan(const Planning& planning, const StepCase& whole) {
  const StepGraph& one = *whole.step.graph;
  if (one.settings.mode != Mode::inference || part_counts(planning, whole).empty()) {
    return std::nullopt;
  }
  return SegmentSearch(planning, whole).run();
}

}  // namespace stowage
