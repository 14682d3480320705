#include "answers/planning/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "answers/question/question_error.hpp"
#include "answers/subject/notes.hpp"
#include "answers/subject/workspaces.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/order/any_order.hpp"
#include "estimator/order/order_problem.hpp"
#include "gpu_probe/host/host_backend.hpp"
#include "planner/problem/step_pins.hpp"
#include "planner/propose/proposals.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

namespace {

void tell(const PlanWatch& watch, PlanStage stage) {
  if (watch.reached) watch.reached(stage);
}

bool is_cancelled(const PlanWatch& watch) { return watch.is_cancelled && watch.is_cancelled(); }

/// Why there is no plan on a card that has no room for an arena.
Diagnostic no_arena(const Card& card) {
  return {.message = fmt::format("{} has nothing left for an arena: {} of CUDA total, less the "
                                 "context, what is in use and memory that must stay free",
                                 card.name, format_bytes(card.cuda_total))};
}

// What is wrong with the step, the batch or the pins is the user's mistake; what is left after this
// and still finds no plan is a budget that is too small, which is an answer. Gives what placement
// was softened.
Result<Diagnostics> check_step(const PlanRequest& request) {
  const auto& graph = request.document.graph;
  const auto micro_batch = micro_batch_of(request.batch, graph->settings.micro_batches);
  const auto sized = size_storages(graph, micro_batch.value());
  if (!sized) return tl::unexpected(sized.error());
  return apply_pins(*graph, request.document.layers, request.pins).map([](StepPins pins) {
    return std::move(pins.notes);
  });
}

/// The plan with everything on the GPU, where `minimised` is automatic and there is one. Else the
/// best of those that leave the training as it is and that the host can hold; none of these: none.
std::optional<std::size_t> best_plan(const PlanQuestion& question, const Host& host,
                                     const std::vector<Plan>& plans) {
  const auto rank = [&](const Plan& plan) {
    const auto bytes = static_cast<double>((plan.totals.h2d + plan.totals.d2h).count());
    const double seconds = plan.totals.step_seconds;
    return question.minimised == PlanAim::pcie ? std::pair(bytes, seconds)
                                               : std::pair(seconds, bytes);
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!why_not_taken(plans[i], host).empty()) continue;
    if (question.minimised == PlanAim::automatic && plans[i].name == all_gpu_name) return i;
    if (!best || rank(plans[i]) < rank(plans[*best])) best = i;
  }
  return best;
}

/// The one that is asked for, else the best one.
Result<std::optional<std::size_t>> chosen_plan(const PlanQuestion& question, const Host& host,
                                               const std::vector<Plan>& plans) {
  const std::string& name = question.choice;
  if (name.empty()) return best_plan(question, host, plans);
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].name == name) return std::optional(i);
    names.push_back(plans[i].name);
  }
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = fmt::format("there are {}", fmt::join(names, ", "));
  return failure(
      question_error(fmt::format("`choose`: no proposal is called '{}'", name), std::move(hint)));
}

void require_valid(const Plan& plan, const PlanValidation& validation) {
  if (validation.passed()) return;
  std::string why = fmt::format("the planner's own plan '{}' is not valid", plan.name);
  for (const Check& check : validation.checks) {
    if (!check.passed) why += fmt::format("\n  {}: {}", check.name, check.detail);
  }
  throw std::logic_error(why);
}

Result<Proof> run_on_host(const Plan& plan) {
  auto backend = open_host_backend();
  if (!backend) return tl::unexpected(std::move(backend.error()));
  return run_plan(plan, **backend).map([](const RunReport& run) {
    return run.passed() ? Proof::passed : Proof::failed;
  });
}

/// For runtimes that run branches in any order: what the plan's step takes at most.
std::optional<AnyOrderPeak> any_order_of(const Plan& plan) {
  const OrderProblem problem = order_problem(plan.step);
  const auto worst = any_order_peak(problem);
  if (!worst) return std::nullopt;
  std::vector<std::int32_t> given(plan.nodes.size());
  std::iota(given.begin(), given.end(), 0);
  return AnyOrderPeak{peak_of_order(problem, given), *worst};
}

/// How one search is run, and whether it was seen to be out of time.
class Search {
 public:
  Search(const PlanQuestion& question, const PlanWatch& watch)
      : options_{.effort = question.effort,
                 .least_pcie = question.minimised == PlanAim::pcie,
                 .cancelled = watch.is_cancelled} {
    if (!question.time_limit_seconds) return;
    using Clock = std::chrono::steady_clock;
    const auto limit = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(*question.time_limit_seconds));
    options_.out_of_time = [end = Clock::now() + limit, seen = seen_] {
      if (Clock::now() < end) return false;
      *seen = true;
      return true;
    };
  }

  [[nodiscard]] ProposalOptions& options() { return options_; }
  [[nodiscard]] bool ran_out_of_time() const { return *seen_; }

 private:
  ProposalOptions options_;
  std::shared_ptr<std::atomic<bool>> seen_ = std::make_shared<std::atomic<bool>>(false);
};

/// The answer where no plan keeps within the budget.
PlanAnswer no_plan(const PlanQuestion& question, PreparedPlan prepared, Diagnostics why,
                   const Workspaces& workspaces, const PlanWatch& watch) {
  PlanAnswer found{.why_none = std::move(why), .notes = std::move(prepared.notes)};
  append_notes(found.notes, workspaces.notes());
  found.least_memory = find_least_memory(question, prepared.request, prepared.arena_of,
                                         workspaces.source(), Search(question, watch).options());
  found.request = std::move(prepared.request);
  return found;
}

