#include "planner/plan/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "cli/commands/commands.hpp"
#include "cli/options/arguments.hpp"
#include "cli/output/frontier_file.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/signals.hpp"
#include "cli/report/no_plan.hpp"
#include "cli/report/placement_report.hpp"
#include "cli/report/plan_report.hpp"
#include "cli/report/workspace_report.hpp"
#include "cli/requested/planning.hpp"
#include "cli/requested/requested_step.hpp"
#include "estimator/memory/sized_step.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/propose/proposals.hpp"

namespace stowage {

namespace {

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

Answer no_plan(const PlanningRequest& asked, const PreparedPlan& prepared, const Diagnostics& why,
               WorkspaceSource& workspaces) {
  Answer answer;
  answer.exit_code = ExitCode::clean_no;
  answer.report = no_plan_report(prepared.request, why);
  answer.report.notes = prepared.notes;
  add_least_memory(asked, prepared.request, prepared.arena_of, workspaces, answer.report);
  return answer;
}

/// Where there are plans and none is taken by itself: memory of the host's that one of them needs,
/// else of the GPU's.
void add_what_would_do(const PlanningRequest& asked, const PreparedPlan& prepared,
                       const std::vector<Plan>& plans, WorkspaceSource& workspaces,
                       Report& report) {
  const auto least = least_host_memory(plans);
  if (least) return add_least_host_memory(asked, *least, report);
  add_least_memory(asked, prepared.request, prepared.arena_of, workspaces, report);
}

Answer interrupted_early(const PreparedPlan& prepared) {
  Answer answer;
  answer.exit_code = ExitCode::interrupted;
  answer.report.notes = prepared.notes;
  answer.report.json = {{"plans", Json::Array{}}, {"budget_bytes", prepared.request.budget.bytes}};
  answer.report.say("interrupted before there was a plan", Tone::bad);
  return answer;
}

// The one that is asked for, else the fastest step, or the fewest bytes, of those that leave the
// training as it is and that the host can hold; none of these: null.
Result<std::optional<std::size_t>> chosen_plan(const PlanningRequest& asked, const Host& host,
                                               const std::vector<Plan>& plans) {
  const std::string& name = asked.choice;
  if (name.empty()) {
    const auto rank = [&](const Plan& plan) {
      const auto bytes = static_cast<double>((plan.totals.h2d + plan.totals.d2h).count());
      const double seconds = plan.totals.step_seconds;
      return asked.least_pcie ? std::pair(bytes, seconds) : std::pair(seconds, bytes);
    };
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (!why_not_taken(plans[i], host).empty()) continue;
      if (!best || rank(plans[i]) < rank(plans[*best])) best = i;
    }
    return best;
  }
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].name == name) return std::optional(i);
    names.push_back(plans[i].name);
  }
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = fmt::format("there are {}", fmt::join(names, ", "));
  return failure(command_line_error(fmt::format("--choose: no proposal is called '{}'", name),
                                    std::move(hint)));
}

void require_valid(const Plan& plan, const PlanValidation& validation) {
  if (validation.passed()) return;
  std::string why = fmt::format("the planner's own plan '{}' is not valid", plan.name);
  for (const Check& check : validation.checks) {
    if (!check.passed) why += fmt::format("\n  {}: {}", check.name, check.detail);
  }
  throw std::logic_error(why);
}

// The file itself is opened once the plan's is closed.
Result<void> check_frontier_file(const PlanningRequest& request) {
  if (request.frontier.empty()) return {};
  if (!frontier_format(request.frontier)) {
    return failure(command_line_error(
        fmt::format("--frontier {}: a name that ends in .csv or .svg says what it is to be",
                    request.frontier)));
  }
  if (request.frontier == request.output) {
    return failure(command_line_error("--output and --frontier name the same file"));
  }
  return OutputFile::open(request.frontier).map([](const OutputFile&) {});
}

Result<void> write_frontier(const PlanningRequest& request, const PlanRequest& planned,
                            WorkspaceSource& workspaces, Report& report) {
  const auto points =
      frontier(planned, workspaces,
               {.time_limit_seconds = request.time_limit_seconds, .cancelled = interrupted});
  if (!points) return tl::unexpected(points.error());
  auto file = OutputFile::open(request.frontier);
  if (!file) return tl::unexpected(std::move(file.error()));
  const std::string title = fmt::format("{}, batch {}, on {}", planned.document.graph->model,
                                        planned.batch.samples, planned.card.name);
  const FrontierFormat format = frontier_format(request.frontier).value();
  if (auto written = file->commit(frontier_text(*points, format, title)); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  report.json.emplace_back("frontier", request.frontier);
  report.say(fmt::format("the step's time at {} budgets is written to {}", points->size(),
                         request.frontier),
             Tone::good);
  return {};
}

}  // namespace

