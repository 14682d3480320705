#include "planner/pytorch/described_proposal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "estimator/document/step_hash.hpp"
#include "estimator/optimizer/optimizer_word.hpp"
#include "estimator/rewrite/checkpoints.hpp"
#include "estimator/step/offloaded_bytes.hpp"
#include "planner/propose/rewritten_steps.hpp"
#include "planner/pytorch/hooked_step.hpp"
#include "planner/pytorch/host_parameters.hpp"
#include "planner/pytorch/plan_facts.hpp"

namespace stowage {

namespace {

std::vector<std::string> names_of(const StepDocument& document,
                                  const std::vector<ParameterId>& ids) {
  std::vector<std::string> names;
  names.reserve(ids.size());
  for (const ParameterId id : ids) names.push_back(document.parameters[id.index()].name);
  return names;
}

PytorchPlan plan_of(const PytorchRequest& request, const WholeStep& whole, const HookedCase& of,
                    const CheckReport& report) {
  const StepDocument& document = request.plan.document;
  PytorchPlan plan{.stowage_version = request.plan.stowage_version,
                   .model = document.graph->model,
                   .trains = document.graph->settings.mode == Mode::train,
                   .names_are_recorded = names_are_recorded(document),
                   .batch = of.step.batch * of.parts,
                   .micro_batches = of.micro_batches,
                   .precision = std::string(to_string(document.precision)),
                   .optimizer = optimizer_word(document.graph->settings.optimizer),
                   .step_hash = step_hash(whole.step),
                   .card = request.plan.card.name,
                   .available = whole.available,
                   .pytorch = to_string(request.process.stack.pytorch),
                   .saved = std::ssize(document.graph->saved),
                   .checkpoint = of.modules,
                   .stream = of.stream,
                   .optimizer_on_cpu = of.updates.on_host != UpdateChoice::OnHost::none,
                   .cpu_parameters = names_of(document, of.updates.parameters),
                   .early_updates = of.updates.early,
                   .expandable_segments = request.process.allocator.expandable_segments};
  if (of.parts > 1) plan.chunks = chunks_of(*document.graph, of.parts);
  plan.totals.peak_allocated = report.run.process().steady.allocated;
  plan.totals.peak_reserved = report.reserved_bytes();
  plan.totals.device_bytes = report.device_bytes;
  return plan;
}

/// The copies of streamed parameters and of an update on the host.
struct InsertedCopies {
  Bytes to_host, from_host;
};

InsertedCopies inserted_copies(const SizedStep& step) {
  InsertedCopies copies;
  for (const KernelNode& node : step.graph->nodes) {
    if (node.kernel != Kernel::foreign) continue;
    if (kernel_name(node) == offload_kernel) {
      copies.to_host += step.bytes(node.reads.front().storage);
    } else if (kernel_name(node) == fetch_kernel) {
      copies.from_host += step.bytes(node.writes.front().storage);
    }
  }
  return copies;
}

double update_seconds(const SizedStep& step, const Rates& rates) {
  double seconds = 0;
  for (std::size_t n = 0; n < step.graph->nodes.size(); ++n) {
    if (step.graph->nodes[n].phase != Phase::update) continue;
    seconds += gpu_seconds(rates, step, NodeId::of(n));
  }
  return seconds;
}

HookedStep set_seconds(const WholeStep& whole, const Rates& rates, const FittingCase& fitting,
                       PytorchTotals& totals) {
  const HookedCase& of = fitting.of;
  const auto calls = fitting.decisions.empty() ? 0 : of.step.graph->saved.size();
  const UpdateTimes times =
      whole.updates ? update_times(whole.step, *whole.updates, rates, of.updates) : UpdateTimes{};
  HookedStep hooked = hooked_step(of.step, rates, fitting.decisions, calls, times);
  const double update = update_seconds(of.step, rates);
  const auto parts = static_cast<double>(of.micro_batches);
  totals.pinned = hooked.pinned;
  totals.step_seconds = parts * (hooked.seconds - update) + update;
  totals.all_gpu_step_seconds = hooked_step(whole.step, rates, {}, 0).seconds;
  for (std::size_t n = 0; n < of.step.graph->nodes.size(); ++n) {
    if (!is_second_run(of.step.graph->nodes[n])) continue;
    totals.recomputed_seconds += parts * gpu_seconds(rates, of.step, NodeId::of(n));
  }
  return hooked;
}

void set_bounds(const Rates& rates, const FittingCase& fitting, const HookedStep& hooked,
                const InsertedCopies& copies, PytorchTotals& totals) {
  const HookedCase& of = fitting.of;
  if (!of.stream.empty()) {
    totals.pcie_lower_bound = fitting.excess;
    totals.step_lower_bound_seconds =
        std::max(hooked.busy_seconds, h2d_seconds(rates, fitting.excess));
    return;
  }
  if (of.updates.on_host == UpdateChoice::OnHost::some) {
    totals.pcie_lower_bound = fitting.excess;
    return;
  }
  totals.pcie_lower_bound = copies.to_host + copies.from_host;
  if (!fitting.bounds) return;
  totals.pcie_lower_bound += fitting.bounds->pcie_lower_bound;
  totals.step_lower_bound_seconds = fitting.bounds->step_lower_bound_seconds;
}

std::vector<std::string> remarks_on(const HookedCase& of, std::int64_t asked_samples) {
  std::vector<std::string> remarks;
  if (changes_training(of)) {
    remarks.push_back(fmt::format(
        "changes the training, so it is not recommended: batch_norm takes its statistics from "
        "micro-batches of {} instead of {}",
        of.step.batch, asked_samples));
  }
  if (of.updates.early) {
    remarks.emplace_back(
        "updates begin before optimizer.step(): the script may not read or add up gradients, nor "
        "leave a step out");
  }
  if (of.parts > 1) {
    remarks.push_back(fmt::format(
        "each part is computed as a batch of {}, whose last bits may differ from the whole's",
        of.step.batch));
  }
  return remarks;
}

}  // namespace

PytorchProposal described_proposal(const PytorchRequest& request, const Rates& rates,
                                   const WholeStep& whole, const FittingCase& fitting,
                                   std::string name, CheckReport report) {
  const HookedCase& of = fitting.of;
  PytorchPlan plan = plan_of(request, whole, of, report);
  PytorchTotals& totals = plan.totals;
  for (const OffloadDecision& decision : fitting.decisions) {
    plan.offload.push_back(decision.storage);
    totals.to_host += of.step.bytes(decision.stay.storage) * of.micro_batches;
  }
  totals.from_host = totals.to_host;
  const InsertedCopies copies = inserted_copies(of.step);
  totals.to_host += copies.to_host;
  totals.from_host += copies.from_host;
  HookedStep hooked = set_seconds(whole, rates, fitting, totals);
  set_bounds(rates, fitting, hooked, copies, totals);
  PytorchProposal proposal{std::move(name), std::move(plan), std::move(report)};
  proposal.lanes = {.graph = of.step.graph,
                    .storage_bytes = of.step.storage_bytes,
                    .lanes = std::move(hooked.lanes),
                    .seconds = hooked.seconds};
  proposal.changes_training = changes_training(of);
  proposal.remarks = remarks_on(of, request.plan.batch.samples);
  return proposal;
}

bool changes_training(const HookedCase& of) {
  return of.micro_batches > 1 && changes_training_in_parts(*of.step.graph);
}

}  // namespace stowage
