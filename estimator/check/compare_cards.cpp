#include "estimator/check/compare_cards.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>

#include "estimator/base/parallel.hpp"
#include "estimator/check/shared_replays.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/runtime/runtime_buffers.hpp"

namespace stowage {

namespace {

void take_check(CardAnswer& answer, const CheckReport& report, std::int64_t batch) {
  answer.fits = report.fits;
  answer.needed = report.device_bytes;
  answer.needed_at = batch;
  answer.available = report.available_bytes;
  answer.headroom = report.headroom;
  answer.workspaces = report.workspace_origin;
}

Result<CardAnswer> answer_on_card(const CardCase& of, WorkspaceSource& source,
                                  std::shared_ptr<SharedReplays> replays) {
  CardAnswer answer;
  std::int64_t batch = of.batch.value_or(1);
  if (of.any_batch) {
    const auto report = find_batch(of.graph, of.card,
                                   {.check = of.settings,
                                    .margin = of.margin,
                                    .in_full = false,
                                    .replays = std::move(replays)},
                                   source);
    if (!report) return tl::unexpected(report.error());
    answer.largest = report->largest;
    answer.recommended = report->recommended;
    answer.keeps_margin = report->keeps_margin;
    answer.all_tried = report->all_tried;
    answer.unlimited = report->unlimited;
    if (!of.batch && report->largest > 0) {
      batch = report->recommended > 0 ? report->recommended : report->largest;
    }
  }
  const auto step = size_step(of.graph, batch, source);
  if (!step) return tl::unexpected(step.error());
  take_check(answer, check(*step, of.card, of.settings), batch);
  return answer;
}

/// One for each step beside the same buffers.
class ReplaysOfCases {
 public:
  std::shared_ptr<SharedReplays> of(const CardCase& one) {
    if (!SharedReplays::serves(*one.graph, one.settings)) return nullptr;
    std::vector<RuntimeBuffer> buffers = runtime_buffers(*one.graph, one.card, one.settings);
    const std::shared_ptr<const StepGraph>& graph = first_alike(one.graph);
    const auto known = std::ranges::find_if(all_, [&](const std::shared_ptr<SharedReplays>& runs) {
      return runs->matches(*graph, buffers);
    });
    if (known != all_.end()) return *known;
    all_.push_back(
        std::make_shared<SharedReplays>(graph, std::move(buffers), one.settings.allocator));
    return all_.back();
  }

 private:
  /// The first of the graphs that runs alike: each is compared once, and not again for each card.
  const std::shared_ptr<const StepGraph>& first_alike(
      const std::shared_ptr<const StepGraph>& graph) {
    const auto known = first_alike_.find(graph.get());
    if (known != first_alike_.end()) return known->second;
    const auto alike = std::ranges::find_if(first_alike_, [&](const auto& entry) {
      return equal_except_capability(*entry.second, *graph);
    });
    const auto first = alike == first_alike_.end() ? graph : alike->second;
    return first_alike_.emplace(graph.get(), first).first->second;
  }

  std::map<const StepGraph*, std::shared_ptr<const StepGraph>> first_alike_;
  std::vector<std::shared_ptr<SharedReplays>> all_;
};

}  // namespace

std::vector<Result<CardAnswer>> compare_cards(const std::vector<CardCase>& cases,
                                              const std::vector<WorkspaceSource*>& sources) {
  assert(cases.size() == sources.size());
  std::vector<Result<CardAnswer>> answers(cases.size(), CardAnswer{});
  std::vector<std::shared_ptr<SharedReplays>> replays;
  std::vector<std::size_t> together, one_by_one;
  ReplaysOfCases runs;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    replays.push_back(runs.of(cases[i]));
    (cases[i].alone ? one_by_one : together).push_back(i);
  }
  // Most batches are tried on large cards: those first, so that all threads end at about once.
  std::ranges::stable_sort(together, std::greater(),
                           [&](std::size_t i) { return cases[i].card.cuda_total; });
  const auto answer = [&](std::size_t i) {
    answers[i] = answer_on_card(cases[i], *sources[i], replays[i]);
  };
  for_each_index(together.size(), [&](std::size_t i) { answer(together[i]); });
  for (const std::size_t i : one_by_one) answer(i);
  return answers;
}

}  // namespace stowage
