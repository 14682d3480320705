#include "answers/exporting/pictures.hpp"

#include <fmt/format.h>

#include <utility>

#include "answers/exporting/markdown.hpp"
#include "answers/exporting/memory_snapshot.hpp"
#include "answers/exporting/memory_svg.hpp"
#include "answers/exporting/perfetto_trace.hpp"
#include "answers/exporting/step_trace.hpp"
#include "answers/question/question_error.hpp"
#include "answers/report/step_memory.hpp"
#include "answers/subject/step_setup.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

constexpr std::string_view not_read_back =
    "it is to be looked at: neither a step nor a plan can be read back from it";

/// A step that was sized and judged, and what its pictures are made of.
struct ShownStep {
  const SizedStep& step;
  const CheckAnswer& sizes;
};

std::string svg_of(const ShownStep& shown) {
  const auto& [step, sizes] = shown;
  const CheckReport& report = sizes.training;
  const bool is_pytorch = sizes.settings.runtime == Runtime::pytorch;
  const Bytes beside = report.device_bytes - report.reserved_bytes();
  const bool has_replicas = report.run.replicas.size() > 1;  // which share what the card leaves
  const auto [needed, available] = format_apart(report.device_bytes, report.available_bytes);
  return memory_svg(
      memory_over_step(step, sizes.card, sizes.settings, report.run),
      {.title = step_in_words(sizes),
       .subtitle =
           fmt::format("{} on {}: {} of {} available, context and libraries included",
                       report.fits ? "fits" : "does not fit", sizes.card.name, needed, available),
       .reserved_name = is_pytorch ? "held by PyTorch's allocator" : "held by the runtime",
       .limit = has_replicas ? Bytes() : report.available_bytes - beside,
       .limit_name = "the card leaves"});
}

std::string snapshot_of(const ShownStep& shown, std::vector<std::string>& remarks) {
  const StepOnCard on_card(shown.step, shown.sizes.card, shown.sizes.settings);
  const AllocatorTrace trace = trace_pytorch(on_card, shown.sizes.training.run);
  remarks.push_back(
      fmt::format("its events are of a simulated process that loads the model and runs {} steps: "
                  "they have no times, and their frames are the tensor, the kernel and the layer",
                  trace.steps));
  return memory_snapshot(trace, *shown.step.graph, on_card.buffers);
}

std::string trace_of(const ShownStep& shown, std::vector<std::string>& remarks) {
  const auto& [step, sizes] = shown;
  remarks.emplace_back(
      "its times are estimates by the card's rates, kernel after kernel without gaps");
  return perfetto_trace(trace_step(
      step, sizes.card, memory_over_step(step, sizes.card, sizes.settings, sizes.training.run)));
}

std::vector<std::string> remarks_on(const CheckAnswer& sizes) {
  std::vector<std::string> remarks{std::string(not_read_back)};
  if (sizes.step.accumulation > 2) {
    remarks.push_back(fmt::format("of {} micro-batches two are shown: the later ones are alike",
                                  sizes.step.accumulation));
  }
  if (const std::size_t replicas = sizes.training.run.replicas.size(); replicas > 1) {
    remarks.push_back(fmt::format("of {} replicas one is shown: they are alike", replicas));
  }
  return remarks;
}

}  // namespace

Result<ExportAnswer> picture_of_step(const ExportQuestion& question) {
  const CheckQuestion check{.step = question.step, .card = *question.card, .batch = question.batch};
  const auto setup = set_up_check(check);
  if (!setup) return tl::unexpected(setup.error());
  const Runtime runtime = setup->step.settings.runtime;
  if (question.form == ExportForm::memory_snapshot && runtime != Runtime::pytorch) {
    return failure(question_error(
        fmt::format("`runtime` {}: memory-snapshot is the history of PyTorch's allocator",
                    to_string(runtime))));
  }
  auto sizes = answer(check, *setup);
  if (!sizes) return tl::unexpected(std::move(sizes.error()));
  const auto step = setup->at_batch(sizes->batch);
  if (!step) return tl::unexpected(step.error());
  if (step->graph->nodes.empty())
    return failure("the step has no kernels: there is nothing to show");
  const ShownStep shown{*step, *sizes};
  ExportAnswer found;
  found.form = question.form;
  found.remarks = remarks_on(*sizes);
  switch (question.form) {
    case ExportForm::trace:
      found.body = trace_of(shown, found.remarks);
      break;
    case ExportForm::memory_snapshot:
      found.body = snapshot_of(shown, found.remarks);
      break;
    case ExportForm::svg:
      found.body = svg_of(shown);
      break;
    default:
      found.body = markdown_of(*sizes, question.written_by);
  }
  found.notes = sizes->notes;
  found.sizes = *std::move(sizes);
  return found;
}

Result<PlanText> picture_of_plan(ExportForm form, const Plan& plan) {
  if (const std::string mismatch = two_sides_mismatch(plan.machine); !mismatch.empty()) {
    return failure("a plan for another machine than one GPU and its host is not drawn: " +
                   mismatch);
  }
  PlanText text{.remarks = {std::string(not_read_back)}};
  switch (form) {
    case ExportForm::trace:
      text.body = perfetto_trace(trace_step(plan));
      text.remarks.emplace_back(
          "its times are those of the plan's simulated step: the plan's file says by which rates");
      break;
    case ExportForm::svg:
      text.body = memory_svg(
          memory_over_step(plan, MemoryKind::device),
          {.title = fmt::format("{}, batch {}, plan {}: what is on the GPU", plan.inputs.model_name,
                                whole_batch(plan).samples, plan.name),
           .subtitle = fmt::format("arena of {} on {}; {} of pinned host memory",
                                   format_bytes(plan.totals.arena), plan.inputs.card.name,
                                   format_bytes(plan.totals.host_peak)),
           .reserved_name = "arena",
           .limit = plan.inputs.budget.is_limited() ? plan.inputs.budget.bytes : Bytes(),
           .limit_name = "budget"});
      break;
    default:
      text.body = markdown_of(plan);
  }
  return text;
}

}  // namespace stowage
