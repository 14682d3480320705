#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "cli/commands/commands.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/report/validation_report.hpp"
#include "cli/requested/file_kind.hpp"
#include "cli/requested/requested_step.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/card/card.hpp"
#include "gpu_probe/cuda/cuda_backend.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"
#include "gpu_probe/device/this_host.hpp"
#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/gather_times.hpp"
#include "gpu_probe/run/missing_kernels.hpp"
#include "gpu_probe/run/time_check.hpp"
#include "gpu_probe/run/tolerance.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/problem/measured_times_file.hpp"

namespace stowage {

namespace {

Result<Plan> read_one(const std::string& file) {
  auto source = read_source(file, FileKind::plan);
  if (!source) return tl::unexpected(std::move(source.error()));
  if (auto mistake = not_a_plan(**source)) return failure(*std::move(mistake));
  return read_plan(std::move(*source));
}

/// All of them before any is run, so that a mistake in the last is told at once.
Result<std::vector<Plan>> read_all(const std::vector<std::string>& files) {
  std::vector<Plan> plans;
  Diagnostics mistakes;
  for (const std::string& file : files) {
    auto plan = read_one(file);
    if (plan) {
      plans.push_back(*std::move(plan));
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

Result<void> run_it(const Plan& plan, const ValidateRequest& request, Proceedings& proceedings) {
  const bool on_cuda = request.on == RunOn::cuda;
  auto backend = on_cuda
                     ? open_cuda_backend(default_cuda_setup(answer_folder(request.keep_answers)))
                     : open_host_backend();
  if (!backend && on_cuda) {
    proceedings.needs_gpu = true;
    proceedings.not_run = backend.error().front().message;
    proceedings.wanted = {count_cuda_nodes(plan), missing_kernels(plan, KernelDevice::cuda)};
    return {};
  }
  if (!backend) return tl::unexpected(std::move(backend.error()));
  auto run =
      run_plan(plan, **backend,
               {.steps = request.steps,
                .tolerance = on_cuda ? gpu_tolerance(*plan.step.graph) : 0.0,
                // What is measured anew is not held against what was measured before.
                .check_times = request.calibration.empty() && is_of_this_machine(plan, **backend)});
  if (!run) return tl::unexpected(std::move(run.error()));
  proceedings.add(on_cuda ? "cuda" : "host", run->checks);
  proceedings.run = std::move(*run);
  return {};
}

/// Errors, which are no findings about the plan: what run_plan refuses.
Result<Proceedings> validated(const Plan& plan, const ValidateRequest& request) {
  Proceedings proceedings{.steps = request.steps};
  CudnnWorkspaceSource workspaces(plan.inputs.card, answer_folder(request.keep_answers));
  std::vector<Check> on_paper = validate_plan(plan, workspaces).checks;
  on_paper.push_back(request.compare_source
                         ? compare_with_source(plan)
                         : Check{"source not compared", true, "--source compares"});
  proceedings.add("model", on_paper);

  const bool executable = plan.step.graph->kernel_set().executable;
  if (!request.run) {
    proceedings.not_run = "only the model checks were asked for";
  } else if (!proceedings.passed()) {
    proceedings.not_run = "the model checks failed";
  } else if (!executable && !request.insists) {
    proceedings.not_run = "the plan is of another runtime's kernels, which stowage does not run";
  } else if (auto run = run_it(plan, request, proceedings); !run) {
    // Of several plans the others are told all the same.
    if (request.plans.size() == 1) return tl::unexpected(std::move(run.error()));
    proceedings.not_run = run.error().front().message;
    proceedings.is_refused = true;
  }
  return proceedings;
}

/// A device's card in the catalogue, or its own name.
std::string card_of_device(const std::string& device) {
  const auto configs = find_configs({});
  if (!configs) return device;
  const auto found = find_card(device, configs->gpus());
  return found ? found->card.name : device;
}

std::string calibration_text(const Plan& plan, const Proceedings& proceedings) {
  const RunReport& run = *proceedings.run;
  MeasuredTimes times = gather_times(plan, run.measured.times, run.backend == "host");
  times.backend = run.backend;
  constexpr std::string_view device = "cuda: ";
  times.card = run.backend.starts_with(device) ? card_of_device(run.backend.substr(device.size()))
                                               : card_of_times(plan.inputs.card);
  times.host = this_host().name;
  const std::string origin = fmt::format("{} step{} of '{}', batch {}", proceedings.steps,
                                         proceedings.steps == 1 ? "" : "s", plan.inputs.model_name,
                                         whole_batch(plan).samples);
  return measured_times_yaml(times, origin);
}

Result<void> write_calibration(const std::string& path, OutputFile& file, const Plan& plan,
                               const Proceedings& proceedings, Report& out) {
  const bool measured = proceedings.run && !proceedings.run->measured.times.empty();
  if (!measured || !proceedings.passed()) {
    out.say(fmt::format("{} is not written: nothing that is valid was measured", path), Tone::bad);
    return {};
  }
  if (auto written = file.commit(calibration_text(plan, proceedings)); !written) return written;
  const std::optional<double> waits = proceedings.run->measured.waits;
  if (waits.value_or(0) > idle_waits) {
    out.notes.push_back(
        {.severity = Severity::warning,
         .message = fmt::format("the machine is not idle: the run waited {:.0f} percent of "
                                "the time for a core, and so the times in {} are too long",
                                100 * *waits, path)});
  }
  out.json.emplace_back("written", path);
  out.say(fmt::format("its times are written to {}; plan takes them as --calibration", path),
          Tone::good);
  return {};
}

/// A failed check is the worst, then a run that is refused, then a GPU that is not there.
ExitCode worse(ExitCode a, ExitCode b) {
  for (const ExitCode code : {ExitCode::clean_no, ExitCode::bad_input, ExitCode::needs_gpu}) {
    if (a == code || b == code) return code;
  }
  return ExitCode::yes;
}

Answer several(const std::vector<Plan>& plans, const std::vector<Proceedings>& all,
               const ValidateRequest& request) {
  Answer answer;
  Report& out = answer.report;
  Json::Array each;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    Json::Object json = validation_json(all[i], plans[i]);
    json.insert(json.begin(), {"file", request.plans[i]});
    each.emplace_back(std::move(json));
    if (i > 0) out.say("");
    out.say(request.plans[i] + ":", Tone::heading);
    say_validation(all[i], plans[i], out);
    list_checks(all[i], request.plans[i], out.listing);
    answer.exit_code = worse(answer.exit_code, all[i].exit_code());
  }
  out.json = {{"plans", std::move(each)}};
  return answer;
}

Answer alone(const Plan& plan, const Proceedings& proceedings) {
  Answer answer{.report = {}, .exit_code = proceedings.exit_code()};
  answer.report.json = validation_json(proceedings, plan);
  list_checks(proceedings, {}, answer.report.listing);
  say_validation(proceedings, plan, answer.report);
  return answer;
}

}  // namespace

Result<Answer> run_validate(const ValidateRequest& request) {
  const auto plans = read_all(request.plans);
  if (!plans) return tl::unexpected(plans.error());
  std::optional<OutputFile> calibration;
  if (!request.calibration.empty()) {
    auto file = OutputFile::open(request.calibration);
    if (!file) return tl::unexpected(std::move(file.error()));
    calibration.emplace(*std::move(file));
  }
  Progress progress("checking the plan");
  std::vector<Proceedings> all;
  for (std::size_t i = 0; i < plans->size(); ++i) {
    if (plans->size() > 1) progress.now(fmt::format("checking {}", request.plans[i]));
    auto proceedings = validated((*plans)[i], request);
    if (!proceedings) return tl::unexpected(std::move(proceedings.error()));
    all.push_back(*std::move(proceedings));
  }
  if (plans->size() > 1) return several(*plans, all, request);
  Answer answer = alone(plans->front(), all.front());
  if (calibration) {
    auto written = write_calibration(request.calibration, *calibration, plans->front(), all.front(),
                                     answer.report);
    if (!written) return tl::unexpected(std::move(written.error()));
  }
  return answer;
}

}  // namespace stowage
