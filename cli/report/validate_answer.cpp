#include "cli/report/validate_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/options/setting_names.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

Bytes of_steps(Bytes bytes, std::int64_t steps) { return Bytes(bytes.count() * steps); }

std::int64_t copies_of(const Plan& plan, Direction direction) {
  return std::ranges::count_if(plan.transfers, [&](const Transfer& transfer) {
    return direction_of(plan, transfer) == direction;
  });
}

Json lanes_json(const LaneSeconds& measured, const LaneSeconds& planned) {
  const auto lane = [](double actual, double expected) {
    return Json::Object{{"seconds", actual}, {"planned_seconds", expected}};
  };
  return Json::Object{{"step", lane(measured.step, planned.step)},
                      {"gpu", lane(measured.gpu, planned.gpu)},
                      {"cpu", lane(measured.cpu, planned.cpu)},
                      {"h2d", lane(measured.h2d, planned.h2d)},
                      {"d2h", lane(measured.d2h, planned.d2h)}};
}

Json memory_json(const std::optional<DeviceMemoryUse>& use) {
  if (!use) return {};
  const std::optional<Bytes>& nvml = use->with_arenas.nvml_used;
  return Json::Object{
      {"total_bytes", use->loaded.total},      {"free_before_bytes", use->before.free},
      {"free_loaded_bytes", use->loaded.free}, {"free_with_arenas_bytes", use->with_arenas.free},
      {"free_after_bytes", use->after.free},   {"nvml_used_bytes", nvml ? Json(*nvml) : Json()}};
}

Json measured_json(const PlanFindings& findings) {
  if (!findings.run) return {};
  const Plan& plan = findings.plan;
  const MeasuredRun& measured = findings.run->measured;
  Json::Array differences;
  for (const MeasuredDifference& entry : measured.differences) {
    differences.emplace_back(Json::Object{{"kind", plural(entry.kind)},
                                          {"tensors", entry.difference.tensors},
                                          {"unequal", entry.difference.unequal},
                                          {"largest_absolute", entry.difference.absolute},
                                          {"largest_relative", entry.difference.relative},
                                          {"tolerance", entry.tolerance}});
  }
  return Json::Object{{"backend", findings.run->backend},
                      {"gpu_peak_bytes", measured.gpu_peak},
                      {"planned_gpu_peak_bytes", plan.totals.gpu_peak},
                      {"arena_high_water_bytes", measured.gpu_high_water},
                      {"planned_arena_bytes", plan.totals.arena},
                      {"host_high_water_bytes", measured.host_high_water},
                      {"planned_host_peak_bytes", plan.totals.host_peak},
                      {"planned_pageable_peak_bytes", plan.totals.pageable_peak},
                      {"steps", findings.steps},
                      {"h2d_bytes", measured.h2d.bytes},
                      {"planned_h2d_bytes", of_steps(plan.totals.h2d, findings.steps)},
                      {"d2h_bytes", measured.d2h.bytes},
                      {"planned_d2h_bytes", of_steps(plan.totals.d2h, findings.steps)},
                      {"h2d_copies", measured.h2d.copies},
                      {"d2h_copies", measured.d2h.copies},
                      {"losses", Json::Array(measured.losses.begin(), measured.losses.end())},
                      {"step_seconds", measured.lanes.step},
                      {"kernel_seconds", measured.lanes.kernels()},
                      {"h2d_seconds", measured.lanes.h2d},
                      {"d2h_seconds", measured.lanes.d2h},
                      {"planned_step_seconds", plan.totals.step_seconds},
                      {"lanes", lanes_json(measured.lanes, planned_lane_seconds(plan))},
                      {"device_memory", memory_json(measured.memory)},
                      {"differences", std::move(differences)}};
}

Json wanted_json(const std::optional<WantedRun>& wanted, const Plan& plan) {
  if (!wanted) return {};
  Json::Array missing;
  for (const std::string& text : wanted->missing) missing.emplace_back(text);
  return Json::Object{
      {"own_kernels", wanted->kernels.own},     {"cublas_kernels", wanted->kernels.cublas},
      {"cudnn_kernels", wanted->kernels.cudnn}, {"cpu_kernels", wanted->kernels.cpu},
      {"missing", std::move(missing)},          {"h2d_copies", copies_of(plan, Direction::h2d)},
      {"h2d_bytes", plan.totals.h2d},           {"d2h_copies", copies_of(plan, Direction::d2h)},
      {"d2h_bytes", plan.totals.d2h},           {"arena_bytes", plan.totals.arena},
      {"pinned_bytes", plan.totals.host_peak},  {"pageable_bytes", plan.totals.pageable_peak}};
}

