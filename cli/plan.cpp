#include "planner/plan/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "cli/plan_report.hpp"
#include "cli/read_source.hpp"
#include "cli/settings.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/step/lower.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"
#include "gpu_probe/device/this_host.hpp"
#include "planner/assemble/proposals.hpp"
#include "planner/plan/plan_file.hpp"

namespace stowage {

namespace {

struct Cargo {
  PlanRequest request;
  Diagnostics notes;
};

// The arena's share of the card, and of that the budget.
Result<void> set_budget(const Arguments& arguments, bool has_card, PlanRequest& request) {
  const auto budget = arguments.size("budget");
  if (has_card) {
    const auto settings = requested_check(arguments, Runtime::stowage, request.card);
    if (!settings) return tl::unexpected(settings.error());
    CheckSettings arena = *settings;
    arena.runtime = Runtime::stowage;
    const auto graph = lower(request.model, request.lowering);
    if (!graph) return tl::unexpected(graph.error());
    request.available = allocator_limit(*graph, request.card, arena);
    if (request.available <= Bytes()) {
      return failure(
          fmt::format("{} has nothing left for an arena: {} of CUDA total, less the "
                      "context, what is in use and what is to stay free",
                      request.card.name, format_bytes(request.card.cuda_total)));
    }
  }
  if (has_card && budget && *budget > request.available) {
    return failure(command_line_error(
        fmt::format("--budget {} is more than the {} that {} leaves for an arena",
                    format_bytes(*budget), format_bytes(request.available), request.card.name)));
  }
  request.budget = budget.value_or(request.available);
  return {};
}

Result<KernelSet> requested_kernels(const Arguments& arguments) {
  const std::string runtime = arguments.text("runtime").value_or("stowage");
  if (runtime == "pytorch") return KernelSet::pytorch;
  if (runtime == "stowage") return KernelSet::stowage;
  return failure(command_line_error(
      fmt::format("--runtime {}: a plan is made for stowage or pytorch", runtime)));
}

// What PyTorch's runtime alone has, so that a plan that we run ourselves would ignore it.
Result<void> check_pytorch_options(const Arguments& arguments, KernelSet kernels) {
  if (kernels == KernelSet::pytorch) return {};
  for (const std::string_view name : {"tf32", "deterministic", "cudnn-benchmark"}) {
    if (!arguments.given(name)) continue;
    return failure(command_line_error(
        fmt::format("--{} is a setting of PyTorch's, and this plan is for our own executor", name),
        "add --runtime pytorch"));
  }
  return {};
}

Result<Host> requested_host(const Arguments& arguments) {
  if (const auto file = arguments.text("host")) {
    auto source = read_source(*file);
    if (!source) return tl::unexpected(std::move(source.error()));
    return load_host(std::move(*source));
  }
  return this_host();
}

Result<Cargo> requested_cargo(const Arguments& arguments, const ConfigDirectory& configs) {
  auto model = requested_model(arguments, configs);
  if (!model) return tl::unexpected(std::move(model.error()));
  const bool has_card = arguments.given("gpu") || arguments.given("gpu-memory");
  if (!has_card && !arguments.given("budget")) {
    return failure(command_line_error("a plan needs --gpu NAME, --gpu-memory SIZE or --budget SIZE",
                                      "stowage gpus lists the names"));
  }
  Cargo cargo;
  PlanRequest& request = cargo.request;
  cargo.notes = model->graph.warnings;
  if (has_card) {
    auto card = requested_card(arguments, configs);
    if (!card) return tl::unexpected(std::move(card.error()));
    request.card = std::move(card->card);
    cargo.notes.insert(cargo.notes.end(), card->notes.begin(), card->notes.end());
  } else {
    request.card = generic_card(*arguments.size("budget"));
    cargo.notes.push_back(
        {.severity = Severity::note,
         .message =
             "no card was named: times are those of a generic card with an RTX 3090's rates"});
  }
  const auto kernels = requested_kernels(arguments);
  if (!kernels) return tl::unexpected(kernels.error());
  if (auto checked = check_pytorch_options(arguments, *kernels); !checked) {
    return tl::unexpected(std::move(checked.error()));
  }
  auto chosen = requested_choice(arguments, model->graph, *kernels, request.card);
  if (!chosen) return tl::unexpected(std::move(chosen.error()));
  cargo.notes.insert(cargo.notes.end(), chosen->warnings.begin(), chosen->warnings.end());
  if (chosen->accumulation > 1) {
    cargo.notes.push_back(
        {.severity = Severity::note,
         .message = fmt::format("the description accumulates {} micro-batches; the plan is of a "
                                "step of one",
                                grouped_digits(chosen->accumulation))});
    chosen->lowering.micro_batches = 1;
  }
  auto host = requested_host(arguments);
  if (!host) return tl::unexpected(std::move(host.error()));

  request.lowering = std::move(chosen->lowering);
  request.host = std::move(*host);
  request.batch = arguments.integer("batch").value_or(1);
  request.model = std::move(model->graph);
  request.description = std::move(model->source);
  request.model_options = std::move(model->options);
  request.stowage_version = STOWAGE_VERSION;
  if (auto budget = set_budget(arguments, has_card, request); !budget) {
    return tl::unexpected(std::move(budget.error()));
  }
  return cargo;
}

// What is wrong with the model or the batch is the user's mistake; what is left after this and
// still finds no plan is a budget that is too small, which is an answer.
Result<void> check_step(const PlanRequest& request) {
  auto graph = lower(request.model, request.lowering);
  if (!graph) return tl::unexpected(std::move(graph.error()));
  const auto sized =
      size_storages(std::make_shared<const StepGraph>(*std::move(graph)), request.batch);
  if (!sized) return tl::unexpected(sized.error());
  return {};
}

Answer no_plan(const Cargo& cargo, const Diagnostics& why) {
  Answer answer;
  answer.exit_code = ExitCode::clean_no;
  answer.report.notes = cargo.notes;
  answer.report.json = {{"plans", Json::Array{}},
                        {"budget_bytes", cargo.request.budget},
                        {"culprit", why.front().message}};
  answer.report.say(fmt::format("no plan keeps within {}", format_bytes(cargo.request.budget)),
                    Tone::bad);
  answer.report.say("  " + why.front().message);
  if (!why.front().hint.empty()) answer.report.say("  " + why.front().hint);
  return answer;
}

// The one that is asked for, else the fastest step of those that leave the training as it is and
// that the host can hold; none of these: null.
Result<std::optional<std::size_t>> chosen_plan(const Arguments& arguments, const Host& host,
                                               const std::vector<Plan>& plans) {
  const auto name = arguments.text("choose");
  if (!name) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (!why_not_taken(plans[i], host).empty()) continue;
      if (!best || plans[i].totals.step_seconds < plans[*best].totals.step_seconds) best = i;
    }
    return best;
  }
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].name == *name) return std::optional(i);
    names.push_back(plans[i].name);
  }
  std::string hint = did_you_mean(*name, names);
  if (hint.empty()) hint = fmt::format("there are {}", fmt::join(names, ", "));
  return failure(command_line_error(fmt::format("--choose: no proposal is called '{}'", *name),
                                    std::move(hint)));
}

