#include "cli/requested/planning.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cli/options/arguments.hpp"
#include "cli/output/version.hpp"
#include "cli/report/step_file.hpp"
#include "cli/requested/requested_host.hpp"
#include "cli/requested/requested_step.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/card/card_file.hpp"
#include "estimator/runtime/process_overhead.hpp"
#include "planner/problem/measured_times_file.hpp"
#include "planner/propose/proposals.hpp"

namespace stowage {

namespace {

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

/// The card of a budget that stands alone, as its calibration has it.
Result<Card> card_of_budget(const PlanningRequest& asked, Bytes budget, double compute_capability) {
  Card card = generic_card(budget, compute_capability);
  card.total_source = "--budget";
  if (asked.calibration.empty()) return card;
  const auto source = read_source(asked.calibration, FileKind::calibration);
  if (!source) return tl::unexpected(source.error());
  return read_calibration(*source, card);
}

Result<void> check_budget(const PlanningRequest& asked, const PlanRequest& request) {
  if (!asked.card || request.budget.bytes <= request.available) return {};
  return failure(command_line_error(fmt::format(
      "--budget {} is more than the {} that {} leaves for an arena",
      format_bytes(request.budget.bytes), format_bytes(request.available), request.card.name)));
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

/// What a run measured, where the calibration has it.
Result<std::shared_ptr<const MeasuredTimes>> measured_times(const PlanningRequest& asked,
                                                            const Card& card) {
  if (asked.calibration.empty()) return nullptr;
  const auto source = read_source(asked.calibration, FileKind::calibration);
  if (!source) return tl::unexpected(source.error());
  return read_measured_times(*source, card);
}

ArenaOfTotal arena_of_total(const RequestedStep& step, const PlanRequest& request) {
  CheckSettings arena = step.settings;
  arena.runtime = Runtime::stowage;
  return [graph = request.document.graph, card = request.card, arena](Bytes total) mutable {
    card.cuda_total = total;
    return allocator_limit(*graph, card, arena);
  };
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

}  // namespace

Result<void> set_share_of_budget(const PlanningRequest& asked, WorkspaceSource& workspaces,
                                 PlanRequest& request) {
  const auto whole = least_whole_arena(request, workspaces);
  if (!whole) return tl::unexpected(whole.error());
  request.budget = Bytes(static_cast<std::int64_t>(
      std::floor(*asked.budget_share * static_cast<double>(whole->count()))));
  if (!asked.card) {
    auto card = card_of_budget(asked, request.budget.bytes, request.card.compute_capability);
    if (!card) return tl::unexpected(std::move(card.error()));
    request.card = *std::move(card);
  }
  return check_budget(asked, request);
}

Result<PreparedPlan> requested_planning(const PlanningRequest& asked) {
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

}  // namespace stowage
