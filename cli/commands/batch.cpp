#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "cli/commands/commands.hpp"
#include "cli/options/arguments.hpp"
#include "cli/output/progress.hpp"
#include "cli/report/check_report.hpp"
#include "cli/report/replicas.hpp"
#include "cli/report/step_report.hpp"
#include "cli/report/workspace_report.hpp"
#include "cli/requested/requested_step.hpp"
#include "cli/sizing/comparison.hpp"
#include "cli/sizing/largest_of.hpp"
#include "estimator/check/batch_search.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"

namespace stowage {

namespace {

Table curve_table(const BatchReport& report) {
  Table table{.columns = {{"Batch", "batch"}, {"On the device", "device_bytes"}}};
  for (const CurvePoint& point : report.curve) {
    table.rows.push_back({{point.batch, point.device_bytes}});
  }
  return table;
}

Json accumulation_json(const BatchReport& report) {
  if (!report.accumulation) return {};
  return Json::Object{{"global_batch", report.accumulation->global_batch.samples},
                      {"gpus", report.accumulation->gpus},
                      {"micro_batch", report.accumulation->micro_batch},
                      {"steps", report.accumulation->steps}};
}

Json::Object json_of(const BatchReport& report, const Card& card, const CheckSettings& settings) {
  Json::Array curve;
  for (const CurvePoint& point : report.curve) {
    curve.emplace_back(Json::Object{{"batch", point.batch}, {"device_bytes", point.device_bytes}});
  }
  const Bytes available = card.cuda_total - settings.in_use - settings.reserve;
  const auto of = [](const std::optional<CheckReport>& at, Bytes CheckReport::*bytes) {
    return at ? Json((*at).*bytes) : Json();
  };
  return {{"device", Json::Object{{"name", card.name},
                                  {"total_bytes", card.cuda_total},
                                  {"available_bytes", available}}},
          {"largest", report.largest},
          {"largest_safe", report.largest_safe},
          {"recommended", report.recommended},
          {"largest_device_bytes", of(report.at_largest, &CheckReport::device_bytes)},
          {"largest_headroom_bytes", of(report.at_largest, &CheckReport::headroom)},
          {"recommended_device_bytes", of(report.at_recommended, &CheckReport::device_bytes)},
          {"recommended_headroom_bytes", of(report.at_recommended, &CheckReport::headroom)},
          {"margin_bytes", report.margin},
          {"keeps_margin", report.keeps_margin},
          {"unlimited", report.unlimited},
          {"all_tried", report.all_tried},
          {"curve", std::move(curve)},
          {"accumulation", accumulation_json(report)},
          {"culprit", report.at_one ? Json(report.at_one->culprit) : Json()}};
}

// Each replica gets an equal share.
BatchReport of_all_replicas(BatchReport report, std::int64_t replicas) {
  for (std::int64_t* batch : {&report.largest, &report.largest_safe, &report.recommended}) {
    *batch *= replicas;
  }
  for (CurvePoint& point : report.curve) point.batch *= replicas;
  return report;
}

std::string say_largest(const BatchReport& report) {
  std::string text =
      fmt::format("the largest batch that fits is {}, {} to spare", grouped_digits(report.largest),
                  format_bytes(report.at_largest->headroom));
  const std::int64_t releases = report.at_largest->run.process().releases;
  if (releases == 1) text += " after PyTorch has given its cache back once";
  if (releases > 1)
    text += fmt::format(" after PyTorch has given its cache back {} times", releases);
  if (report.largest_safe < report.largest) {
    text += fmt::format("; all up to {} fit", grouped_digits(report.largest_safe));
  }
  return text;
}

std::string say_recommended(const BatchReport& report, const Card& card) {
  const auto [wanted, available] =
      format_apart(report.at_recommended->device_bytes, report.at_recommended->available_bytes);
  return fmt::format("use --batch {}: {} of the {} available on {}, {} to spare ({} --margin {})",
                     report.recommended, wanted, available, card.name,
                     format_bytes(report.at_recommended->headroom),
                     report.keeps_margin ? "at least" : "no batch leaves",
                     format_bytes(report.margin));
}

void say_verdict(const BatchReport& report, const Card& card, Report& out) {
  if (report.largest == 0) {
    out.say(fmt::format("not even one sample fits {}", card.name), Tone::bad);
    if (report.at_one && report.at_one->run.failure) {
      out.say("  " + report.at_one->run.failure->message);
    }
    if (report.at_one && !report.at_one->run.would_do.empty()) {
      out.say(fmt::format("  {} would do",
                          fmt::join(pool_options(report.at_one->run.would_do), " or ")));
    }
    if (report.at_one) {
      const auto [wanted, available] = format_apart(
          report.at_one->device_bytes, std::max(report.at_one->available_bytes, Bytes()));
      out.say(fmt::format("  {} wanted, {} available\n  {}", wanted, available,
                          report.at_one->culprit));
    }
    return;
  }
  if (report.unlimited) {
    out.say(fmt::format("no batch that was tried is too large; the search ends at {}",
                        grouped_digits(largest_searched_batch)));
  }
  out.say(say_largest(report));
  if (!report.all_tried) {
    out.say("  (there are too many to try them all)");
  }
  if (report.accumulation) {
    const Accumulation& accumulation = *report.accumulation;
    const bool is_one = accumulation.steps == 1;
    out.say(fmt::format(
        "a global batch of {}: {} {} of {}{}{}", grouped_digits(accumulation.global_batch.samples),
        grouped_digits(accumulation.steps), is_one ? "step" : "steps",
        grouped_digits(accumulation.micro_batch),
        accumulation.gpus > 1 ? fmt::format(" on each of {} GPUs", accumulation.gpus) : "",
        is_one ? "" : ", gradients accumulated"));
  }
  if (report.at_recommended) out.say(say_recommended(report, card), Tone::good);
}

}  // namespace

Result<Answer> run_batch(const BatchRequest& request) {
  if (is_comparison(request.step, request.card)) return compare(request);
  if (request.of) return largest_of(request);
  const Progress progress("searching for the largest batch");
  const auto requested_gpu = requested_card(request.card);
  if (!requested_gpu) return tl::unexpected(requested_gpu.error());
  const Card& card = requested_gpu->card;
  const auto requested = requested_step(request.step, *requested_gpu, step_alone);
  if (!requested) return tl::unexpected(requested.error());
  const StepDocument& document = requested->document;
  if (document.fixed_batch) {
    return failure(command_line_error(
        fmt::format("the step was recorded at batch {} and has no sizes at another",
                    grouped_digits(*document.batch))));
  }
  const ToldStep told = told_step(document);
  const CheckSettings& settings = requested->settings;
  CudnnWorkspaceSource cudnn(card, answer_folder(request.step.keep_answers));
  RuntimeWorkspaceSource workspaces(cudnn, settings.runtime);
  BatchSettings search{
      .check = settings, .margin = request.margin, .global_batch = request.global_batch};
  const std::int64_t replicas = replica_count(settings);
  if (search.global_batch) {
    auto accumulating = accumulating_step(document);
    if (!accumulating) return tl::unexpected(std::move(accumulating.error()));
    search.accumulating = *std::move(accumulating);
  }
  const auto graph = sizing_step(document);
  if (!graph) return tl::unexpected(graph.error());
  const auto report =
      find_batch(*graph, card, search, workspaces).map([&](BatchReport of_a_replica) {
        return of_all_replicas(std::move(of_a_replica), replicas);
      });
  if (!report) return tl::unexpected(report.error());

  Answer answer;
  answer.exit_code = report->largest > 0 ? ExitCode::yes : ExitCode::clean_no;
  Report& out = answer.report;
  out.notes = notes_of(*requested, *requested_gpu);
  std::ranges::move(cudnn_notes(cudnn), std::back_inserter(out.notes));
  out.json = json_of(*report, card, settings);
  out.json.emplace_back("settings",
                        settings_json(told, report->recommended, to_string(settings.runtime)));
  out.json.emplace_back("software", stack_json(settings.stack));
  out.json.emplace_back("tensorflow", tensorflow_json(settings));
  out.json.emplace_back("theano", theano_json(settings));
  out.listing = curve_table(*report);

  out.say(fmt::format("{}, {} runtime, {}", describe_step(told, std::nullopt),
                      to_string(settings.runtime), card.name),
          Tone::heading);
  if (!report->curve.empty()) out.show(out.listing);
  say_verdict(*report, card, out);
  return answer;
}

}  // namespace stowage
