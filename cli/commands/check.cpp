#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/commands/commands.hpp"
#include "cli/options/arguments.hpp"
#include "cli/output/progress.hpp"
#include "cli/report/check_report.hpp"
#include "cli/report/replicas.hpp"
#include "cli/report/step_file.hpp"
#include "cli/report/step_report.hpp"
#include "cli/report/workspace_report.hpp"
#include "cli/requested/plan_advice.hpp"
#include "cli/requested/requested_step.hpp"
#include "cli/sizing/comparison.hpp"
#include "cli/sizing/serving.hpp"
#include "estimator/check/batch_search.hpp"
#include "estimator/step/offloaded_bytes.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"

namespace stowage {

namespace {

// No batch is small enough where a library finds no room beside pools that are taken whole.
bool depends_on_batch(const CheckReport& report) {
  return !report.run.failure || !report.run.failure->at.library;
}

// Of a step that does not fit: the batch that does, and the plan by which this one may run.
void advise(const CheckRequest& request, const RequestedStep& requested, const Card& card,
            const LargestBatch& largest, Report& out) {
  const TypedWords& typed = request.step.typed;
  Json::Object lines;
  if (largest.batch > 0) {
    const std::string line =
        advice(typed, "check", {.set = {{"batch", std::to_string(largest.batch)}}});
    const std::string size = grouped_digits(largest.batch);
    out.say(largest.is_proven ? fmt::format("  the largest batch that fits is {}: {}", size, line)
                              : fmt::format("  a batch of {} fits: {}", size, line));
    lines.emplace_back("batch", line);
  } else if (largest.is_proven) {
    out.say("  not even a batch of 1 fits");
  }
  if (const auto line = plan_advice(request.step, requested, card)) {
    out.say(fmt::format("  it may run with part of it on the host: {}", *line));
    lines.emplace_back("plan", *line);
  }
  out.json.emplace_back("largest_batch", largest.batch);
  out.json.emplace_back("largest_batch_is_proven", largest.is_proven);
  out.json.emplace_back("advice", std::move(lines));
}

/// The same model, evaluated in the process that trains.
Result<std::optional<EvaluationReport>> evaluate(std::optional<std::int64_t> batch,
                                                 const RequestedStep& requested, const Card& card,
                                                 const SizedStep& training,
                                                 WorkspaceSource& workspaces) {
  if (!batch) return std::optional<EvaluationReport>();
  if (requested.document.graph->settings.mode != Mode::train) {
    return failure(command_line_error("--eval-batch is an evaluation beside training",
                                      "without training, give its size as --batch"));
  }
  const DataParallel& parallel = requested.document.graph->settings.parallel;
  if (parallel.fsdp.on || parallel.zero > 0) {
    return failure(command_line_error("--eval-batch is not sized beside a sharded model",
                                      "without --fsdp and --zero it is"));
  }
  if (requested.document.evaluation == nullptr) {
    return failure(command_line_error("--eval-batch: there is no evaluation beside this step"));
  }
  if (auto served = check_batch(requested.document, *batch, "--eval-batch"); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  auto report = check_evaluation(training, requested.document.evaluation, *batch, card,
                                 requested.settings, workspaces);
  if (!report) return tl::unexpected(std::move(report.error()));
  return std::optional<EvaluationReport>(*std::move(report));
}

std::string say_evaluation(const EvaluationReport& evaluation) {
  const std::string size = grouped_digits(evaluation.batch);
  const LargestBatch& chunk = evaluation.chunk;
  if (chunk.unlimited) {
    return fmt::format("the evaluation of {} fits; so does one of {}", size,
                       grouped_digits(largest_searched_batch));
  }
  const std::string largest =
      fmt::format("{}{}", chunk.is_proven ? "up to " : "at least ", grouped_digits(chunk.batch));
  if (evaluation.step.fits) {
    return fmt::format("the evaluation of {} fits at once; {} would", size, largest);
  }
  if (chunk.batch > 0) {
    return fmt::format("the evaluation of {} does not fit at once; in chunks of {} it does", size,
                       largest);
  }
  return chunk.is_proven
             ? fmt::format("the evaluation of {} does not fit, not even one sample at a time", size)
             : fmt::format("the evaluation of {} does not fit at once", size);
}

}  // namespace

Result<Answer> run_check(const CheckRequest& request) {
  if (is_comparison(request.step, request.card)) return compare(request);
  if (request.serving) return run_serving(request);
  const Progress progress("sizing the step");
  const auto requested_gpu = requested_card(request.card);
  if (!requested_gpu) return tl::unexpected(requested_gpu.error());
  const Card& card = requested_gpu->card;
  const auto requested = requested_step(request.step, *requested_gpu,
                                        {.costs = false,
                                         .result_bytes = request.rule_of_thumb,
                                         .evaluation = request.eval_batch.has_value()});
  if (!requested) return tl::unexpected(requested.error());
  const StepDocument& document = requested->document;
  const std::int64_t batch = request.batch.value_or(document.batch.value_or(1));
  if (auto served = check_batch(document, batch, "--batch"); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  const ToldStep told = told_step(document);
  const CheckSettings& settings = requested->settings;
  CudnnWorkspaceSource cudnn(card, answer_folder(request.step.keep_answers));
  RuntimeWorkspaceSource workspaces(cudnn, settings.runtime);
  const auto graph = sizing_step(document);
  if (!graph) return tl::unexpected(graph.error());
  const auto step = size_step(*graph, replica_batch(batch, settings), workspaces);
  if (!step) return tl::unexpected(step.error());
  const auto evaluation = evaluate(request.eval_batch, *requested, card, *step, workspaces);
  if (!evaluation) return tl::unexpected(evaluation.error());
  const CheckReport training = check(*step, card, settings);
  const CheckReport report = *evaluation ? with_evaluation(training, **evaluation) : training;

  Answer answer;
  answer.exit_code = report.fits ? ExitCode::yes : ExitCode::clean_no;
  Report& out = answer.report;
  out.notes = notes_of(*requested, *requested_gpu);
  std::ranges::move(cudnn_notes(cudnn), std::back_inserter(out.notes));
  out.json = check_json(report, card);
  out.json.emplace_back("settings", settings_json(told, batch, to_string(settings.runtime)));
  out.json.emplace_back("software", stack_json(settings.stack));
  out.json.emplace_back("tensorflow", tensorflow_json(settings));
  out.json.emplace_back("theano", theano_json(settings));
  const Table tensors = largest_tensors(report);
  out.listing = verdict_listing(report, tensors);

  out.say(fmt::format("{}, {} runtime{}", describe_step(told, batch), to_string(settings.runtime),
                      describe_replicas(batch, settings)),
          Tone::heading);
  out.say(fmt::format("\nThe peak, while {} runs (workspaces: {}):", report.peak_at(),
                      to_string(report.workspace_origin)));
  out.show(breakdown_table(report));
  out.say("\nThe largest tensors at the peak:");
  out.show(request.verbose ? tensors : folded_tensors(tensors));
  const std::vector<KernelWorkspace> workspaces_taken = kernel_workspaces(*step, report);
  out.json.emplace_back("workspaces", workspaces_json(workspaces_taken));
  if (request.verbose && !workspaces_taken.empty()) {
    out.say("\nThe kernels' workspaces:");
    out.show(workspace_table(workspaces_taken));
  }
  if (!report.fallbacks.empty()) {
    out.say("\nConvolutions that must take a smaller engine than their first:");
    out.show(fallback_table(report, request.verbose));
  }
  out.say("\nPeaks by phase:");
  out.show(phase_table(report));
  Bytes buffered;
  for (const HostBuffer& buffer : report.host_buffers) buffered += Bytes(buffer.bytes);
  const bool counters = document.graph->host_state_bytes > 0;
  const bool activations = offloaded_bytes(*document.graph) != Affine(0);
  out.say(fmt::format("\nHost: {} of inputs{}{}", format_bytes(report.host_bytes - buffered),
                      counters ? " and of the optimizer's step counters" : "",
                      activations ? ", and of offloaded activations in pinned memory" : ""));
  if (report.managed_bytes > Bytes()) {
    out.say(
        fmt::format("Unified memory: {} of optimizer state, beside the device's figures; all of "
                    "it can leave for the host",
                    format_bytes(report.managed_bytes)));
  }
  if (!report.host_buffers.empty()) {
    out.say("\nOffloaded, by each GPU's process:");
    out.show(host_table(report));
  }
  if (request.rule_of_thumb) {
    const auto rule = rule_of_thumb(document, batch);
    if (!rule) return tl::unexpected(rule.error());
    out.say("\nThe rule of thumb (activations and parameters counted by hand) beside it:");
    out.show(rule_table(*rule, training));
    out.json.emplace_back("rule_of_thumb", rule_json(*rule));
  }
  if (!report.run.pool_limits.empty()) {
    out.say("\nTensorFlow's pools:");
    out.show(pool_table(report));
  }
  out.say("");
  out.show(room_table(report, settings));
  out.say("");
  say_verdict(report, card, out);
  if (*evaluation) {
    out.say("  " + say_evaluation(**evaluation));
    out.json.emplace_back("evaluation", evaluation_json(**evaluation));
  }
  if (!training.fits && depends_on_batch(training) && !document.fixed_batch) {
    auto largest = look_for_largest(*graph, card, settings, workspaces);
    if (!largest) return tl::unexpected(largest.error());
    largest->batch *= replica_count(settings);
    advise(request, *requested, card, *largest, out);
  }
  return answer;
}

}  // namespace stowage
