#include "answers/planning/prepare_plan.hpp"

#include <fmt/format.h>

#include <cmath>

#include "answers/planning/asked_host.hpp"
#include "answers/question/question_error.hpp"
#include "answers/subject/asked_step.hpp"
#include "answers/subject/contradictions.hpp"
#include "answers/subject/notes.hpp"
#include "estimator/base/grouped_digits.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/card/card_file.hpp"
#include "estimator/runtime/process_overhead.hpp"
#include "planner/problem/measured_times_file.hpp"
#include "planner/propose/proposals.hpp"

namespace stowage {

namespace {

// Options that only PyTorch's runtime has: a plan that we run ourselves would ignore them.
Result<void> check_settings_of_pytorch(const StepQuestion& question, Runtime runtime) {
  if (traits(kernel_set_of(runtime)).dispatches_by_card) return {};
  const ConvolutionSettings& given = question.wishes.convolutions;
  const std::pair<bool, std::string_view> settings[] = {{given.deterministic, "deterministic"},
                                                        {given.benchmark, "cudnn_benchmark"}};
  for (const auto& [is_given, name] : settings) {
    if (!is_given) continue;
    return failure(question_error(
        fmt::format("`{}` is a setting of PyTorch's, and this plan is for our own executor", name),
        "add `runtime` pytorch"));
  }
  return {};
}

/// The card of a budget that stands alone, as its calibration has it.
Result<Card> card_of_budget(const PlanQuestion& question, Bytes budget, double compute_capability) {
  Card card = generic_card(budget, compute_capability);
  card.total_source = question.budget_source;
  if (question.calibration.empty()) return card;
  const auto source = read_source(question.calibration, FileKind::calibration);
  if (!source) return tl::unexpected(source.error());
  return read_calibration(*source, card);
}

Result<void> check_budget(const PlanQuestion& question, const PlanRequest& request) {
  if (!question.card || request.budget.bytes <= request.available) return {};
  return failure(question_error(fmt::format(
      "`budget` {} is more than the {} that {} leaves for an arena",
      format_bytes(request.budget.bytes), format_bytes(request.available), request.card.name)));
}

// The arena's share of the card, and of that the budget.
Result<void> set_budget(const PlanQuestion& question, const ArenaOfTotal& arena_of,
                        PlanRequest& request) {
  if (question.card) {
    request.available = arena_of(request.card.cuda_total);
    if (request.available <= Bytes()) return {};  // no_arena() says so
  }
  if (question.budget_share) return {};  // known once the step is sized
  request.budget = question.budget.value_or(request.available);
  return check_budget(question, request);
}

/// What a run measured, where the calibration has it.
Result<std::shared_ptr<const MeasuredTimes>> measured_times(const PlanQuestion& question,
                                                            const Card& card) {
  if (question.calibration.empty()) return nullptr;
  const auto source = read_source(question.calibration, FileKind::calibration);
  if (!source) return tl::unexpected(source.error());
  return read_measured_times(*source, card);
}

ArenaOfTotal arena_of_total(const AskedStep& step, const PlanRequest& request) {
  CheckSettings arena = step.settings;
  arena.runtime = executed_runtime;
  return [graph = request.document.graph, card = request.card, arena](Bytes total) mutable {
    card.cuda_total = total;
    return allocator_limit(*graph, card, arena);
  };
}

Result<AskedCard> planned_card(const PlanQuestion& question) {
  if (question.card) return find_asked_card(*question.card);
  // A share of the step is not known yet; what else a generic card has depends on no total.
  const Bytes total = question.budget.value_or(24_GiB);
  auto card =
      card_of_budget(question, total,
                     question.compute_capability.value_or(generic_card(total).compute_capability));
  if (!card) return tl::unexpected(std::move(card.error()));
  return AskedCard{
      .card = *std::move(card),
      .is_assumed = !question.compute_capability,
      .notes = {{.severity = Severity::note,
                 .message = "no card was named: times are those of a generic card with an RTX "
                            "3090's rates"}}};
}

// --batch, a step file's own, or 1.
Result<WholeBatch> planned_batch(const PlanQuestion& question, const StepDocument& document) {
  const std::int64_t parts = document.graph->settings.micro_batches;
  if (!question.batch)
    return whole_batch_of(document.batch.value_or(1), parts);  // 10^9 each at most
  const std::optional<std::int64_t> micro_batch = micro_batch_of(*question.batch, parts);
  if (!micro_batch) {
    return failure(question_error(
        fmt::format("`batch` {}: the step's {} micro-batches cannot share it equally",
                    grouped_digits(question.batch->samples), grouped_digits(parts))));
  }
  if (auto served = check_batch(document, *micro_batch, "batch"); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  return *question.batch;
}

std::optional<Diagnostic> unplanned_runtime(const StepQuestion& question, Runtime runtime) {
  if (is_planned(runtime)) return std::nullopt;
  const std::string hint =
      fmt::format("`runtime` {} plans the same kernels", to_string(planned_in_place_of(runtime)));
  const std::string_view said = question.process.runtime ? "`runtime`" : "the step was made for";
  return question_error(
      fmt::format("{} {}: a plan is made for stowage or pytorch", said, to_string(runtime)), hint);
}

/// A plan moves the tensors of one GPU, and knows no other's.
std::optional<Diagnostic> sharded_step(const StepGraph& step) {
  const DataParallel& parallel = step.settings.parallel;
  if (!parallel.fsdp.on && !parallel.runs_zero()) return std::nullopt;
  if (!parallel.is_parallel() && !parallel.fsdp.on) {
    return question_error(
        "a plan decides what lies on the host, and of this step ZeRO does",
        "stowage check sizes it; lowered without `offload` and `zero` it is planned");
  }
  return question_error(
      fmt::format("a plan is of a step on one GPU, and this one is sharded among {} by {}",
                  parallel.gpus, parallel.fsdp.on ? "FSDP" : "ZeRO"),
      "stowage check sizes it; lowered without `fsdp` and `zero` it is planned");
}

/// The step to be planned, as the question names it. Errors: also a step or a runtime that is not
/// planned.
Result<AskedStep> find_planned_step(const PlanQuestion& question, const AskedCard& card) {
  const auto source = read_step_source(question.step);
  if (!source) return tl::unexpected(source.error());
  auto step = make_asked_step(*source, question.step, card, step_alone);
  if (!step) return step;
  const Runtime runtime = step->settings.runtime;
  if (auto mistake = unplanned_runtime(question.step, runtime)) {
    return failure(*std::move(mistake));
  }
  if (auto mistake = sharded_step(*step->document.graph)) return failure(*std::move(mistake));
  if (step->model) {
    if (auto served = check_settings_of_pytorch(question.step, runtime); !served) {
      return tl::unexpected(std::move(served.error()));
    }
  }
  return step;
}

/// A round of serving as a step: it is lowered from no one description.
AskedStep round_of(const ServedStep& served, const PlanQuestion& question) {
  AskedStep step{.document = served.round, .settings = served.settings};
  step.document.written_by = fmt::format("stowage {}", question.stowage_version);
  return step;
}

/// What is to be said of the step and its card before it is planned.
Diagnostics notes_on_planned(const AskedStep& step, const AskedCard& card) {
  Diagnostics notes = notes_on_step(step.document);
  append_notes(notes, card.notes);
  const int planned = step.document.graph->settings.micro_batches;
  if (step.document.accumulation > planned) {
    notes.push_back(
        {.severity = Severity::note,
         .message = fmt::format("the {} accumulates {} micro-batches; the plan is of a step of {}",
                                step.model ? "description" : "step's file",
                                grouped_digits(step.document.accumulation),
                                planned == 1 ? std::string("one") : grouped_digits(planned))});
  }
  return notes;
}

/// All of the request but the card, the host, the batch and the budget.
PlanRequest request_of(const PlanQuestion& question, const AskedStep& step) {
  PlanRequest request{.document = step.document, .pins = question.pins};
  request.document.runtime = step.settings.runtime;
  request.document.accumulation = 1;  // the plan's step is whole
  request.stowage_version = question.stowage_version;
  request.levers = question.levers;
  if (step.model) {
    const std::vector<DevicePin>& described = step.model->graph.pins;
    request.pins.pins.insert(request.pins.pins.begin(), described.begin(), described.end());
    request.document.written_by = fmt::format("stowage {}", question.stowage_version);
    if (!step.has_other_operators) request.description = step.model->source;
    request.model_options = step.model->options;
  }
  return request;
}

}  // namespace

Result<void> set_share_of_budget(const PlanQuestion& question, WorkspaceSource& workspaces,
                                 PlanRequest& request) {
  const auto whole = least_whole_arena(request, workspaces);
  if (!whole) return tl::unexpected(whole.error());
  request.budget = Bytes(static_cast<std::int64_t>(
      std::floor(*question.budget_share * static_cast<double>(whole->count()))));
  if (!question.card) {
    auto card = card_of_budget(question, request.budget.bytes, request.card.compute_capability);
    if (!card) return tl::unexpected(std::move(card.error()));
    request.card = *std::move(card);
  }
  return check_budget(question, request);
}

Result<PreparedPlan> prepare_plan(const PlanQuestion& question) {
  auto card = planned_card(question);
  if (!card) return tl::unexpected(std::move(card.error()));
  auto measured = measured_times(question, card->card);
  if (!measured) return tl::unexpected(std::move(measured.error()));
  // The plans' own remarks say whose times they have.
  if (*measured && !question.card) card->notes.clear();
  std::optional<ServedStep> serving;
  if (question.serving) {
    auto served = served_step(question.step, *question.serving, *card);
    if (!served) return tl::unexpected(std::move(served.error()));
    serving = *std::move(served);
  }
  auto step = serving ? Result<AskedStep>(round_of(*serving, question))
                      : find_planned_step(question, *card);
  if (!step) return tl::unexpected(std::move(step.error()));
  auto host = find_asked_host(question);
  if (!host) return tl::unexpected(std::move(host.error()));
  const auto batch = planned_batch(question, step->document);
  if (!batch) return tl::unexpected(batch.error());

  PreparedPlan prepared{.request = request_of(question, *step),
                        .notes = notes_on_planned(*step, *card)};
  PlanRequest& request = prepared.request;
  request.card = std::move(card->card);
  if (card->is_assumed) {
    request.card.compute_capability = step->document.graph->settings.compute_capability;
  }
  request.host = *std::move(host);
  request.measured = *std::move(measured);
  request.batch = *batch;
  prepared.arena_of = arena_of_total(*step, request);
  prepared.process = step->settings;
  if (serving) {
    request.serving = serving->serving;
    serving->decode.written_by = request.document.written_by;
    std::vector<DevicePin>& pins = request.pins.pins;
    pins.insert(pins.begin(), serving->pins.begin(), serving->pins.end());
    prepared.serving = *std::move(serving);
  }
  if (auto budget = set_budget(question, prepared.arena_of, request); !budget) {
    return tl::unexpected(budget.error());
  }
  return prepared;
}

}  // namespace stowage
