#include "planner/plan/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "cli/commands/commands.hpp"
#include "cli/options/arguments.hpp"
#include "cli/output/frontier_file.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/signals.hpp"
#include "cli/output/version.hpp"
#include "cli/report/no_plan.hpp"
#include "cli/report/placement_report.hpp"
#include "cli/report/plan_report.hpp"
#include "cli/report/step_file.hpp"
#include "cli/report/workspace_report.hpp"
#include "cli/requested/requested_step.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/card/card_file.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/runtime/process_overhead.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"
#include "gpu_probe/device/this_host.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/problem/measured_times_file.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/propose/proposals.hpp"

namespace stowage {

namespace {

struct PreparedPlan {
  PlanRequest request;
  ArenaOfTotal arena_of;  ///< of the requested card
  Diagnostics notes;

  void note(std::string text) {
    notes.push_back({.severity = Severity::note, .message = std::move(text)});
  }
  void note(const Diagnostics& more) { notes.insert(notes.end(), more.begin(), more.end()); }
};

// Options that only PyTorch's runtime has: a plan that we run ourselves would ignore them.
Result<void> check_settings_of_pytorch(const StepRequest& asked, Runtime runtime) {
  if (traits(kernel_set_of(runtime)).dispatches_by_card) return {};
  const ConvolutionSettings& given = asked.wishes.convolutions;
  const std::pair<bool, std::string_view> settings[] = {{given.deterministic, "deterministic"},
                                                        {given.benchmark, "cudnn-benchmark"}};
  for (const auto& [is_given, name] : settings) {
    if (!is_given) continue;
    return failure(command_line_error(
        fmt::format("--{} is a setting of PyTorch's, and this plan is for our own executor", name),
        "add --runtime pytorch"));
  }
  return {};
}

Result<SourceTextPtr> calibration_of(const PlanningRequest& asked) {
  return read_source(asked.calibration, FileKind::calibration);
}

/// The card of a budget that stands alone, as its calibration has it.
Result<Card> card_of_budget(const PlanningRequest& asked, Bytes budget, double compute_capability) {
  Card card = generic_card(budget, compute_capability);
  card.total_source = "--budget";
  if (asked.calibration.empty()) return card;
  const auto source = calibration_of(asked);
  if (!source) return tl::unexpected(source.error());
  return read_calibration(*source, card);
}

Result<void> check_budget(const PlanningRequest& asked, const PlanRequest& request) {
  if (!asked.card || request.budget <= request.available) return {};
  return failure(command_line_error(fmt::format(
      "--budget {} is more than the {} that {} leaves for an arena", format_bytes(request.budget),
      format_bytes(request.available), request.card.name)));
}

// The arena's share of the card, and of that the budget.
Result<void> set_budget(const PlanningRequest& asked, const ArenaOfTotal& arena_of,
                        PlanRequest& request) {
  if (asked.card) {
    request.available = arena_of(request.card.cuda_total);
    if (request.available <= Bytes()) return {};  // no_arena() says so
  }
  if (asked.budget_share) return {};  // known once the step is sized
  request.budget = asked.budget.value_or(request.available);
  return check_budget(asked, request);
}

// "--budget 80%", of what the step takes with everything on the GPU.
Result<void> set_share_of_budget(const PlanningRequest& asked, WorkspaceSource& workspaces,
                                 PlanRequest& request) {
  const auto whole = least_whole_arena(request, workspaces);
  if (!whole) return tl::unexpected(whole.error());
  request.budget = Bytes(static_cast<std::int64_t>(
      std::floor(*asked.budget_share * static_cast<double>(whole->count()))));
  if (!asked.card) {
    auto card = card_of_budget(asked, request.budget, request.card.compute_capability);
    if (!card) return tl::unexpected(std::move(card.error()));
    request.card = *std::move(card);
  }
  return check_budget(asked, request);
}

/// What a run measured, where the calibration has it.
Result<std::shared_ptr<const MeasuredTimes>> measured_times(const PlanningRequest& asked,
                                                            const Card& card) {
  if (asked.calibration.empty()) return nullptr;
  const auto source = calibration_of(asked);
  if (!source) return tl::unexpected(source.error());
  return read_measured_times(*source, card);
}

/// A file's, as it is; this machine, as its calibration has it.
Result<Host> described_host(const PlanningRequest& asked) {
  if (!asked.host.empty()) {
    auto source = read_source(asked.host, FileKind::host);
    if (!source) return tl::unexpected(std::move(source.error()));
    return load_host(std::move(*source));
  }
  if (asked.calibration.empty()) return this_host();
  const auto source = calibration_of(asked);
  if (!source) return tl::unexpected(source.error());
  return calibrated_host(*source, this_host());
}

Result<Host> requested_host(const PlanningRequest& asked) {
  auto host = described_host(asked);
  if (host && asked.host_memory) {
    if (*asked.host_memory <= Bytes()) {
      return failure(command_line_error("--host-memory 0 leaves no host"));
    }
    host->memory = *asked.host_memory;
    host->pinned_limit = Bytes(host->memory.count() / 2);
  }
  return host;
}

ArenaOfTotal arena_of_total(const RequestedStep& step, const PlanRequest& request) {
  CheckSettings arena = step.settings;
  arena.runtime = Runtime::stowage;
  return [graph = request.document.graph, card = request.card, arena](Bytes total) mutable {
    card.cuda_total = total;
    return allocator_limit(*graph, card, arena);
  };
}

/// Why there is no plan on a card that has no room for an arena.
Diagnostic no_arena(const Card& card) {
  return {.message = fmt::format("{} has nothing left for an arena: {} of CUDA total, less the "
                                 "context, what is in use and memory that must stay free",
                                 card.name, format_bytes(card.cuda_total))};
}

Result<RequestedCard> planned_card(const PlanningRequest& asked) {
  if (asked.card) return requested_card(*asked.card);
  // A share of the step is not known yet; what else a generic card has depends on no total.
  const Bytes total = asked.budget.value_or(24_GiB);
  auto card = card_of_budget(
      asked, total, asked.compute_capability.value_or(generic_card(total).compute_capability));
  if (!card) return tl::unexpected(std::move(card.error()));
  return RequestedCard{
      .card = *std::move(card),
      .is_assumed = !asked.compute_capability,
      .notes = {{.severity = Severity::note,
                 .message = "no card was named: times are those of a generic card with an RTX "
                            "3090's rates"}}};
}

// --batch, a step file's own, or 1.
Result<WholeBatch> planned_batch(const PlanningRequest& asked, const StepDocument& document) {
  const std::int64_t parts = document.graph->settings.micro_batches;
  if (!asked.batch) return whole_batch_of(document.batch.value_or(1), parts);  // 10^9 each at most
  const std::optional<std::int64_t> micro_batch = micro_batch_of(*asked.batch, parts);
  if (!micro_batch) {
    return failure(command_line_error(
        fmt::format("--batch {}: the step's {} micro-batches cannot share it equally",
                    grouped_digits(asked.batch->samples), grouped_digits(parts))));
  }
  if (auto served = check_batch(document, *micro_batch, "--batch"); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  return *asked.batch;
}

std::optional<Diagnostic> unplanned_runtime(const StepRequest& asked, Runtime runtime) {
  if (is_planned(runtime)) return std::nullopt;
  const std::string hint =
      fmt::format("--runtime {} plans the same kernels", to_string(planned_in_place_of(runtime)));
  const std::string_view said = asked.process.runtime ? "--runtime" : "the step was made for";
  return command_line_error(
      fmt::format("{} {}: a plan is made for stowage or pytorch", said, to_string(runtime)), hint);
}

/// A plan moves the tensors of one GPU, and knows no other's.
std::optional<Diagnostic> sharded_step(const StepGraph& step) {
  const DataParallel& parallel = step.settings.parallel;
  if (!parallel.fsdp.on && !parallel.shares_state()) return std::nullopt;
  return command_line_error(
      fmt::format("a plan is of a step on one GPU, and this one is sharded among {} by {}",
                  parallel.gpus, parallel.fsdp.on ? "FSDP" : "ZeRO"),
      "stowage check sizes it; lowered without --fsdp and --zero it is planned");
}

Result<PreparedPlan> prepare(const PlanningRequest& asked) {
  auto card = planned_card(asked);
  if (!card) return tl::unexpected(std::move(card.error()));
  auto measured = measured_times(asked, card->card);
  if (!measured) return tl::unexpected(std::move(measured.error()));
  // The plans' own remarks say whose times they have.
  if (*measured && !asked.card) card->notes.clear();
  const auto step = requested_step(asked.step, *card, step_alone);
  if (!step) return tl::unexpected(step.error());
  const Runtime runtime = step->settings.runtime;
  if (auto mistake = unplanned_runtime(asked.step, runtime)) return failure(*std::move(mistake));
  if (auto mistake = sharded_step(*step->document.graph)) return failure(*std::move(mistake));
  if (step->model) {
    if (auto served = check_settings_of_pytorch(asked.step, runtime); !served) {
      return tl::unexpected(std::move(served.error()));
    }
  }
  PreparedPlan prepared;
  prepared.note(notes_of(*step, *card));
  if (step->document.accumulation > step->document.graph->settings.micro_batches) {
    prepared.note(fmt::format("the {} accumulates {} micro-batches; the plan is of a step of {}",
                              step->model ? "description" : "step's file",
                              grouped_digits(step->document.accumulation),
                              step->document.graph->settings.micro_batches == 1
                                  ? std::string("one")
                                  : grouped_digits(step->document.graph->settings.micro_batches)));
  }
  auto host = requested_host(asked);
  if (!host) return tl::unexpected(std::move(host.error()));
  const auto batch = planned_batch(asked, step->document);
  if (!batch) return tl::unexpected(batch.error());

  PlanRequest& request = prepared.request;
  request.card = std::move(card->card);
  if (card->is_assumed) {
    request.card.compute_capability = step->document.graph->settings.compute_capability;
  }
  request.host = *std::move(host);
  request.measured = *std::move(measured);
  request.batch = *batch;
  request.document = step->document;
  request.document.runtime = runtime;
  request.document.accumulation = 1;  // the plan's step is whole
  request.stowage_version = program_version;
  request.levers = asked.levers;
  request.pins = asked.pins;
  if (step->model) {
    const std::vector<DevicePin>& described = step->model->graph.pins;
    request.pins.pins.insert(request.pins.pins.begin(), described.begin(), described.end());
    request.document.written_by = fmt::format("stowage {}", program_version);
    request.description = step->model->source;
    request.model_options = step->model->options;
  }
  prepared.arena_of = arena_of_total(*step, request);
  if (auto budget = set_budget(asked, prepared.arena_of, request); !budget) {
    return tl::unexpected(budget.error());
  }
  return prepared;
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
  answer.report.json = {{"plans", Json::Array{}}, {"budget_bytes", prepared.request.budget}};
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
  auto prepared = prepare(request);
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
