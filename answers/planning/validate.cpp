#include "answers/planning/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "answers/planning/asked_plan.hpp"
#include "answers/question/config_directory.hpp"
#include "answers/subject/workspaces.hpp"
#include "estimator/card/card.hpp"
#include "gpu_probe/cuda/cuda_backend.hpp"
#include "gpu_probe/device/this_host.hpp"
#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/gather_times.hpp"
#include "gpu_probe/run/missing_kernels.hpp"
#include "gpu_probe/run/time_check.hpp"
#include "gpu_probe/run/tolerance.hpp"
#include "planner/problem/measured_times_file.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

namespace {

Result<std::vector<PlanFindings>> read_all(const ValidateQuestion& question) {
  std::vector<PlanFindings> plans;
  Diagnostics mistakes;
  for (const std::string& file : question.plans) {
    if (const auto found = question.for_pytorch.find(file); found != question.for_pytorch.end()) {
      plans.push_back({.file = file});
      plans.back().for_pytorch = found->second.named.plan;
      continue;
    }
    // A pipe is read once.
    const auto text = question.texts.find(file);
    auto plan = text != question.texts.end() ? read_plan_text(text->second) : read_plan_file(file);
    if (plan) {
      PlanFindings findings{.file = file};
      findings.plan = *std::move(plan);
      findings.steps = question.steps;
      plans.push_back(std::move(findings));
    } else {
      std::ranges::move(plan.error(), std::back_inserter(mistakes));
    }
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return plans;
}

/// Whether the plan's seconds were measured here, by this backend.
bool is_of_this_machine(const Plan& plan, const Backend& backend) {
  return plan.machine.measured_on == backend.name() && plan.inputs.host.name == this_host().name;
}

/// Adds what the run finds, or why there is no GPU for it.
Result<void> run_it(const ValidateQuestion& question, PlanFindings& findings) {
  const Plan& plan = findings.plan;
  const bool on_cuda = question.on == RunOn::cuda;
  auto backend = on_cuda
                     ? open_cuda_backend(default_cuda_setup(answer_folder(question.keep_answers)))
                     : open_host_backend();
  if (!backend && on_cuda) {
    findings.needs_gpu = true;
    findings.not_run = backend.error().front().message;
    findings.wanted = {count_cuda_nodes(plan), missing_kernels(plan, KernelDevice::cuda)};
    return {};
  }
  if (!backend) return tl::unexpected(std::move(backend.error()));
  auto run =
      run_plan(plan, **backend,
               {.steps = question.steps,
                .tolerance = on_cuda ? gpu_tolerance(*plan.step.graph) : 0.0,
                // What is measured anew is not held against what was measured before.
                .check_times = !question.measures_anew && is_of_this_machine(plan, **backend)});
  if (!run) return tl::unexpected(std::move(run.error()));
  findings.add(on_cuda ? "cuda" : "host", run->checks);
  findings.run = std::move(*run);
  return {};
}

void check_on_paper(const ValidateQuestion& question, PlanFindings& findings) {
  const Plan& plan = findings.plan;
  const Workspaces workspaces = Workspaces::as_given(plan.inputs.card, question.keep_answers);
  std::vector<Check> on_paper = validate_plan(plan, workspaces.source()).checks;
  on_paper.push_back(question.compare_source
                         ? compare_with_source(plan)
                         : Check{"source not compared", true, "`source` compares"});
  findings.add("model", on_paper);
}

/// What PyTorch is to run. Errors: those of recounted(); a run was asked for by name.
Result<void> validate_for_pytorch(const ValidateQuestion& question, PlanFindings& findings) {
  const PytorchPlanQuestion& asked = question.for_pytorch.at(findings.file);
  constexpr std::string_view way = "stowage.verify compares a step of the script with it";
  if (question.run && question.insists) {
    return failure(
        {.message = "a plan for PyTorch is run by PyTorch, not by stowage",
         .span = {.source = asked.named.source},
         .hint = fmt::format("{} (docs/apply.md); `model_only` checks it on paper", way)});
  }
  const auto checks = recounted(asked);
  if (!checks) return tl::unexpected(checks.error());
  findings.add("model", *checks);
  findings.not_run = fmt::format("PyTorch runs it, and {}", way);
  return {};
}

/// Errors, which are no findings about the plan: what run_plan refuses.
Result<void> validate(const ValidateQuestion& question, PlanFindings& findings) {
  if (findings.for_pytorch) return validate_for_pytorch(question, findings);
  check_on_paper(question, findings);
  const bool executable = findings.plan.step.graph->kernel_set().executable;
  if (!question.run) {
    findings.not_run = "only the model checks were asked for";
  } else if (!findings.passed()) {
    findings.not_run = "the model checks failed";
  } else if (!executable && !question.insists) {
    findings.not_run = "the plan is of another runtime's kernels, which stowage does not run";
  } else if (auto run = run_it(question, findings); !run) {
    // Of several plans the others are told all the same.
    if (question.plans.size() == 1) return run;
    findings.not_run = run.error().front().message;
    findings.is_refused = true;
  }
  return {};
}

/// A device's card in the catalogue, or its own name.
std::string card_of_device(const std::string& device) {
  const auto configs = find_configs({});
  if (!configs) return device;
  const auto found = find_card(device, configs->gpus());
  return found ? found->card.name : device;
}

}  // namespace

void PlanFindings::add(const std::string& where, const std::vector<Check>& more) {
  ran.push_back(where);
  for (const Check& check : more) checks.emplace_back(where, check);
}

bool PlanFindings::passed() const {
  return std::ranges::all_of(checks, [](const auto& entry) { return entry.second.passed; });
}

Result<ValidateAnswer> answer(const ValidateQuestion& question,
                              const std::function<void(const std::string&)>& at_plan) {
  auto plans = read_all(question);
  if (!plans) return tl::unexpected(std::move(plans.error()));
  for (PlanFindings& findings : *plans) {
    if (at_plan) at_plan(findings.file);
    if (auto validated = validate(question, findings); !validated) {
      return tl::unexpected(std::move(validated.error()));
    }
  }
  return ValidateAnswer{*std::move(plans)};
}

std::string measured_calibration(const PlanFindings& findings) {
  const bool measured = findings.run && !findings.run->measured.times.empty();
  if (!measured || !findings.passed()) return {};
  const Plan& plan = findings.plan;
  const RunReport& run = *findings.run;
  MeasuredTimes times = gather_times(plan, run.measured.times, run.backend == "host");
  times.backend = run.backend;
  constexpr std::string_view device = "cuda: ";
  times.card = run.backend.starts_with(device) ? card_of_device(run.backend.substr(device.size()))
                                               : card_of_times(plan.inputs.card);
  times.host = this_host().name;
  const std::string origin =
      fmt::format("{} step{} of '{}', batch {}", findings.steps, findings.steps == 1 ? "" : "s",
                  plan.inputs.model_name, whole_batch(plan).samples);
  return measured_times_yaml(times, origin);
}

std::optional<double> waits_of_busy_machine(const PlanFindings& findings) {
  if (!findings.run) return std::nullopt;
  const std::optional<double> waits = findings.run->measured.waits;
  return waits.value_or(0) > idle_waits ? waits : std::nullopt;
}

}  // namespace stowage