Result<Answer> run_planning(const PlanningRequest& request) {
  Progress progress("preparing the plan");
  auto prepared = requested_planning(request);
  if (!prepared) return tl::unexpected(prepared.error());
  const auto softened = check_step(prepared->request);
  if (!softened) return tl::unexpected(softened.error());
  prepared->note(*softened);

  const bool to_stdout = request.output == "-";
  if (auto writable = check_frontier_file(request); !writable) {
    return tl::unexpected(std::move(writable.error()));
  }
  std::optional<OutputFile> file;
  if (!request.output.empty() && !to_stdout) {
    auto opened = OutputFile::open(request.output);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    file.emplace(std::move(*opened));
  }

  CudnnWorkspaceSource workspaces(prepared->request.card, answer_folder(request.step.keep_answers));
  if (request.card && prepared->request.available <= Bytes()) {
    prepared->request.budget = Bytes();
    return no_plan(request, *prepared, {no_arena(prepared->request.card)}, workspaces);
  }
  if (request.budget_share) {
    if (auto set = set_share_of_budget(request, workspaces, prepared->request); !set) {
      return tl::unexpected(set.error());
    }
  }
  std::optional<StoppableSearch> search(std::in_place);
  const auto has_plan = [&] {
    search->has_result();
    progress.now("searching for better plans (Ctrl-C takes the best so far)");
  };
  const auto plans = make_plans(prepared->request, workspaces,
                                {.time_limit_seconds = request.time_limit_seconds,
                                 .cancelled = interrupted,
                                 .has_plan = has_plan});
  progress.now("checking the plans");
  if (!plans && interrupted()) return interrupted_early(*prepared);
  if (!plans) return no_plan(request, *prepared, plans.error(), workspaces);
  const auto chosen = chosen_plan(request, prepared->request.host, *plans);
  if (!chosen) return tl::unexpected(chosen.error());

  std::vector<PlanProof> proofs;
  for (const Plan& candidate : *plans) {
    require_valid(candidate, validate_plan(candidate, workspaces));
    proofs.push_back({.model = Proof::passed});
  }
  ExitCode exit_code = interrupted() ? ExitCode::interrupted : ExitCode::yes;
  if (!*chosen) exit_code = ExitCode::clean_no;
  search.reset();  // a run has nothing to show before its end
  if (*chosen && request.run_on_host && !interrupted()) {
    progress.now("running the plan on the host");
    const auto run = run_on_host((*plans)[**chosen]);
    if (!run) return tl::unexpected(run.error());
    proofs[**chosen].host = run->passed() ? Proof::passed : Proof::failed;
    if (!run->passed()) exit_code = ExitCode::clean_no;
  }

  Answer answer = plan_answer(prepared->request, *plans, proofs, *chosen);
  answer.exit_code = exit_code;
  answer.report.notes = prepared->notes;
  std::ranges::move(cudnn_notes(workspaces), std::back_inserter(answer.report.notes));
  if (interrupted()) {
    answer.report.notes.push_back(
        {.severity = Severity::warning, .message = "interrupted: these are the best plans so far"});
  }
  if (request.log_placement) {
    if (auto told = add_placement_log((*plans)[chosen->value_or(0)], answer.report); !told) {
      return tl::unexpected(std::move(told.error()));
    }
  }
  if (!*chosen) add_what_would_do(request, *prepared, *plans, workspaces, answer.report);
  if (exit_code == ExitCode::clean_no) return answer;
  const std::string text = write_plan((*plans)[**chosen]);
  if (to_stdout) answer.report.raw = text;
  if (file) {
    if (auto written = file->commit(text); !written) {
      return tl::unexpected(std::move(written.error()));
    }
    answer.report.json.emplace_back("written", request.output);
    answer.report.say(fmt::format("'{}' is written to {}", (*plans)[**chosen].name, request.output),
                      Tone::good);
    file.reset();
  }
  if (!request.frontier.empty() && !interrupted()) {
    progress.now("planning at other budgets");
    auto written = write_frontier(request, prepared->request, workspaces, answer.report);
    if (!written) return tl::unexpected(std::move(written.error()));
  }
  return answer;
}

}  // namespace stowage
