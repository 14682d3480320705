#include "cli/report/check_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "answers/subject/replicas.hpp"
#include "cli/options/setting_names.hpp"
#include "cli/report/check_report.hpp"
#include "cli/report/step_report.hpp"
#include "cli/report/workspace_report.hpp"

namespace stowage {

namespace {

/// The command by which a plan of the same model and card is made.
std::string plan_command(const PlanAdvice& plan, const TypedWords& typed) {
  AdviceChanges changes{.drop = {"alloc_conf"}};  // a plan's arena has no allocator
  if (plan.is_usual) {
    changes.drop.emplace_back("runtime");
  } else {
    changes.set = {{"runtime", std::string(to_string(plan.runtime))}};
  }
  if (plan.drops_pytorch_settings) {
    for (const char* setting : {"pytorch_version", "tf32", "deterministic", "cudnn_benchmark"}) {
      changes.drop.emplace_back(setting);
    }
  }
  return advice(typed, "plan", changes);
}

/// "--lora r=16 --base nf4"
std::string changed_options(const TriedChange& change) {
  std::string options;
  for (const auto& [setting, value] : change.settings) {
    options += options.empty() ? "" : " ";
    options += in_options(fmt::format("`{}`", setting));
    if (!value.empty()) options += ' ' + value;
  }
  return options;
}

/// The command by which the changed step is checked.
std::string check_command(const TriedChange& change, std::int64_t batch, const TypedWords& typed) {
  AdviceChanges changes{.set = change.settings};
  changes.set.emplace("batch", std::to_string(batch));
  return advice(typed, "check", changes);
}

Json::Object change_json(const TriedChange& change, std::int64_t batch, const TypedWords& typed) {
  Json::Object settings;
  for (const auto& [setting, value] : change.settings) {
    settings.emplace_back(setting, value.empty() ? Json(true) : Json(value));
  }
  return {{"settings", std::move(settings)},
          {"effect", change.effect},
          {"other_training", change.other_training},
          {"device_bytes", change.device_bytes},
          {"fits", change.fits},
          {"advice", check_command(change, batch, typed)}};
}

/// What was tried at the smallest batch, and what of it fits.
void add_changes(const TriedChanges& tried, const TypedWords& typed, Report& out) {
  if (tried.tried == 0) return;
  Json::Array list;
  Table table{.one_size_scale = true,
              .columns = {{"Takes", "device_bytes"},
                          {"", "verdict"},
                          {"With", "change"},
                          {"Which means", "effect"}}};
  for (const TriedChange& change : tried.changes) {
    const std::string effect =
        change.other_training ? change.effect + " (another training)" : change.effect;
    table.rows.push_back({{change.device_bytes, std::string(change.fits ? "fits" : "too much"),
                           changed_options(change), effect}});
    list.emplace_back(change_json(change, tried.batch, typed));
  }
  out.json.emplace_back(
      "changes",
      Json::Object{{"batch", tried.batch}, {"tried", tried.tried}, {"smaller", std::move(list)}});
  if (table.rows.empty()) {
    out.say(fmt::format("  none of {} changes that were tried takes less", tried.tried));
    return;
  }
  out.say(fmt::format("  of {} changes that were tried at a batch of {}, these take less:",
                      tried.tried, tried.batch));
  out.show(std::move(table));
  const auto fitting = std::ranges::find(tried.changes, true, &TriedChange::fits);
  if (fitting == tried.changes.end()) return;
  out.say(fmt::format("  it fits with {}: {}", changed_options(*fitting),
                      check_command(*fitting, tried.batch, typed)));
}

// Of a step that does not fit: the batch that does, and the plan by which this one may run.
void add_cures(const CheckCures& cures, const TypedWords& typed, Report& out) {
  const LargestBatch& largest = cures.largest;
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
    add_changes(cures.changes, typed, out);
  }
  if (cures.plan) {
    const std::string line = plan_command(*cures.plan, typed);
    out.say(fmt::format("  it may run with part of it on the host: {}", line));
    lines.emplace_back("plan", line);
  }
  out.json.emplace_back("largest_batch", largest.batch);
  out.json.emplace_back("largest_batch_is_proven", largest.is_proven);
  out.json.emplace_back("advice", std::move(lines));
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

/// What is live while each kernel runs; below it where forward, backward and the update begin.
ColumnChart memory_chart(const MemoryOverStep& memory) {
  ColumnChart chart{.title = "\nMemory of tensors, kernel by kernel:", .values = memory.live};
  for (std::size_t i = 0; i < memory.live.size(); ++i) {
    const Phase phase = memory.graph->nodes[i].phase;
    const std::string_view name = to_string(phase == Phase::loss ? Phase::forward : phase);
    if (chart.parts.empty() || chart.parts.back().name != name) {
      chart.parts.push_back({i, std::string(name)});
    }
  }
  return chart;
}

void show_peak(const CheckAnswer& found, const Table& tensors, bool verbose, Report& out) {
  const CheckReport& report = found.report;
  out.say(fmt::format("\nThe peak, while {} runs (workspaces: {}):", report.peak_at(),
                      to_string(report.workspace_origin)));
  out.show(breakdown_table(report));
  out.say("\nThe largest tensors at the peak:");
  out.show(verbose ? tensors : folded_tensors(tensors));
  if (verbose && !found.workspaces.empty()) {
    out.say("\nThe kernels' workspaces:");
    out.show(workspace_table(found.workspaces));
  }
  if (!report.fallbacks.empty()) {
    out.say("\nConvolutions that must take a smaller engine than their first:");
    out.show(fallback_table(report, verbose));
  }
  out.say("\nPeaks by phase:");
  out.show(phase_table(report));
}

void show_host(const CheckAnswer& found, Report& out) {
  const CheckReport& report = found.report;
  Bytes buffered;
  for (const HostBuffer& buffer : report.host_buffers) buffered += Bytes(buffer.bytes);
  out.say(fmt::format(
      "\nHost: {} of inputs{}{}", format_bytes(report.host_bytes - buffered),
      found.counts_steps_on_host ? " and of the optimizer's step counters" : "",
      found.offloads_activations ? ", and of offloaded activations in pinned memory" : ""));
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
}

Json::Object json_of(const CheckAnswer& found) {
  const std::string_view runtime = to_string(found.settings.runtime);
  Json::Object json = check_json(found.report, found.card);
  json.emplace_back("settings", settings_json(found.step, found.batch, runtime));
  json.emplace_back("loop", loop_json(found.step));
  add_process(found.settings, json);
  json.emplace_back("workspaces", workspaces_json(found.workspaces));
  if (found.rule_of_thumb) json.emplace_back("rule_of_thumb", rule_json(*found.rule_of_thumb));
  if (found.evaluation) json.emplace_back("evaluation", evaluation_json(*found.evaluation));
  return json;
}

}  // namespace

// The peak with its tensors, the host's side, what was asked for beside, the card's room, the
// verdict and what would cure a no.
RenderedAnswer rendered(const CheckAnswer& found, const TypedWords& typed, bool verbose,
                        const MemoryOverStep* memory) {
  const CheckReport& report = found.report;
  RenderedAnswer answer{.exit_code = report.fits ? ExitCode::yes : ExitCode::clean_no};
  Report& out = answer.report;
  out.notes = found.notes;
  out.json = json_of(found);
  const Table tensors = largest_tensors(report);
  out.listing = verdict_listing(report, tensors);
  out.say(fmt::format("{}, {} runtime{}", describe_step(found.step, found.batch),
                      to_string(found.settings.runtime),
                      describe_replicas(found.batch, found.settings)),
          Tone::heading);
  if (found.step.loop) out.say("the loop: " + describe_loop(*found.step.loop));
  if (memory != nullptr) out.show(memory_chart(*memory));
  show_peak(found, tensors, verbose, out);
  show_host(found, out);
  if (found.rule_of_thumb) {
    out.say("\nThe rule of thumb (activations and parameters counted by hand) beside it:");
    out.show(rule_table(*found.rule_of_thumb, found.training));
  }
  if (report.run.pools && !report.run.pools->empty()) {
    out.say(report.run.failure ? "\nTensorFlow's pools, when the step failed:"
                               : "\nTensorFlow's pools:");
    out.show(pool_table(report));
  }
  out.say("");
  out.show(room_table(report, found.settings));
  out.say("");
  say_verdict(report, found.card, kernels_in_words(found.settings.runtime), out);
  if (found.evaluation) out.say("  " + say_evaluation(*found.evaluation));
  if (found.cures) add_cures(*found.cures, typed, out);
  return answer;
}

}  // namespace stowage