Table check_table(const PlanFindings& findings) {
  Table table{.columns = {{"", "passed"}, {"On", "on"}, {"Check", "name"}, {"Detail", "detail"}}};
  for (const auto& [where, check] : findings.checks) {
    table.rows.push_back({{std::string(check.passed ? "passed" : "FAILED"), where, check.name,
                           in_options(check.detail)}});
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

/// Whose seconds the plan's are, beside those of the backend.
std::string planned_for(const Plan& plan) {
  if (plan.machine.measured_on.empty()) return "of " + plan.inputs.card.name;
  return "measured on " + plan.machine.measured_on;
}

void say_lanes(const LaneSeconds& measured, const Plan& plan, Report& out) {
  const LaneSeconds planned = planned_lane_seconds(plan);
  Table table{.columns = {{"Measured", "measured"}, {"Planned", "planned"}, {"", "lane"}}};
  const auto row = [&](double actual, double expected, std::string lane) {
    if (actual <= 0 && expected <= 0) return;
    table.rows.push_back({{Duration{actual}, Duration{expected}, std::move(lane)}});
  };
  row(measured.step, planned.step, "the step");
  row(measured.gpu, planned.gpu, "in kernels on the GPU");
  row(measured.cpu, planned.cpu, "in kernels on the CPU");
  row(measured.h2d, planned.h2d, "in copies to the GPU");
  row(measured.d2h, planned.d2h, "in copies from the GPU");
  out.say(
      fmt::format("  Seconds of a step, the median of those that are warm; the planned ones "
                  "are {}:",
                  planned_for(plan)));
  out.show(std::move(table));
}

void say_memory(const DeviceMemoryUse& use, Report& out) {
  out.say(
      fmt::format("  free on the device: {} before, {} once all kernels are loaded, {} with "
                  "the arena, {} after",
                  format_bytes(use.before.free), format_bytes(use.loaded.free),
                  format_bytes(use.with_arenas.free), format_bytes(use.after.free)));
}

void say_run(const RunReport& run, const Plan& plan, std::int64_t steps, Report& out) {
  out.say(fmt::format("\nMeasured on {}:", run.backend));
  out.show(measured_table(run.measured, plan.totals, steps));
  if (run.measured.memory) say_memory(*run.measured.memory, out);
  if (!run.measured.times.empty()) say_lanes(run.measured.lanes, plan, out);
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
                            : fmt::format(", by at most {:.2e} relative; {:.2g} is allowed",
                                          difference.relative, entry.tolerance)));
  }
  for (const std::string& remark : run.remarks) out.say("  " + remark);
}

void say_wanted(const WantedRun& wanted, const Plan& plan, Report& out) {
  const CudaNodeCounts& kernels = wanted.kernels;
  const PlanTotals& totals = plan.totals;
  out.say("\nA machine with a GPU would run of each step:");
  out.say(
      fmt::format("  {} kernels on the GPU: {} of our own, {} of cuBLAS, {} of cuDNN; {} on "
                  "the CPU",
                  kernels.own + kernels.cublas + kernels.cudnn, kernels.own, kernels.cublas,
                  kernels.cudnn, kernels.cpu));
  out.say(fmt::format("  {} copies of {} to the GPU, {} of {} from it",
                      copies_of(plan, Direction::h2d), format_bytes(totals.h2d),
                      copies_of(plan, Direction::d2h), format_bytes(totals.d2h)));
  out.say(fmt::format("  in an arena of {}, {} of pinned and {} of pageable host memory",
                      format_bytes(totals.arena), format_bytes(totals.host_peak),
                      format_bytes(totals.pageable_peak)));
  constexpr std::size_t most_listed = 5;
  for (std::size_t i = 0; i < std::min(wanted.missing.size(), most_listed); ++i) {
    out.say("  and could not: " + wanted.missing[i], Tone::bad);
  }
  if (wanted.missing.size() > most_listed) {
    out.say(fmt::format("  and {} more", wanted.missing.size() - most_listed), Tone::bad);
  }
}

void say_verdict(const PlanFindings& findings, Report& out) {
  const auto failed = std::ranges::count_if(findings.checks,
                                            [](const auto& entry) { return !entry.second.passed; });
  if (failed > 0) {
    out.say(fmt::format("not valid: {} of {} checks failed", failed, findings.checks.size()),
            Tone::bad);
    return;
  }
  if (!findings.not_run.empty()) {
    out.say(fmt::format("valid on paper ({} checks); not run: {}", findings.checks.size(),
                        in_options(findings.not_run)),
            findings.needs_gpu || findings.is_refused ? Tone::bad : Tone::plain);
    return;
  }
  out.say(fmt::format("valid: {} checks passed", findings.checks.size()), Tone::good);
}

