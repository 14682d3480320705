#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/file_kind.hpp"
#include "cli/plan_report.hpp"
#include "cli/progress.hpp"
#include "cli/requested_step.hpp"
#include "estimator/base/read_source.hpp"
#include "gpu_probe/cuda/cuda_backend.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"
#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/tolerance.hpp"
#include "planner/plan/plan_file.hpp"

namespace stowage {

namespace {

struct Proceedings {
  std::vector<std::pair<std::string, Check>> checks;  ///< where: "model", "host", "cuda"
  std::vector<std::string> ran;
  std::int64_t steps = 1;  ///< that are run
  std::optional<RunReport> run;
  std::string not_run;  ///< why the run that was asked for did not take place
  bool needs_gpu = false;

  void add(const std::string& where, const std::vector<Check>& more) {
    ran.push_back(where);
    for (const Check& check : more) checks.emplace_back(where, check);
  }
  [[nodiscard]] bool passed() const {
    return std::all_of(checks.begin(), checks.end(),
                       [](const auto& entry) { return entry.second.passed; });
  }
};

Bytes of_steps(Bytes bytes, std::int64_t steps) { return Bytes(bytes.count() * steps); }

Json measured_json(const Proceedings& proceedings, const Plan& plan) {
  if (!proceedings.run) return {};
  const MeasuredRun& measured = proceedings.run->measured;
  Json::Array differences;
  for (const MeasuredDifference& entry : measured.differences) {
    differences.emplace_back(Json::Object{{"kind", plural(entry.kind)},
                                          {"tensors", entry.difference.tensors},
                                          {"unequal", entry.difference.unequal},
                                          {"largest_absolute", entry.difference.absolute},
                                          {"largest_relative", entry.difference.relative}});
  }
  return Json::Object{{"backend", proceedings.run->backend},
                      {"gpu_peak_bytes", measured.gpu_peak},
                      {"planned_gpu_peak_bytes", plan.totals.gpu_peak},
                      {"arena_high_water_bytes", measured.gpu_high_water},
                      {"planned_arena_bytes", plan.totals.arena},
                      {"host_high_water_bytes", measured.host_high_water},
                      {"planned_host_peak_bytes", plan.totals.host_peak},
                      {"planned_pageable_peak_bytes", plan.totals.pageable_peak},
                      {"steps", proceedings.steps},
                      {"h2d_bytes", measured.h2d.bytes},
                      {"planned_h2d_bytes", of_steps(plan.totals.h2d, proceedings.steps)},
                      {"d2h_bytes", measured.d2h.bytes},
                      {"planned_d2h_bytes", of_steps(plan.totals.d2h, proceedings.steps)},
                      {"h2d_copies", measured.h2d.copies},
                      {"d2h_copies", measured.d2h.copies},
                      {"losses", Json::Array(measured.losses.begin(), measured.losses.end())},
                      {"step_seconds", measured.step_seconds},
                      {"kernel_seconds", measured.kernel_seconds},
                      {"h2d_seconds", measured.h2d_seconds},
                      {"d2h_seconds", measured.d2h_seconds},
                      {"planned_step_seconds", plan.totals.step_seconds},
                      {"differences", std::move(differences)}};
}

Json::Object json_of(const Proceedings& proceedings, const Plan& plan) {
  Json::Array checks;
  for (const auto& [where, check] : proceedings.checks) {
    checks.emplace_back(Json::Object{
        {"name", check.name}, {"passed", check.passed}, {"detail", check.detail}, {"on", where}});
  }
  Json::Array ran;
  for (const std::string& where : proceedings.ran) ran.emplace_back(where);
  return {{"plan", plan.name},
          {"checks", std::move(checks)},
          {"ran", std::move(ran)},
          {"not_run", proceedings.not_run.empty() ? Json() : Json(proceedings.not_run)},
          {"measured", measured_json(proceedings, plan)}};
}

Table check_table(const Proceedings& proceedings) {
  Table table{.columns = {{"", "passed"}, {"On", "on"}, {"Check", "name"}, {"Detail", "detail"}}};
  for (const auto& [where, check] : proceedings.checks) {
    table.rows.push_back(
        {{std::string(check.passed ? "passed" : "FAILED"), where, check.name, check.detail}});
  }
  return table;
}

Table measured_table(const MeasuredRun& measured, const PlanTotals& totals, std::int64_t steps) {
  const std::string in_steps = steps == 1 ? "" : fmt::format(", in {} steps", steps);
  Table table{.one_size_scale = true,
              .columns = {{"Measured", "measured"}, {"Planned", "planned"}, {"", "what"}}};
  const auto row = [&](Bytes actual, Bytes planned, std::string what) {
    table.rows.push_back({{actual, planned, std::move(what)}});
  };
  row(measured.gpu_peak, totals.gpu_peak, "resident on the GPU at the peak");
  row(measured.gpu_high_water, totals.arena, "of the GPU arena touched");
  row(measured.host_high_water, totals.host_peak + totals.pageable_peak,
      "of the host arena touched");
  row(measured.h2d.bytes, of_steps(totals.h2d, steps), "host to device" + in_steps);
  row(measured.d2h.bytes, of_steps(totals.d2h, steps), "device to host" + in_steps);
  return table;
}

void say_run(const RunReport& run, const Plan& plan, std::int64_t steps, Report& out) {
  out.say(fmt::format("\nMeasured on {}:", run.backend));
  out.show(measured_table(run.measured, plan.totals, steps));
  const std::vector<double>& losses = run.measured.losses;
  if (losses.size() > 1) {
    out.say(fmt::format("  loss: {:.4g} in the first step, {:.4g} in step {}", losses.front(),
                        losses.back(), losses.size()));
  }
  for (const MeasuredDifference& entry : run.measured.differences) {
    const Difference& difference = entry.difference;
    out.say(fmt::format("  {}: {} of {} differ from the step with everything resident{}",
                        plural(entry.kind), difference.unequal, difference.tensors,
                        difference.unequal == 0
                            ? std::string()
                            : fmt::format(", by at most {:.2e} relative", difference.relative)));
  }
}

Result<void> run_it(const Plan& plan, const ValidateRequest& request, Proceedings& proceedings) {
  const bool on_cuda = request.on == RunOn::cuda;
  auto backend = on_cuda ? open_cuda_backend(usual_cuda_setup(answer_folder(request.keep_answers)))
                         : open_host_backend();
  if (!backend && on_cuda) {
    proceedings.needs_gpu = true;
    proceedings.not_run = backend.error().front().message;
    return {};
  }
  if (!backend) return tl::unexpected(std::move(backend.error()));
  auto run = run_plan(
      plan, **backend,
      {.steps = request.steps, .tolerance = on_cuda ? gpu_tolerance(*plan.step.graph) : 0.0});
  if (!run) return tl::unexpected(std::move(run.error()));
  proceedings.add(on_cuda ? "cuda" : "host", run->checks);
  proceedings.run = std::move(*run);
  return {};
}

ExitCode exit_code_of(const Proceedings& proceedings) {
  if (!proceedings.passed()) return ExitCode::clean_no;
  return proceedings.needs_gpu ? ExitCode::needs_gpu : ExitCode::yes;
}

void say_verdict(const Proceedings& proceedings, Report& out) {
  const auto failed = std::count_if(proceedings.checks.begin(), proceedings.checks.end(),
                                    [](const auto& entry) { return !entry.second.passed; });
  if (failed > 0) {
    out.say(fmt::format("not valid: {} of {} checks failed", failed, proceedings.checks.size()),
            Tone::bad);
    return;
  }
  if (!proceedings.not_run.empty()) {
    out.say(fmt::format("valid on paper ({} checks); not run: {}", proceedings.checks.size(),
                        proceedings.not_run),
            proceedings.needs_gpu ? Tone::bad : Tone::plain);
    return;
  }
  out.say(fmt::format("valid: {} checks passed", proceedings.checks.size()), Tone::good);
}

}  // namespace

Result<Answer> run_validate(const ValidateRequest& request) {
  auto source = read_source(request.plan, FileKind::plan);
  if (!source) return tl::unexpected(std::move(source.error()));
  if (auto mistake = not_a_plan(**source)) return failure(*std::move(mistake));
  const auto plan = read_plan(std::move(*source));
  if (!plan) return tl::unexpected(plan.error());

  const Progress progress("checking the plan");
  Proceedings proceedings{.steps = request.steps};
  CudnnWorkspaceSource workspaces(plan->inputs.card, answer_folder(request.keep_answers));
  std::vector<Check> on_paper = validate_plan(*plan, workspaces).checks;
  on_paper.push_back(request.compare_source
                         ? compare_with_source(*plan)
                         : Check{"source not compared", true, "--source compares"});
  proceedings.add("model", on_paper);

  const bool executable = plan->step.graph->kernel_set().executable;
  if (!request.run) {
    proceedings.not_run = "only the model checks were asked for";
  } else if (!proceedings.passed()) {
    proceedings.not_run = "the model checks failed";
  } else if (!executable && !request.insists) {
    proceedings.not_run = "the plan is of another runtime's kernels, which stowage does not run";
  } else if (auto run = run_it(*plan, request, proceedings); !run) {
    return tl::unexpected(std::move(run.error()));
  }

  Answer answer;
  answer.exit_code = exit_code_of(proceedings);
  Report& out = answer.report;
  out.json = json_of(proceedings, *plan);
  out.listing = check_table(proceedings);
  out.say(fmt::format("'{}' for {}, batch {}, on {}", plan->name, plan->inputs.model_name,
                      whole_batch(*plan).samples, plan->inputs.card.name),
          Tone::heading);
  out.show(out.listing);
  if (proceedings.run) say_run(*proceedings.run, *plan, request.steps, out);
  out.say("");
  say_verdict(proceedings, out);
  return answer;
}

}  // namespace stowage
