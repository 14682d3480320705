#include "cli/report/pytorch_plan_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "answers/question/shell_word.hpp"
#include "cli/options/setting_names.hpp"
#include "cli/report/step_report.hpp"

namespace stowage {

namespace {

std::string seconds_text(double seconds) { return fmt::format("{:.3g} s", seconds); }

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// "PYTORCH_ALLOC_CONF=expandable_segments:True"
std::string environment_text(const PytorchPlan& plan) {
  return fmt::format("{}={}", allocator_variable(plan), expandable_conf);
}

Bytes streamed_bytes(const PytorchPlan& plan) {
  Bytes bytes;
  for (const StreamedModule& module : plan.stream) {
    bytes +=
        module.bytes * module.uploads * plan.micro_batches * (plan.chunks ? plan.chunks->parts : 1);
  }
  return bytes;
}

/// "keeps 12 storages on the host between forward and backward, 3.1 GiB each way; runs layer1.0 and
/// 3 more modules again in backward"
std::string in_words(const PytorchPlan& plan) {
  std::vector<std::string> parts;
  if (!plan.offload.empty()) {
    parts.push_back(fmt::format(
        "keeps {} of saved tensors on the host between forward and backward, {} each way",
        counted(plan.offload.size(), "storage"), format_bytes(plan.offloaded_bytes())));
  }
  if (!plan.checkpoint.empty()) {
    const std::size_t more = plan.checkpoint.size() - 1;
    parts.push_back(fmt::format("runs {}{} again in backward", plan.checkpoint.front(),
                                more > 0 ? " and " + counted(more, "more module") : ""));
  }
  if (!plan.stream.empty()) {
    const std::size_t more = plan.stream.size() - 1;
    parts.push_back(fmt::format(
        "copies the parameters of {}{} from the host as they run, {} up{}",
        plan.stream.front().module, more > 0 ? " and " + counted(more, "more block") : "",
        format_bytes(streamed_bytes(plan)), plan.trains ? " in forward and backward" : ""));
  }
  if (plan.optimizer_on_cpu) {
    parts.push_back(plan.cpu_parameters.empty()
                        ? "updates on the CPU, with the optimizer's state there"
                        : fmt::format("updates {} on the CPU, with their optimizer state there",
                                      counted(plan.cpu_parameters.size(), "parameter")));
  }
  if (plan.early_updates) {
    parts.emplace_back("updates each parameter as soon as its gradient is whole");
  }
  if (plan.chunks) {
    parts.push_back(fmt::format("runs the batch in {} parts of {}, and puts the outputs together",
                                plan.chunks->parts, plan.batch / plan.chunks->parts));
  }
  if (plan.micro_batches > 1) {
    parts.push_back(fmt::format("takes the batch in {} parts of {}, whose gradients add up",
                                plan.micro_batches, plan.batch));
  }
  if (plan.expandable_segments) {
    parts.push_back(fmt::format("wants {} in the environment", environment_text(plan)));
  }
  return parts.empty() ? "everything fits: nothing is to be done"
                       : fmt::format("{}", fmt::join(parts, "; "));
}

std::optional<double> step_gap(const PytorchTotals& totals) {
  if (!totals.step_lower_bound_seconds || totals.step_seconds <= 0) return std::nullopt;
  return std::max(0.0, 1 - *totals.step_lower_bound_seconds / totals.step_seconds);
}

std::vector<std::string> modules_of(const std::vector<StreamedModule>& stream) {
  std::vector<std::string> modules;
  modules.reserve(stream.size());
  for (const StreamedModule& module : stream) modules.push_back(module.module);
  return modules;
}

Json environment_json(const PytorchPlan& plan) {
  Json::Object variables;
  if (plan.expandable_segments) {
    variables.emplace_back(allocator_variable(plan), expandable_conf);
  }
  return variables;
}

Json json_of(const PytorchProposal& proposal) {
  const PytorchPlan& plan = proposal.plan;
  const PytorchTotals& totals = plan.totals;
  return Json::Object{{"name", proposal.name},
                      {"peak_allocated_bytes", totals.peak_allocated},
                      {"peak_reserved_bytes", totals.peak_reserved},
                      {"device_bytes", totals.device_bytes},
                      {"d2h_bytes", totals.to_host},
                      {"h2d_bytes", totals.from_host},
                      {"pcie_bytes", totals.to_host + totals.from_host},
                      {"pcie_lower_bound_bytes", totals.pcie_lower_bound},
                      {"pinned_bytes", totals.pinned},
                      {"step_seconds", totals.step_seconds},
                      {"all_gpu_step_seconds", totals.all_gpu_step_seconds},
                      {"recomputed_seconds", totals.recomputed_seconds},
                      {"step_lower_bound_seconds", number_or_null(totals.step_lower_bound_seconds)},
                      {"step_gap", number_or_null(step_gap(totals))},
                      {"batch", plan.batch},
                      {"micro_batches", plan.micro_batches},
                      {"chunks", plan.chunks ? plan.chunks->parts : 1},
                      {"changes_training", proposal.changes_training},
                      {"offloaded_storages", static_cast<std::int64_t>(plan.offload.size())},
                      {"checkpoint", words_json(plan.checkpoint)},
                      {"streamed", words_json(modules_of(plan.stream))},
                      {"streamed_bytes", streamed_bytes(plan)},
                      {"optimizer_on_cpu", plan.optimizer_on_cpu},
                      {"cpu_parameters", words_json(plan.cpu_parameters)},
                      {"early_updates", plan.early_updates},
                      {"environment", environment_json(plan)},
                      {"in_words", in_words(plan)},
                      {"remarks", words_json(proposal.remarks)}};
}

Table table_of(const std::vector<PytorchProposal>& proposals) {
  Table table{.one_size_scale = true,
              .columns = {{"Step", "step_seconds"},
                          {"All on GPU", "all_gpu_step_seconds"},
                          {"Reserved", "peak_reserved_bytes"},
                          {"Allocated", "peak_allocated_bytes"},
                          {"PCIe", "pcie_bytes"},
                          {"At least", "pcie_lower_bound_bytes"},
                          {"Pinned host", "pinned_bytes"},
                          {"Gap", "step_gap"},
                          {"Plan", "name"}}};
  for (const PytorchProposal& proposal : proposals) {
    const PytorchTotals& totals = proposal.plan.totals;
    const std::optional<double> gap = step_gap(totals);
    table.rows.push_back({{Duration{totals.step_seconds}, Duration{totals.all_gpu_step_seconds},
                           totals.peak_reserved, totals.peak_allocated,
                           totals.to_host + totals.from_host, totals.pcie_lower_bound,
                           totals.pinned, gap ? Cell(Share{*gap}) : Cell(), proposal.name}});
  }
  return table;
}

/// What the table's columns mean, of those that say something.
void say_columns(const std::vector<PytorchProposal>& proposals, Report& out) {
  const auto any = [&](auto holds) { return std::ranges::any_of(proposals, holds); };
  if (!any([](const PytorchProposal& proposal) { return !proposal.plan.changes_nothing(); }))
    return;
  const bool is_bounded = any(
      [](const PytorchProposal& proposal) { return step_gap(proposal.plan.totals).has_value(); });
  if (!is_bounded) return out.say("  Step: simulated, copies beside compute.");
  out.say(
      proposals.front().plan.trains
          ? "  Step: simulated, copies beside compute. Gap: to a bound for every choice of "
            "saved tensors\n  on the host and of streamed parameters, with the same modules run "
            "again and\n  the update in the same place."
          : "  Step: simulated, copies beside compute. Gap: to a bound for every choice of "
            "streamed\n  parameters, with the batch in as many parts.");
}

void say_choice(const PytorchAnswer& found, Report& out) {
  if (!found.chosen) {
    out.say("");
    for (const PytorchProposal& proposal : found.proposals) {
      const std::string why =
          proposal.changes_training
              ? "it changes the training"
              : fmt::format("the host may pin {}", format_bytes(found.request.host.pinned_limit));
      out.say(in_options(fmt::format("'{}' is not chosen by default: {}; `choose` {} takes it",
                                     proposal.name, why, proposal.name)),
              Tone::bad);
    }
    return;
  }
  const PytorchProposal& chosen = found.proposals[*found.chosen];
  if (chosen.plan.changes_nothing()) return;
  out.say(fmt::format("\n'{}' is taken: PyTorch's allocator, simulated on the step as the plan has "
                      "it run, fits the card",
                      chosen.name),
          Tone::good);
  if (!found.every_means) return;
  out.say(fmt::format(
      "  what PyTorch cannot be made to do: with kernels on the CPU and one arena the "
      "same kernels take {} in {}; with this plan {} in {}",
      seconds_text(found.every_means->step_seconds), format_bytes(found.every_means->arena),
      seconds_text(chosen.plan.totals.step_seconds),
      format_bytes(chosen.plan.totals.peak_reserved)));
}

/// A card that would do, and the command that asks for it.
void add_enough(const EnoughMemory& enough, const TypedWords& typed, Report& out) {
  const std::string total = fmt::format("{}MiB", enough.card_total.count() / (1_MiB).count());
  const bool can_be_typed = typed.positionals.front() != "-";
  const std::string command =
      advice(typed, "plan",
             {.set = {{"gpu_memory", total}}, .repeat = {"for", "host", "host_memory", "effort"}});
  out.json.emplace_back("enough", Json::Object{{"gpu_memory_bytes", enough.card_total},
                                               {"plan", enough.plan},
                                               {"command", can_be_typed ? Json(command) : Json()}});
  out.say(in_options(fmt::format("  a card with `gpu_memory` {} would do, by '{}'{}", total,
                                 enough.plan, can_be_typed ? ":" : "")));
  if (can_be_typed) out.say("  " + command);
}

Report none_report(const PytorchAnswer& found, const TypedWords& typed) {
  Report out;
  out.json = {{"verdict", "does_not_fit"}, {"plans", Json::Array{}}, {"chosen", Json()}};
  for (const Diagnostic& why : found.why_none) {
    out.say(why.message, Tone::bad);
    if (!why.hint.empty()) out.say(fmt::format("  {}", in_options(why.hint)));
  }
  if (found.enough) add_enough(*found.enough, typed, out);
  return out;
}

}  // namespace

RenderedAnswer rendered(const PytorchAnswer& found, const TypedWords& typed) {
  RenderedAnswer answer;
  Report& out = answer.report;
  if (found.proposals.empty()) {
    out = none_report(found, typed);
    out.notes = found.notes;
    answer.exit_code = ExitCode::clean_no;
    return answer;
  }
  const PlanRequest& request = found.request;
  const StepSummary step = summarise_step(request.document);
  Json::Array rows;
  for (const PytorchProposal& proposal : found.proposals) rows.push_back(json_of(proposal));
  out.json = {
      {"verdict", found.chosen ? "fits" : "does_not_fit"},
      {"plans", std::move(rows)},
      {"chosen", found.chosen ? Json(found.proposals[*found.chosen].name) : Json()},
      {"stopped_by", found.was_interrupted ? Json("interrupt") : Json()},
      {"device", Json::Object{{"name", request.card.name},
                              {"total_bytes", request.card.cuda_total},
                              {"allocator_bytes", request.available}}},
      {"host", Json::Object{{"name", request.host.name},
                            {"source", request.host.source},
                            {"pinned_limit_bytes", request.host.pinned_limit}}},
      {"settings", settings_json(step, request.batch.samples, to_string(step.lowering.kernels))}};
  out.listing = table_of(found.proposals);
  out.say(fmt::format("{}, {} kernels, for PyTorch", describe_step(step, request.batch.samples),
                      to_string(step.lowering.kernels)),
          Tone::heading);
  out.say(fmt::format("{} leaves PyTorch's allocator {}; host: {} ({})", request.card.name,
                      format_bytes(request.available), request.host.name, request.host.source));
  out.say("");
  out.show(out.listing);
  say_columns(found.proposals, out);
  for (const PytorchProposal& proposal : found.proposals) {
    out.say(fmt::format("  {}: {}", proposal.name, in_words(proposal.plan)));
    for (const std::string& remark : proposal.remarks) {
      out.say(fmt::format("  {}: {}", proposal.name, remark));
    }
  }
  say_choice(found, out);
  out.notes = found.notes;
  if (!found.chosen) answer.exit_code = ExitCode::clean_no;
  if (found.was_interrupted) {
    out.notes.push_back(
        {.severity = Severity::warning, .message = "interrupted: these are the best plans so far"});
    if (found.chosen) answer.exit_code = ExitCode::interrupted;
  }
  return answer;
}

void add_ways_out(const PytorchPlan& plan, const std::string& path, Report& report) {
  if (plan.question) {
    report.say(fmt::format("  stowage validate {} counts it again", shell_word(path)));
  }
  if (plan.changes_nothing()) return;
  if (plan.micro_batches > 1) {
    report.say(fmt::format("  the training loop takes {} batches of {} for each update",
                           plan.micro_batches, plan.batch));
  }
  if (plan.expandable_segments) {
    report.say(fmt::format("  the environment of the training script has to say {}",
                           environment_text(plan)));
  }
  const bool is_applied = !plan.offload.empty() || !plan.checkpoint.empty() ||
                          !plan.stream.empty() || plan.chunks || plan.optimizer_on_cpu ||
                          plan.early_updates;
  if (!is_applied) return;
  if (!plan.names_are_recorded) {
    report.say(
        "  its names are the description's: stowage.apply needs a plan of a recorded step "
        "(python -m stowage record)");
    return;
  }
  report.say(fmt::format(
      "  to carry it out, in the {}:\n"
      "    import stowage\n"
      "    stowage.apply(model, {}, \"{}\"{})",
      plan.trains ? "training script" : "script", plan.trains ? "optimizer" : "None", path,
      plan.stream.empty() ? "" : ", device=\"cuda\")  # instead of model.to(\"cuda\""));
}

}  // namespace stowage