Json::Object validation_json(const PlanFindings& findings) {
  Json::Array checks;
  for (const auto& [where, check] : findings.checks) {
    checks.emplace_back(Json::Object{{"name", check.name},
                                     {"passed", check.passed},
                                     {"detail", in_options(check.detail)},
                                     {"on", where}});
  }
  Json::Array ran, remarks;
  for (const std::string& where : findings.ran) ran.emplace_back(where);
  if (findings.run) {
    for (const std::string& remark : findings.run->remarks) remarks.emplace_back(remark);
  }
  return {{"plan", findings.for_pytorch ? Json() : Json(findings.plan.name)},
          {"verdict", findings.passed() ? "valid" : "not_valid"},
          {"checks", std::move(checks)},
          {"ran", std::move(ran)},
          {"not_run", findings.not_run.empty() ? Json() : Json(in_options(findings.not_run))},
          {"measured", measured_json(findings)},
          {"would_run", wanted_json(findings.wanted, findings.plan)},
          {"remarks", std::move(remarks)}};
}

std::string validated_heading(const PlanFindings& findings) {
  if (const auto& made = findings.for_pytorch) {
    return fmt::format("a plan for PyTorch of {}, batch {}, on {}", made->model,
                       made->batch * made->micro_batches, made->card);
  }
  const Plan& plan = findings.plan;
  return fmt::format("'{}' for {}, batch {}, on {}", plan.name, plan.inputs.model_name,
                     whole_batch(plan).samples, plan.inputs.card.name);
}

void say_validation(const PlanFindings& findings, Report& out) {
  const Plan& plan = findings.plan;
  out.say(validated_heading(findings), Tone::heading);
  out.show(check_table(findings));
  if (findings.run) say_run(*findings.run, plan, findings.steps, out);
  if (findings.wanted) say_wanted(*findings.wanted, plan, out);
  out.say("");
  say_verdict(findings, out);
}

void list_checks(const PlanFindings& findings, const std::string& of, Table& listing) {
  Table table = check_table(findings);
  if (!of.empty()) {
    table.columns.insert(table.columns.begin(), {"Plan", "plan"});
    for (Row& row : table.rows) row.cells.insert(row.cells.begin(), of);
  }
  listing.columns = std::move(table.columns);
  std::ranges::move(table.rows, std::back_inserter(listing.rows));
}

ExitCode exit_code_of(const PlanFindings& findings) {
  if (!findings.passed()) return ExitCode::clean_no;
  if (findings.is_refused) return ExitCode::bad_input;
  return findings.needs_gpu ? ExitCode::needs_gpu : ExitCode::yes;
}

/// A failed check is the worst, then a run that is refused, then a GPU that is not there.
ExitCode worse(ExitCode a, ExitCode b) {
  for (const ExitCode code : {ExitCode::clean_no, ExitCode::bad_input, ExitCode::needs_gpu}) {
    if (a == code || b == code) return code;
  }
  return ExitCode::yes;
}

RenderedAnswer several(const ValidateAnswer& found) {
  RenderedAnswer answer;
  Report& out = answer.report;
  Json::Array each;
  bool all_passed = true;
  for (const PlanFindings& findings : found.plans) {
    Json::Object json = validation_json(findings);
    json.insert(json.begin(), {"file", findings.file});
    each.emplace_back(std::move(json));
    if (&findings != &found.plans.front()) out.say("");
    out.say(findings.file + ":", Tone::heading);
    say_validation(findings, out);
    list_checks(findings, findings.file, out.listing);
    answer.exit_code = worse(answer.exit_code, exit_code_of(findings));
    all_passed = all_passed && findings.passed();
  }
  out.json = {{"verdict", all_passed ? "valid" : "not_valid"}, {"plans", std::move(each)}};
  return answer;
}

RenderedAnswer alone(const PlanFindings& findings) {
  RenderedAnswer answer{.report = {}, .exit_code = exit_code_of(findings)};
  answer.report.json = validation_json(findings);
  list_checks(findings, {}, answer.report.listing);
  say_validation(findings, answer.report);
  return answer;
}

}  // namespace

RenderedAnswer rendered(const ValidateAnswer& found) {
  return found.plans.size() == 1 ? alone(found.plans.front()) : several(found);
}

}  // namespace stowage
