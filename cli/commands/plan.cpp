#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "answers/question/question_error.hpp"
#include "answers/report/plan_pages.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/plan_for_pytorch.hpp"
#include "cli/options/setting_names.hpp"
#include "cli/output/frontier_file.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/signals.hpp"
#include "cli/report/page_file.hpp"
#include "cli/report/picture_json.hpp"
#include "cli/report/plan_answer.hpp"
#include "planner/plan/plan_file.hpp"

namespace stowage {

namespace {

// The file itself is opened once the plan's is closed: one is open at a time.
Result<void> check_frontier_file(const PlanningRequest& request) {
  if (request.frontier.empty()) return {};
  if (!frontier_format(request.frontier)) {
    return failure(question_error(
        fmt::format("`frontier` {}: a name that ends in .csv or .svg says what it is to be",
                    request.frontier)));
  }
  if (request.frontier == request.output) {
    return failure(question_error("`output` and `frontier` name the same file"));
  }
  return OutputFile::open(request.frontier).map([](const OutputFile&) {});
}

/// Searches the frontier, while the user may interrupt it, and writes the points that were found.
Result<Frontier> write_frontier(const PlanningRequest& request, const PlanAnswer& found,
                                RenderedAnswer& shown) {
  Result<Frontier> frontier;
  {
    const StoppableSearch search;
    search.has_result();
    frontier = frontier_of(request.question, found, {.is_cancelled = interrupted});
  }
  if (!frontier) return frontier;
  add_frontier(*frontier, request.frontier, interrupted(), shown);
  if (frontier->points.empty()) return frontier;
  auto file = OutputFile::open(request.frontier);
  if (!file) return tl::unexpected(std::move(file.error()));
  const PlanRequest& planned = found.request;
  const std::string title = fmt::format("{}, batch {}, on {}", planned.document.graph->model,
                                        planned.batch.samples, planned.card.name);
  const FrontierFormat format = frontier_format(request.frontier).value();
  auto written = file->commit(frontier_text(
      frontier->points, format,
      {.text = title, .card_budget = planned.budget.bytes, .card = planned.card.name}));
  if (!written) return tl::unexpected(std::move(written.error()));
  return frontier;
}

/// The plans, while the user sees how far it is and may interrupt.
Result<PlanAnswer> planned(const PlanningRequest& request, Progress& progress) {
  std::optional<StoppableSearch> search(std::in_place);
  const auto reached = [&](PlanStage stage) {
    switch (stage) {
      case PlanStage::improving:
        search->has_result();
        progress.now("searching for better plans (Ctrl-C takes the best so far)");
        break;
      case PlanStage::checking:
        progress.now("checking the plans");
        break;
      case PlanStage::running_on_host:
        search.reset();  // a run has nothing to show before its end
        progress.now("running the plan on the host");
        break;
    }
  };
  return answer(request.question, {.reached = reached, .is_cancelled = interrupted});
}

/// Puts the chosen plan where it was asked for.
Result<void> write_chosen(const PlanningRequest& request, const Plan& plan,
                          std::optional<OutputFile> file, Report& report) {
  if (!file && request.output != "-") return {};
  const auto text = write_readable_plan(plan);
  if (!text) return tl::unexpected(text.error());
  if (request.output == "-") report.raw = *text;
  if (!file) return {};
  if (auto written = file->commit(*text); !written) return written;
  add_written_plan(plan, request.output, report);
  return {};
}

/// What follows the search: the chosen plan's file, and then the frontier; none of it where no plan
/// is chosen.
Result<std::optional<Frontier>> write_results(const PlanningRequest& request,
                                              const PlanAnswer& found,
                                              std::optional<OutputFile> file, Progress& progress,
                                              RenderedAnswer& shown) {
  if (shown.exit_code == ExitCode::clean_no || !found.chosen) return std::nullopt;
  if (auto written =
          write_chosen(request, found.plans[*found.chosen], std::move(file), shown.report);
      !written) {
    return tl::unexpected(std::move(written.error()));
  }
  if (request.frontier.empty()) return std::nullopt;
  progress.now("planning at other budgets (Ctrl-C takes those so far)");
  return write_frontier(request, found, shown).map([](Frontier&& frontier) {
    return std::optional(std::move(frontier));
  });
}

/// The page about the plans, where one is asked for.
Result<void> write_plan_page(const PlanningRequest& request, const PlanAnswer& found,
                             const std::optional<Frontier>& frontier, RenderedAnswer& shown) {
  if (request.page.empty()) return {};
  if (found.plans.empty()) {
    return write_page(request.page, page_without_plan(found.request, shown), shown);
  }
  return write_page(request.page,
                    page_of(plan_page(found), found, frontier ? &*frontier : nullptr, shown),
                    shown);
}

}  // namespace

// Opens the files, plans, and writes what was chosen: the plan first, then the frontier and the
// page.
Result<RenderedAnswer> run_planning(const PlanningRequest& request) {
  if (request.for_pytorch) return run_pytorch_planning(request);
  Progress progress("preparing the plan");
  if (auto writable = check_frontier_file(request); !writable) {
    return tl::unexpected(std::move(writable.error()));
  }
  if (auto writable = check_page_file(request.page, request.output); !writable) {
    return tl::unexpected(std::move(writable.error()));
  }
  auto file = open_output(request.output);
  if (!file) return tl::unexpected(std::move(file.error()));
  const auto found = planned(request, progress);
  if (!found) return tl::unexpected(found.error());
  auto shown = rendered(*found, request.question, request.typed,
                        {.log_placement = request.log_placement, .verbose = request.verbose});
  if (!shown) return shown;
  const auto frontier = write_results(request, *found, *std::move(file), progress, *shown);
  if (!frontier) return tl::unexpected(frontier.error());
  if (auto written = write_plan_page(request, *found, *frontier, *shown); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  return shown;
}

}  // namespace stowage
