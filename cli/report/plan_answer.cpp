#include "cli/report/plan_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/exporting/plan_exports.hpp"
#include "answers/question/shell_word.hpp"
#include "cli/options/setting_names.hpp"
#include "cli/report/check_report.hpp"
#include "cli/report/no_plan.hpp"
#include "cli/report/placement_report.hpp"
#include "cli/report/served_plan_answer.hpp"
#include "cli/report/step_report.hpp"
#include "planner/explain/plan_words.hpp"

namespace stowage {

namespace {

std::string_view to_string(Proof proof) {
  switch (proof) {
    case Proof::not_run:
      return "not_run";
    case Proof::passed:
      return "passed";
    case Proof::failed:
      return "failed";
  }
  return "not_run";
}

Bytes pcie_bytes(const Plan& plan) { return plan.totals.h2d + plan.totals.d2h; }

std::int64_t nodes_on_cpu(const Plan& plan) {
  return std::count_if(plan.nodes.begin(), plan.nodes.end(), [&](const PlannedNode& node) {
    const Processor& processor = plan.machine.processor(node.processor);
    return processor.kind == ProcessorKind::cpu;
  });
}

Cell share_or_none(const std::optional<double>& fraction) {
  return fraction ? Cell(Share{*fraction}) : Cell();
}

Json plan_json(const Plan& plan, const PlanProof& proof) {
  const PlanTotals& totals = plan.totals;
  Json::Array remarks;
  for (const std::string& remark : plan.remarks) remarks.emplace_back(remark);
  return Json::Object{{"name", plan.name},
                      {"gpu_peak_bytes", totals.gpu_peak},
                      {"budget_bytes", plan.inputs.budget.bytes},
                      {"host_peak_bytes", totals.host_peak},
                      {"pageable_peak_bytes", totals.pageable_peak},
                      {"h2d_bytes", totals.h2d},
                      {"d2h_bytes", totals.d2h},
                      {"pcie_bytes", pcie_bytes(plan)},
                      {"pcie_lower_bound_bytes", totals.pcie_lower_bound},
                      {"cost_seconds", totals.cost_seconds},
                      {"cost_lower_bound_seconds", totals.cost_lower_bound_seconds},
                      {"gap", totals.gap()},
                      {"overhead_gap", totals.overhead_gap()},
                      {"proved_optimal", totals.proved_optimal},
                      {"step_seconds", totals.step_seconds},
                      {"all_gpu_step_seconds", totals.all_gpu_step_seconds},
                      {"step_lower_bound_seconds", number_or_null(totals.step_lower_bound_seconds)},
                      {"step_gap", number_or_null(totals.step_gap())},
                      {"arena_bytes", totals.arena},
                      {"arena_lower_bound_bytes", totals.arena_lower_bound},
                      {"micro_batches", plan.step.graph->settings.micro_batches},
                      {"nodes_on_cpu", nodes_on_cpu(plan)},
                      {"in_words", plan_in_words(plan)},
                      {"remarks", std::move(remarks)},
                      {"validation", Json::Object{{"model", to_string(proof.model)},
                                                  {"host", to_string(proof.host)},
                                                  {"cuda", to_string(proof.cuda)}}}};
}

double pcie_gap(const Plan& plan) {
  const double bytes = static_cast<double>(pcie_bytes(plan).count());
  const double least = static_cast<double>(plan.totals.pcie_lower_bound.count());
  return bytes > 0 ? (bytes - least) / bytes : 0;
}

/// What the chosen plan has least of; "all_gpu": everything fits on the GPU, and nothing else was
/// asked for.
std::string_view minimised_word(const PlanAnswer& found, const PlanQuestion& question) {
  if (question.minimised == PlanAim::pcie) return "pcie";
  return found.took_all_gpu ? "all_gpu" : "time";
}

/// Every gap.
Table proposals(const std::vector<Plan>& plans) {
  Table table{.one_size_scale = true,
              .columns = {{"Step", "step_seconds"},
                          {"All on GPU", "all_gpu_step_seconds"},
                          {"PCIe", "pcie_bytes"},
                          {"At least", "pcie_lower_bound_bytes"},
                          {"Arena", "arena_bytes"},
                          {"At least", "arena_lower_bound_bytes"},
                          {"Pinned host", "host_peak_bytes"},
                          {"Pageable", "pageable_peak_bytes"},
                          {"Step gap", "step_gap"},
                          {"PCIe gap", "pcie_gap"},
                          {"Cost gap", "overhead_gap"},
                          {"Plan", "name"}}};
  for (const Plan& plan : plans) {
    const PlanTotals& totals = plan.totals;
    table.rows.push_back(
        {{Duration{totals.step_seconds}, Duration{totals.all_gpu_step_seconds}, pcie_bytes(plan),
          totals.pcie_lower_bound, totals.arena, totals.arena_lower_bound, totals.host_peak,
          totals.pageable_peak, share_or_none(totals.step_gap()), Share{pcie_gap(plan)},
          Share{totals.overhead_gap()}, plan.name}});
  }
  return table;
}

/// The gap of what was minimised alone.
Table with_one_gap(const Table& all, PlanAim minimised) {
  constexpr std::string_view gaps[] = {"step_gap", "pcie_gap", "overhead_gap"};
  const std::string_view kept = minimised == PlanAim::pcie ? "pcie_gap" : "step_gap";
  Table table{.one_size_scale = all.one_size_scale};
  table.rows.resize(all.rows.size());
  for (std::size_t i = 0; i < all.columns.size(); ++i) {
    Column column = all.columns[i];
    if (column.key != kept && std::ranges::find(gaps, column.key) != std::end(gaps)) continue;
    if (column.key == kept) column.title = "Gap";
    table.columns.push_back(std::move(column));
    for (std::size_t row = 0; row < all.rows.size(); ++row) {
      table.rows[row].cells.push_back(all.rows[row].cells[i]);
    }
  }
  return table;
}

std::string_view legend(PlanAim minimised, bool verbose) {
  if (verbose) {
    return "  Step: simulated, copies beside compute. Step gap: of the step, to a bound that none "
           "of "
           "this order\n  and batch is below. PCIe gap: of the bytes, to their bound. Cost gap: of "
           "the "
           "time that all lanes take\n  one after the other beyond that with everything on the "
           "GPU, to "
           "its own bound.";
  }
  if (minimised == PlanAim::pcie) {
    return "  Step: simulated, copies beside compute. Gap: of the bytes over PCIe, to a bound that "
           "no "
           "plan is below.";
  }
  return "  Step: simulated, copies beside compute. Gap: of the step, to a bound that none of this "
         "order\n  and batch is below.";
}

std::string scope(const PlanRequest& request) {
  std::string text = fmt::format("GPU arena of at most {}", format_bytes(request.budget.bytes));
  if (request.available > Bytes()) {
    text += fmt::format(" of the {} that {} leaves", format_bytes(request.available),
                        request.card.name);
  }
  return text +
         fmt::format(
             "; host: {} ({}), link {:.1f} GB/s up, {:.1f} GB/s down", request.host.name,
             request.host.source,
             make_rates(request.card, request.host, request.measured.get()).h2d_bandwidth / 1e9,
             make_rates(request.card, request.host, request.measured.get()).d2h_bandwidth / 1e9);
}

void say_any_order(const PlanAnswer& found, Report& out) {
  if (!found.any_order) return;
  const std::string& plan = found.plans.front().name;
  const AnyOrderPeak& peak = *found.any_order;
  out.json.emplace_back("any_order",
                        Json::Object{{"plan", plan},
                                     {"peak_bytes", peak.in_order},
                                     {"worst_peak_bytes_at_most", peak.at_most_in_any}});
  out.say(
      fmt::format("  With everything on the GPU the kernels of '{}' take {} in their order, and "
                  "at most {} in any that their data allow.",
                  plan, format_bytes(peak.in_order), format_bytes(peak.at_most_in_any)));
}

Json search_json(const PlanAnswer& found, const PlanQuestion& question) {
  const SearchOutcome& search = found.search;
  Json stopped_by;
  if (found.ran_out_of_time) stopped_by = "time_limit";
  if (found.was_interrupted) stopped_by = "interrupt";
  return Json::Object{{"effort", question.effort},
                      {"work", search.spent.units},
                      {"work_limit", search.limit.units},
                      {"stopped_by", std::move(stopped_by)},
                      {"untried", words_json(search.untried)},
                      {"cut_short", words_json(search.cut_short)}};
}

/// What was not searched for, and why.
void note_search(const PlanAnswer& found, const PlanQuestion& question, Report& out) {
  const auto note = [&](Severity severity, std::string message) {
    out.notes.push_back({.severity = severity, .message = in_options(std::move(message))});
  };
  const std::vector<std::string>& untried = found.search.untried;
  const std::string names =
      untried.empty() ? "" : fmt::format("; not tried: {}", fmt::join(untried, ", "));
  const std::string_view results =
      found.plans.empty() ? "no plan was found so far" : "these are the best plans so far";
  if (found.was_interrupted) {
    if (!found.plans.empty())
      note(Severity::warning, fmt::format("interrupted: {}{}", results, names));
  } else if (found.ran_out_of_time) {
    note(Severity::warning,
         fmt::format("stopped by `time_limit` {}: {}, which depend on this machine{}",
                     *question.time_limit_seconds, results, names));
  } else if (!untried.empty()) {
    const int further = 2 * question.effort;
    note(Severity::note,
         fmt::format(
             "the work of the search was spent{}{}", names,
             further <= most_effort ? fmt::format("; `effort` {} searches further", further) : ""));
  }
}

Json::Object json_of(const PlanAnswer& found, const PlanQuestion& question) {
  const PlanRequest& request = found.request;
  Json::Array rows;
  for (std::size_t i = 0; i < found.plans.size(); ++i) {
    rows.push_back(plan_json(found.plans[i], found.proofs[i]));
  }
  const StepSummary step = summarise_step(request.document);
  // A budget alone is the arena's size and says nothing of a card's.
  const bool has_card = request.available > Bytes();
  return {
      {"verdict", found.has_valid_plan() ? "fits" : "does_not_fit"},
      {"plans", std::move(rows)},
      {"chosen", found.chosen ? Json(found.plans[*found.chosen].name) : Json()},
      {"minimized", minimised_word(found, question)},
      {"search", search_json(found, question)},
      {"budget_bytes", request.budget.bytes},
      {"device", Json::Object{{"name", request.card.name},
                              {"total_bytes", has_card ? Json(request.card.cuda_total) : Json()},
                              {"available_bytes", has_card ? Json(request.available) : Json()}}},
      {"host", Json::Object{{"name", request.host.name},
                            {"source", request.host.source},
                            {"memory_bytes", request.host.memory}}},
      {"workspace_source", to_string(workspace_origin(found.plans.front()))},
      {"settings", settings_json(step, request.batch.samples, to_string(step.lowering.kernels))}};
}

void say_plans(const PlanAnswer& found, const PlanQuestion& question, bool verbose, Report& out) {
  out.say(scope(found.request));
  out.say("");
  out.show(verbose ? out.listing : with_one_gap(out.listing, question.minimised));
  out.say(std::string(legend(question.minimised, verbose)));
  for (const Plan& plan : found.plans) {
    out.say(fmt::format("  {}: {}", plan.name, plan_in_words(plan)));
    for (const std::string& remark : plan.remarks) {
      out.say(fmt::format("  {}: {}", plan.name, remark));
    }
  }
}

/// Which plan was chosen, with its proofs; or why none is.
void say_choice(const PlanAnswer& found, Report& out) {
  if (!found.chosen) {
    out.say("");
    for (const Plan& plan : found.plans) {
      out.say(
          in_options(fmt::format("'{}' is not chosen by default: {}; `choose` {} takes it",
                                 plan.name, why_not_taken(plan, found.request.host), plan.name)),
          Tone::bad);
    }
    return;
  }
  const PlanProof& proof = found.proofs[*found.chosen];
  const Plan& chosen = found.plans[*found.chosen];
  // With PyTorch's kernels the step may not fit where this plan, with our own kernels, does.
  const bool is_own = chosen.step.graph->settings.kernels == KernelSet::stowage;
  out.say(
      fmt::format("\n'{}', with {} kernels: model checks {}, host run {}, CUDA run {}", chosen.name,
                  is_own ? "Stowage's own" : "PyTorch's", spaced(to_string(proof.model)),
                  spaced(to_string(proof.host)), spaced(to_string(proof.cuda))),
      proof.host == Proof::failed ? Tone::bad : Tone::good);
}

/// Why the chosen plan was taken where neither it nor what is minimised was asked for; where
/// everything is on the GPU, what is shorter.
void say_why_chosen(const PlanAnswer& found, const PlanQuestion& question, Report& out) {
  const bool is_automatic = question.choice.empty() && question.minimised == PlanAim::automatic;
  if (!is_automatic || !found.chosen) return;
  if (!found.took_all_gpu) {
    return out.say("  not everything fits on the GPU, so the shortest step is taken");
  }
  const double taken = found.plans[*found.chosen].totals.step_seconds;
  const Plan* shortest = nullptr;
  for (const Plan& plan : found.plans) {
    if (plan.totals.step_seconds >= taken || !why_not_taken(plan, found.request.host).empty())
      continue;
    if (shortest != nullptr && plan.totals.step_seconds >= shortest->totals.step_seconds) continue;
    shortest = &plan;
  }
  std::string text = "  everything fits on the GPU, so 'all-gpu' is taken";
  if (shortest != nullptr) {
    text += fmt::format("; `minimize` time takes '{}', whose step is {:.1f} % shorter",
                        shortest->name, 100 * (1 - shortest->totals.step_seconds / taken));
  }
  out.say(in_options(std::move(text)));
}

/// A plan that fails a check outweighs that the search was interrupted.
ExitCode exit_code_of(const PlanAnswer& found) {
  if (found.plans.empty()) {
    return found.was_interrupted ? ExitCode::interrupted : ExitCode::clean_no;
  }
  if (!found.has_valid_plan()) return ExitCode::clean_no;
  return found.was_interrupted ? ExitCode::interrupted : ExitCode::yes;
}

/// Of a search that was interrupted before there was a plan.
Report interrupted_report(const PlanAnswer& found) {
  Report report;
  report.json = {{"verdict", Json()},
                 {"plans", Json::Array{}},
                 {"chosen", Json()},
                 {"budget_bytes", found.request.budget.bytes}};
  report.say("interrupted before there was a plan", Tone::bad);
  return report;
}

Report plans_report(const PlanAnswer& found, const PlanQuestion& question, bool verbose) {
  const PlanRequest& request = found.request;
  const StepSummary step = summarise_step(request.document);
  Report out;
  out.json = json_of(found, question);
  out.listing = proposals(found.plans);
  const std::string described =
      found.serving ? describe_served(found) : describe_step(step, request.batch.samples);
  out.say(fmt::format("{}, {} kernels", described, to_string(step.lowering.kernels)),
          Tone::heading);
  say_plans(found, question, verbose, out);
  if (found.serving) add_served_plan(found, out);
  say_any_order(found, out);
  say_choice(found, out);
  say_why_chosen(found, question, out);
  return out;
}

}  // namespace

Result<RenderedAnswer> rendered(const PlanAnswer& found, const PlanQuestion& question,
                                const TypedWords& typed, const PlanDetail& detail) {
  RenderedAnswer answer{.exit_code = exit_code_of(found)};
  Report& out = answer.report;
  if (!found.plans.empty()) {
    out = plans_report(found, question, detail.verbose);
  } else {
    out = found.was_interrupted ? interrupted_report(found) : no_plan_report(found);
    out.json.emplace_back("search", search_json(found, question));
  }
  out.notes = found.notes;
  note_search(found, question, out);
  if (detail.log_placement && !found.plans.empty()) {
    if (auto told = add_placement_log(found.plans[found.chosen.value_or(0)], out); !told) {
      return tl::unexpected(std::move(told.error()));
    }
  }
  add_what_would_do(found, question, typed, out);
  return answer;
}

void add_frontier(const Frontier& frontier, const std::string& path, bool was_interrupted,
                  RenderedAnswer& answer) {
  Report& report = answer.report;
  const bool is_written = !frontier.points.empty();
  report.json.emplace_back("frontier", is_written ? Json(path) : Json());
  report.json.emplace_back("frontier_budgets_left_out", frontier.left_out);
  if (is_written) {
    report.say(fmt::format("the step's time at {} budget{} is written to {}",
                           frontier.points.size(), frontier.points.size() == 1 ? "" : "s", path),
               Tone::good);
  } else {
    report.say(fmt::format("{} is not written: {}", path,
                           frontier.left_out > 0 ? "the search stopped before it had a step"
                                                 : "there is no step at any budget"),
               Tone::bad);
  }
  if (frontier.left_out > 0) {
    report.notes.push_back(
        {.severity = Severity::warning,
         .message = in_options(fmt::format(
             "{}: {} of the budgets of `frontier` were not searched",
             was_interrupted ? "interrupted" : "stopped by `time_limit`", frontier.left_out))});
  }
  if (was_interrupted && answer.exit_code == ExitCode::yes)
    answer.exit_code = ExitCode::interrupted;
}

void add_written_plan(const Plan& plan, const std::string& path, Report& report) {
  report.json.emplace_back("written", path);
  report.say(fmt::format("'{}' is written to {}", plan.name, path), Tone::good);
  const std::string file = shell_word(path);
  const bool runs = plan.step.graph->kernel_set().executable;
  std::string exported;
  Json::Array forms;
  for (const ExportForm form : exports_of(plan)) {
    const std::string_view name = row_of(form).name;
    forms.emplace_back(name);
    exported += exported.empty()
                    ? fmt::format("stowage export {} {} {}", file, in_options("`to`"), name)
                : forms.size() == 2 ? fmt::format("; also {}", name)
                                    : fmt::format(", {}", name);
  }
  const std::string recounted =
      fmt::format("stowage validate {}{}", file, runs ? "" : " " + in_options("`model_only`"));
  report.json.emplace_back("next",
                           Json::Object{{"validate", recounted}, {"exports", std::move(forms)}});
  report.say("  " + recounted);
  report.say("  " + exported);
}

}  // namespace stowage