/// Where there are plans and none is taken by itself: memory of the host's that one of them needs,
/// else of the GPU's.
void add_what_would_do(const PlanQuestion& question, const PreparedPlan& prepared,
                       const Workspaces& workspaces, const PlanWatch& watch, PlanAnswer& found) {
  found.least_host_memory = least_host_memory(found.plans);
  if (found.least_host_memory) return;
  found.least_memory = find_least_memory(question, prepared.request, prepared.arena_of,
                                         workspaces.source(), Search(question, watch).options());
}

/// Reads what the question names and sees whether the step can be planned at all.
Result<PreparedPlan> prepared_question(const PlanQuestion& question) {
  auto prepared = prepare_plan(question);
  if (!prepared) return prepared;
  auto softened = check_step(prepared->request);
  if (!softened) return tl::unexpected(std::move(softened.error()));
  append_notes(prepared->notes, *std::move(softened));
  return prepared;
}

/// Searches all plans within the budget. Tells `watch` when there is a first.
struct FoundPlans {
  Result<std::vector<Plan>> plans;
  SearchOutcome outcome;
  bool ran_out_of_time = false;
  std::optional<DecodePlan> decode = {};
};
FoundPlans search_plans(const PlanQuestion& question, const PreparedPlan& prepared,
                        const Workspaces& workspaces, const PlanWatch& watch) {
  const PlanRequest& request = prepared.request;
  Search search(question, watch);
  FoundPlans found;
  ProposalOptions& options = search.options();
  options.has_plan = [&] { tell(watch, PlanStage::improving); };
  options.ended = [&](const SearchOutcome& outcome) { found.outcome = outcome; };
  if (prepared.serving) {
    ServedPlans served =
        make_served_plans(request, prepared.serving->decode, workspaces.source(), options);
    found.plans = std::move(served.plans);
    found.decode = served.decode;
    found.outcome = std::move(served.outcome);
  } else {
    found.plans = make_plans(request, workspaces.source(), options);
  }
  found.ran_out_of_time = search.ran_out_of_time();
  return found;
}

/// Every plan on paper, and the chosen one on the host where that is asked for.
Result<void> prove(const PlanQuestion& question, const Workspaces& workspaces,
                   const PlanWatch& watch, PlanAnswer& found) {
  for (const Plan& candidate : found.plans) {
    require_valid(candidate, validate_plan(candidate, workspaces.source()));
    found.proofs.push_back({.model = Proof::passed});
  }
  if (!found.chosen || !question.run_on_host || is_cancelled(watch)) return {};
  tell(watch, PlanStage::running_on_host);
  const auto run = run_on_host(found.plans[*found.chosen]);
  if (!run) return tl::unexpected(run.error());
  found.proofs[*found.chosen].host = *run;
  return {};
}

}  // namespace

bool PlanAnswer::has_valid_plan() const { return chosen && proofs[*chosen].host != Proof::failed; }

// Prepares the question, searches within its budget, chooses, proves, and says what would do where
// nothing is chosen.
Result<PlanAnswer> answer(const PlanQuestion& question, const PlanWatch& watch) {
  auto prepared = prepared_question(question);
  if (!prepared) return tl::unexpected(std::move(prepared.error()));
  PlanRequest& request = prepared->request;
  const auto shared = std::make_shared<const Workspaces>(
      Workspaces::as_asked(question.step, request.card, executed_runtime));
  const Workspaces& workspaces = *shared;
  if (question.card && request.available <= Bytes()) {
    request.budget = Bytes();
    const Diagnostic why = no_arena(request.card);
    return no_plan(question, *std::move(prepared), {why}, workspaces, watch);
  }
  if (question.budget_share) {
    if (auto set = set_share_of_budget(question, workspaces.source(), request); !set) {
      return tl::unexpected(set.error());
    }
  }
  auto [plans, outcome, ran_out_of_time, decode] =
      search_plans(question, *prepared, workspaces, watch);
  tell(watch, PlanStage::checking);
  if (!plans && is_cancelled(watch)) {
    return PlanAnswer{.request = std::move(request),
                      .was_interrupted = true,
                      .search = std::move(outcome),
                      .notes = std::move(prepared->notes)};
  }
  if (!plans) {
    auto none =
        no_plan(question, *std::move(prepared), std::move(plans.error()), workspaces, watch);
    none.search = std::move(outcome);
    none.ran_out_of_time = ran_out_of_time;
    return none;
  }
  const auto chosen = chosen_plan(question, request.host, *plans);
  if (!chosen) return tl::unexpected(chosen.error());
  PlanAnswer found{.plans = *std::move(plans),
                   .chosen = *chosen,
                   .serving = prepared->serving,
                   .decode = decode,
                   .ran_out_of_time = ran_out_of_time,
                   .search = std::move(outcome),
                   .workspaces = shared};
  found.took_all_gpu = question.choice.empty() && question.minimised == PlanAim::automatic &&
                       found.chosen && found.plans[*found.chosen].name == all_gpu_name;
  if (auto proved = prove(question, workspaces, watch, found); !proved) {
    return tl::unexpected(std::move(proved.error()));
  }
  found.any_order = any_order_of(found.plans.front());
  found.was_interrupted = is_cancelled(watch);
  found.notes = prepared->notes;
  append_notes(found.notes, workspaces.notes());
  if (!found.chosen) add_what_would_do(question, *prepared, workspaces, watch, found);
  found.request = std::move(request);
  return found;
}

Result<Frontier> frontier_of(const PlanQuestion& question, const PlanAnswer& answer,
                             const PlanWatch& watch) {
  std::vector<Plan> known;
  for (const Plan& plan : answer.plans) {
    if (why_not_taken(plan, answer.request.host).empty()) known.push_back(plan);
  }
  return frontier(answer.request, answer.workspaces->source(), Search(question, watch).options(),
                  known);
}

}  // namespace stowage
