#include "cli/report/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cli/report/step_report.hpp"
#include "estimator/order/any_order.hpp"
#include "gpu_probe/host/host_backend.hpp"
#include "planner/explain/plan_words.hpp"

namespace stowage {

namespace {

Bytes pcie_bytes(const Plan& plan) { return plan.totals.h2d + plan.totals.d2h; }

std::int64_t nodes_on_cpu(const Plan& plan) {
  return std::count_if(plan.nodes.begin(), plan.nodes.end(), [&](const PlannedNode& node) {
    const Processor& processor = plan.machine.processor(node.processor);
    return processor.kind == ProcessorKind::cpu;
  });
}

Json number_or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

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
                          {"Gap", "overhead_gap"},
                          {"Plan", "name"}}};
  for (const Plan& plan : plans) {
    const PlanTotals& totals = plan.totals;
    table.rows.push_back(
        {{Duration{totals.step_seconds}, Duration{totals.all_gpu_step_seconds}, pcie_bytes(plan),
          totals.pcie_lower_bound, totals.arena, totals.arena_lower_bound, totals.host_peak,
          totals.pageable_peak, share_or_none(totals.step_gap()), Share{totals.overhead_gap()},
          plan.name}});
  }
  return table;
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

/// For runtimes that run branches in any order: what the first plan's step takes at most.
void say_any_order(const Plan& plan, Report& out) {
  const OrderProblem problem = order_problem(plan.step);
  const auto worst = any_order_peak(problem);
  if (!worst) return;
  std::vector<std::int32_t> given(plan.nodes.size());
  std::iota(given.begin(), given.end(), 0);
  const Bytes here = peak_of_order(problem, given);
  out.json.emplace_back("any_order", Json::Object{{"plan", plan.name},
                                                  {"peak_bytes", here},
                                                  {"worst_peak_bytes_at_most", *worst}});
  out.say(
      fmt::format("  With everything on the GPU the kernels of '{}' take {} in their order, and "
                  "at most {} in any that their data allow.",
                  plan.name, format_bytes(here), format_bytes(*worst)));
}

}  // namespace

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

bool changes_training(const Plan& plan) {
  return std::ranges::any_of(plan.remarks, [](const std::string& remark) {
    return remark.starts_with("changes the training");
  });
}

std::string why_not_taken(const Plan& plan, const Host& host) {
  if (changes_training(plan)) return "it changes the training";
  if (host.pinned_limit > Bytes() && plan.totals.host_peak > host.pinned_limit) {
    return "it needs more pinned memory than the host allows";
  }
  if (host.memory > Bytes() && plan.totals.host_peak + plan.totals.pageable_peak > host.memory) {
    return "it needs more memory than the host has";
  }
  return {};
}

Answer plan_answer(const PlanRequest& request, const std::vector<Plan>& plans,
                   const std::vector<PlanProof>& proofs, std::optional<std::size_t> chosen) {
  Answer answer;
  Report& out = answer.report;
  Json::Array rows;
  for (std::size_t i = 0; i < plans.size(); ++i) rows.push_back(plan_json(plans[i], proofs[i]));
  const ToldStep step = told_step(request.document);
  const std::string_view runtime = to_string(step.lowering.kernels);
  // A budget alone is the arena's size and says nothing of a card's.
  const bool has_card = request.available > Bytes();
  out.json = {
      {"plans", std::move(rows)},
      {"chosen", chosen ? Json(plans[*chosen].name) : Json()},
      {"device", Json::Object{{"name", request.card.name},
                              {"total_bytes", has_card ? Json(request.card.cuda_total) : Json()},
                              {"available_bytes", has_card ? Json(request.available) : Json()}}},
      {"host", Json::Object{{"name", request.host.name},
                            {"source", request.host.source},
                            {"memory_bytes", request.host.memory}}},
      {"workspace_source", to_string(workspace_origin(plans.front()))},
      {"settings", settings_json(step, request.batch.samples, runtime)}};
  out.listing = proposals(plans);
  out.say(fmt::format("{}, {} kernels", describe_step(step, request.batch.samples), runtime),
          Tone::heading);
  out.say(scope(request));
  out.say("");
  out.show(out.listing);
  out.say(
      "  Step: simulated, copies beside compute. Step gap: of the step, to a bound that none of "
      "this "
      "order and batch is below.\n  Gap: of the overhead without overlap, to its own bound.");
  for (const Plan& plan : plans) {
    out.say(fmt::format("  {}: {}", plan.name, plan_in_words(plan)));
    for (const std::string& remark : plan.remarks) {
      out.say(fmt::format("  {}: {}", plan.name, remark));
    }
  }
  say_any_order(plans.front(), out);
  if (!chosen) {
    out.say("");
    for (const Plan& plan : plans) {
      out.say(fmt::format("'{}' is not chosen by default: {}; --choose {} takes it", plan.name,
                          why_not_taken(plan, request.host), plan.name),
              Tone::bad);
    }
    return answer;
  }
  const PlanProof& proof = proofs[*chosen];
  out.say(fmt::format("\n'{}': model checks {}, host run {}, CUDA run {}", plans[*chosen].name,
                      spaced(to_string(proof.model)), spaced(to_string(proof.host)),
                      spaced(to_string(proof.cuda))),
          proof.host == Proof::failed ? Tone::bad : Tone::good);
  return answer;
}

Result<RunReport> run_on_host(const Plan& plan) {
  auto backend = open_host_backend();
  if (!backend) return tl::unexpected(std::move(backend.error()));
  return run_plan(plan, **backend);
}

}  // namespace stowage