void require_valid(const Plan& plan, const PlanValidation& validation) {
  if (validation.passed()) return;
  std::string why = fmt::format("the planner's own plan '{}' is not valid", plan.name);
  for (const Check& check : validation.checks) {
    if (!check.passed) why += fmt::format("\n  {}: {}", check.name, check.detail);
  }
  throw std::logic_error(why);
}

}  // namespace

Result<Answer> run_plan_command(const Arguments& arguments) {
  const auto configs = find_configs(arguments);
  if (!configs) return tl::unexpected(configs.error());
  const auto cargo = requested_cargo(arguments, *configs);
  if (!cargo) return tl::unexpected(cargo.error());
  if (auto step = check_step(cargo->request); !step) return tl::unexpected(step.error());

  const auto path = arguments.text("output");
  const bool to_stdout = path == "-";
  std::optional<OutputFile> file;
  if (path && !to_stdout) {
    auto opened = OutputFile::open(*path);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    file.emplace(std::move(*opened));
  }

  CudnnWorkspaceSource workspaces(cargo->request.card, answer_folder(arguments));
  poll_interrupts(true);
  const auto plans =
      make_plans(cargo->request, workspaces,
                 {.time_limit_seconds = *arguments.number("time-limit"), .cancelled = interrupted});
  poll_interrupts(false);
  if (!plans) return no_plan(*cargo, plans.error());
  const auto chosen = chosen_plan(arguments, cargo->request.host, *plans);
  if (!chosen) return tl::unexpected(chosen.error());

  std::vector<PlanProof> proofs;
  for (const Plan& candidate : *plans) {
    require_valid(candidate, validate_plan(candidate, workspaces));
    proofs.push_back({.model = Proof::passed});
  }
  ExitCode exit_code = interrupted() ? ExitCode::interrupted : ExitCode::yes;
  if (!*chosen) exit_code = ExitCode::clean_no;
  if (*chosen && arguments.flag("validate")) {
    const auto run = run_on_host((*plans)[**chosen]);
    if (!run) return tl::unexpected(run.error());
    proofs[**chosen].host = run->passed() ? Proof::passed : Proof::failed;
    if (!run->passed()) exit_code = ExitCode::clean_no;
  }

  Answer answer = plan_answer(cargo->request, *plans, proofs, *chosen);
  answer.exit_code = exit_code;
  answer.report.notes = cargo->notes;
  if (interrupted()) {
    answer.report.notes.push_back(
        {.severity = Severity::warning, .message = "interrupted: these are the best plans so far"});
  }
  if (exit_code == ExitCode::clean_no) return answer;
  const std::string text = write_plan((*plans)[**chosen]);
  if (to_stdout) answer.report.raw = text;
  if (file) {
    if (auto written = file->commit(text); !written) {
      return tl::unexpected(std::move(written.error()));
    }
    answer.report.json.emplace_back("written", *path);
    answer.report.say(fmt::format("'{}' is written to {}", (*plans)[**chosen].name, *path),
                      Tone::good);
  }
  return answer;
}

}  // namespace stowage
