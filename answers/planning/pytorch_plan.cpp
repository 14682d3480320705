#include "answers/planning/pytorch_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "answers/planning/prepare_plan.hpp"
#include "answers/question/question_error.hpp"
#include "answers/subject/notes.hpp"
#include "answers/subject/workspaces.hpp"
#include "estimator/runtime/process_overhead.hpp"
#include "planner/propose/proposals.hpp"

namespace stowage {

namespace {

// The totals of larger cards, and how many are asked about.
constexpr Bytes asked_unit_of_card = 64_MiB;
constexpr int most_larger_cards = 6;
// So much more is asked for where nothing is missing, and yet no proposal may be taken unasked.
constexpr std::int64_t parts_of_card = 8;

bool may_be_taken(const Host& host, const PytorchProposal& proposal) {
  return !proposal.changes_training && proposal.plan.totals.pinned <= host.pinned_limit;
}

/// The one that is asked for, else the shortest step of those that leave the training as it is and
/// that the host holds.
Result<std::optional<std::size_t>> chosen_of(const PlanQuestion& question, const Host& host,
                                             const std::vector<PytorchProposal>& proposals) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    if (question.choice.empty() ? may_be_taken(host, proposals[i])
                                : proposals[i].name == question.choice) {
      return std::optional(i);
    }
    names.push_back(proposals[i].name);
  }
  if (question.choice.empty()) return std::nullopt;
  std::string hint = did_you_mean(question.choice, names);
  if (hint.empty()) hint = fmt::format("there are {}", fmt::join(names, ", "));
  return failure(question_error(
      fmt::format("`choose`: no proposal is called '{}'", question.choice), std::move(hint)));
}

std::optional<WithEveryMeans> every_means_of(PlanRequest request, WorkspaceSource& workspaces,
                                             const ProposalOptions& options) {
  request.budget = request.available;
  request.levers = {};
  const auto plans = make_plans(request, workspaces, options);
  if (!plans) return std::nullopt;
  const Plan* best = nullptr;
  for (const Plan& plan : *plans) {
    if (!why_not_taken(plan, request.host).empty()) continue;
    if (best == nullptr || plan.totals.step_seconds < best->totals.step_seconds) best = &plan;
  }
  if (best == nullptr) return std::nullopt;
  return WithEveryMeans{best->totals.step_seconds, best->totals.arena};
}

/// Asks about cards that have what is missing besides, until a proposal fits.
std::optional<EnoughMemory> enough_memory(PytorchRequest request, Bytes missing,
                                          WorkspaceSource& workspaces, ProposalOptions options) {
  options.has_plan = {};
  options.missing = [&](Bytes still) { missing = still; };
  Card& card = request.plan.card;
  for (int i = 0; i < most_larger_cards; ++i) {
    card.cuda_total = round_up(card.cuda_total + missing, asked_unit_of_card);
    request.plan.available = allocator_limit(*request.plan.document.graph, card, request.process);
    request.plan.budget = request.plan.available;
    missing = Bytes(card.cuda_total.count() / parts_of_card);
    const auto found = make_pytorch_plans(request, workspaces, options);
    if (!found) continue;
    for (const PytorchProposal& proposal : *found) {
      if (may_be_taken(request.plan.host, proposal)) {
        return EnoughMemory{card.cuda_total, proposal.name};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Result<PytorchAnswer> answer_for_pytorch(const PlanQuestion& question, const PlanWatch& watch) {
  auto prepared = prepare_plan(question);
  if (!prepared) return tl::unexpected(std::move(prepared.error()));
  PytorchRequest request{.plan = std::move(prepared->request), .process = prepared->process};
  request.plan.available =
      allocator_limit(*request.plan.document.graph, request.plan.card, request.process);
  request.plan.budget = request.plan.available;
  const Workspaces workspaces =
      Workspaces::as_asked(question.step, request.plan.card, request.process.runtime);
  PytorchAnswer found{.process = prepared->process, .notes = std::move(prepared->notes)};
  Bytes missing;
  ProposalOptions options{.effort = question.effort, .cancelled = watch.is_cancelled};
  bool is_too_small = false;
  options.missing = [&](Bytes lacked) {
    missing = lacked;
    is_too_small = true;
  };
  options.has_plan = [&] {
    if (watch.reached) watch.reached(PlanStage::improving);
  };
  auto proposals = make_pytorch_plans(request, workspaces.source(), options);
  append_notes(found.notes, workspaces.notes());
  if (!proposals && !is_too_small) return tl::unexpected(std::move(proposals.error()));
  if (!proposals) {
    found.why_none = std::move(proposals.error());
    found.enough = enough_memory(request, missing, workspaces.source(), options);
  } else {
    found.proposals = *std::move(proposals);
    const auto chosen = chosen_of(question, request.plan.host, found.proposals);
    if (!chosen) return tl::unexpected(chosen.error());
    found.chosen = *chosen;
    const bool is_over = watch.is_cancelled && watch.is_cancelled();
    if (found.proposals.front().name != unchanged_step && !is_over) {
      found.every_means = every_means_of(request.plan, workspaces.source(), options);
    }
  }
  found.was_interrupted = watch.is_cancelled && watch.is_cancelled();
  found.request = std::move(request.plan);
  return found;
}

}  // namespace stowage
