#include "planner/explain/placement_log.hpp"

#include <fmt/format.h>

#include <cmath>

#include "planner/explain/alternatives.hpp"

namespace stowage {

namespace {

std::string milliseconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

PlacementReason pinned_reason(const StepPins& pins, const AppliedPin& applied) {
  const PinReason& reason = pins.reasons[static_cast<std::size_t>(applied.reason)];
  switch (reason.kind) {
    case PinReason::Kind::no_gpu_kernel:
      return {PlacementCause::no_gpu_kernel, reason.text};
    case PinReason::Kind::home:
      return {.cause = PlacementCause::follows, .instead = reason.text};
    case PinReason::Kind::asked:
      break;
  }
  return {PlacementCause::pinned, reason.text};
}

bool computes_on_gpu(const Plan& plan, NodeId node) {
  return plan.pinned == Pinned::all_nodes ||
         (plan.pinned == Pinned::computation && plan.kernel(node).phase != Phase::update);
}

/// The cause why a cheaper alternative that needs more GPU memory was not taken.
PlacementCause without_room(const Plan& plan, const PlannedProblem& planned,
                            const Selection& selection, Alternative alternative) {
  const bool has_room = plan.inputs.budget.fits(peak_with(planned, selection, alternative));
  return has_room ? PlacementCause::undecided : PlacementCause::budget;
}

}  // namespace

std::string_view to_string(PlacementCause cause) {
  switch (cause) {
    case PlacementCause::pinned:
      return "pinned";
    case PlacementCause::no_gpu_kernel:
      return "no GPU kernel";
    case PlacementCause::budget:
      return "budget";
    case PlacementCause::cheaper:
      return "cheaper";
    case PlacementCause::computation:
      return "computation";
    case PlacementCause::follows:
      return "follows";
    case PlacementCause::undecided:
      return "undecided";
  }
  return "";
}

std::string in_words(const PlacementReason& reason) {
  const std::string by = milliseconds(reason.seconds);
  switch (reason.cause) {
    case PlacementCause::pinned:
      return fmt::format("pinned by '{}'", reason.pin);
    case PlacementCause::no_gpu_kernel:
      return fmt::format("no GPU kernel: {}", reason.pin);
    case PlacementCause::budget:
      return fmt::format("budget: {} cheaper {}, if there were room", by, reason.instead);
    case PlacementCause::cheaper:
      return reason.seconds == 0 ? fmt::format("as cheap as {}", reason.instead)
                                 : fmt::format("cheaper by {} than {}", by, reason.instead);
    case PlacementCause::computation:
      return fmt::format("the plan computes on the GPU, though {} cheaper {}", by, reason.instead);
    case PlacementCause::follows:
      return reason.instead;
    case PlacementCause::undecided:
      return fmt::format("{} cheaper {}, which the search left, or gave up for a shorter step", by,
                         reason.instead);
  }
  return "";
}

bool is_variable(const Storage& storage) {
  switch (storage.storage_class) {
    case StorageClass::input:
    case StorageClass::augmented_input:
    case StorageClass::parameter:
    case StorageClass::parameter_copy:
    case StorageClass::buffer:
    case StorageClass::gradient:
    case StorageClass::optimizer_state:
      return true;
    default:
      return false;
  }
}

PlacementReason reason_of(const Plan& plan, const PlannedProblem& planned, NodeId node) {
  if (plan.pins.of(node) != Pin::free) {
    return pinned_reason(plan.pins, plan.pins.nodes[node.index()]);
  }
  const bool on_gpu = planned.placement.device[node.index()] == Device::gpu;
  const Alternative other = on_gpu ? Alternative::on_cpu : Alternative::on_gpu;
  const Selection alone{.operations = {static_cast<std::int32_t>(node.index())}};
  const double added = added_cost(planned, alone, other).seconds;
  const std::string instead(to_string(other));
  if (added >= 0) return {PlacementCause::cheaper, "", added, instead};
  if (!on_gpu) return {without_room(plan, planned, alone, other), "", -added, instead};
  if (computes_on_gpu(plan, node)) return {PlacementCause::computation, "", -added, instead};
  return {PlacementCause::undecided, "", -added, instead};
}

PlacementReason reason_of(const Plan& plan, const PlannedProblem& planned, StorageId storage) {
  if (plan.pins.of(storage) != Pin::free) {
    return pinned_reason(plan.pins, plan.pins.storages[storage.index()]);
  }
  const auto follows = [](std::string words) {
    return PlacementReason{PlacementCause::follows, "", 0, std::move(words)};
  };
  const Selection alone{.items = {planned.item_of[storage.index()]}};
  switch (state_of(planned, storage)) {
    case StorageState::unused:
      return follows("no kernel touches it");
    case StorageState::on_cpu:
      return follows("its kernels run on the CPU");
    case StorageState::on_gpu: {
      const AddedCost swapped = added_cost(planned, alone, Alternative::swapped);
      if (swapped.h2d_bytes == 0 && swapped.d2h_bytes == 0) {
        return follows("the GPU wants it once");
      }
      return {PlacementCause::cheaper, "", swapped.seconds, "swapped"};
    }
    case StorageState::swapped: {
      const double kept = added_cost(planned, alone, Alternative::kept).seconds;
      if (kept < 0) {
        const PlacementCause cause = without_room(plan, planned, alone, Alternative::kept);
        return {cause, "", -kept, "kept on the GPU"};
      }
      return {PlacementCause::cheaper, "", kept, "kept on the GPU"};
    }
  }
  return follows("");
}

}  // namespace stowage
