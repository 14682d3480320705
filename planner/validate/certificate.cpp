// The plan's bounds, proved again from its certificate.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "planner/bounds/beside_bound.hpp"
#include "planner/bounds/tree_bound.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate/stated_problem.hpp"

namespace stowage {

namespace {

constexpr double proof_tolerance = 1e-6;  // relative, of seconds, as for all seconds
constexpr double byte_rounding = 1e-9;    // relative, of bytes
constexpr double byte_slack = 0.009;      // of a whole byte, for the rounding of what is computed

Check not_compared(std::string_view name) {
  return {fmt::format("{} not compared", name), true,
          "the plan carries no certificate, so that its bound has to be believed"};
}

Check failed(std::string_view name, std::string why) {
  return {std::string(name), false, std::move(why)};
}

std::string choice_in_words(const Plan& plan, const FixedChoice& choice) {
  const Fixing& fixing = choice.fixing;
  if (fixing.after < 0) {
    return fmt::format("{} on the {}", step_label(plan, fixing.subject),
                       choice.on_gpu ? "GPU" : "CPU");
  }
  return fmt::format("{} {} after {}", storage_label(plan, StorageId{fixing.subject}),
                     choice.on_gpu ? "kept" : "away", step_label(plan, fixing.after));
}

std::string leaf_in_words(const Plan& plan, const TreeBound& bound) {
  constexpr std::size_t worded = 4;
  std::string text = fmt::format("leaf {} of {}", bound.leaf, bound.leaves);
  for (std::size_t i = 0; i < std::min(bound.fixed.size(), worded); ++i) {
    text += fmt::format("{}{}", i == 0 ? " (" : ", ", choice_in_words(plan, bound.fixed[i]));
  }
  if (bound.fixed.size() > worded) text += ", ...";
  return bound.fixed.empty() ? text : text + ")";
}

// Why the leaves prove nothing; "": they prove the bound.
std::string no_bound(const TreeBound& bound) {
  if (bound.problem.empty() && std::isinf(bound.least)) {
    return "by its certificate no plan is within the budget, not even this one";
  }
  return bound.problem;
}

// Compares a claim in seconds with what the certificate proves.
Check compare_seconds(std::string_view name, std::string_view field, double claimed, double proved,
                      const std::string& by, const BoundScope& scope) {
  if (proved >= claimed * (1 - proof_tolerance)) {
    return {std::string(name), true,
            fmt::format("{} s proved again by {}, of {}", std::min(proved, claimed), by,
                        scope_in_words(scope))};
  }
  return failed(name, fmt::format("{} is {}, but {} proves no more than {}: {:.3g} percent less",
                                  field, claimed, by, proved, 100 * (claimed - proved) / claimed));
}

// Why the bound does not hold for plans like this one; "": it does.
std::string out_of_place(const Plan& plan, const BoundScope& scope) {
  std::string found = outside_scope(plan, scope);
  if (!found.empty()) {
    return fmt::format("the bound is of {}, but {}", scope_in_words(scope), found);
  }
  // Plans that pin less than the bound are bounded by less.
  const bool pins_less = (scope.compute_on_gpu && plan.pinned == Pinned::nothing) ||
                         (scope.updates_on_gpu && plan.pinned == Pinned::computation);
  if (pins_less) {
    return fmt::format("the bound is of {}, but the plan pins {} to it", scope_in_words(scope),
                       to_string(plan.pinned));
  }
  return {};
}

// Checks the least workspaces: ascending nodes of the step with a choice of engines, of which none
// runs on the GPU with less.
Check check_least_workspaces(const Plan& plan) {
  Violations wrong;
  std::int32_t last = -1;
  for (const NodeWorkspace& each : plan.certificate->workspaces) {
    if (each.node <= last || each.node >= std::ssize(plan.nodes) || each.least <= Bytes() ||
        each.least > Bytes(std::int64_t{1} << 61)) {
      wrong.note(
          [&] { return fmt::format("there is no node {} with such a workspace", each.node); });
      break;
    }
    last = each.node;
    const auto at = static_cast<std::size_t>(each.node);
    const PlannedNode& node = plan.nodes[at];
    if (!wants_workspace(plan.step.graph->nodes[at])) {
      wrong.note(
          [&] { return fmt::format("{} has no choice of engines", step_label(plan, each.node)); });
    } else if (device_of(plan, node) == Device::gpu && node.workspace < each.least) {
      wrong.note([&] {
        return fmt::format("{} takes {} bytes, less than its least of {}",
                           step_label(plan, each.node), node.workspace.count(), each.least.count());
      });
    }
  }
  return verdict("least workspaces", wrong,
                 fmt::format("{} nodes with a choice take no less than theirs",
                             plan.certificate->workspaces.size()));
}

Check check_cost(const Plan& plan) {
  constexpr std::string_view name = "cost certificate";
  const double claimed = plan.totals.cost_lower_bound_seconds;
  if (claimed == 0) return {std::string(name), true, "none is claimed"};
  const std::optional<TreeProof>& proof = plan.certificate->cost;
  if (!proof) return failed(name, "the certificate proves no bound on the cost");
  if (std::string why = out_of_place(plan, proof->scope); !why.empty()) return failed(name, why);
  const BoundProblem problem = stated_problem(plan, proof->scope, {});
  if (std::string why = overflow_reason(problem); !why.empty()) return failed(name, why);
  const TreeBound bound = tree_bound(problem, proof->tree);
  if (std::string why = no_bound(bound); !why.empty()) return failed(name, why);
  return compare_seconds(name, "cost_lower_bound_seconds", claimed, bound.least,
                         leaf_in_words(plan, bound), proof->scope);
}

// The bound on copies is of plans that compute on the GPU, whatever this plan does.
bool computes_where_it_likes(const Plan& plan) {
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.step.graph->nodes[i].phase != Phase::update &&
        plan.pins.of(NodeId::of(i)) != Pin::cpu && device_of(plan, plan.nodes[i]) == Device::cpu) {
      return true;
    }
  }
  return false;
}

Check check_transfers(const Plan& plan) {
  constexpr std::string_view name = "transfer certificate";
  const std::int64_t claimed = plan.totals.pcie_lower_bound.count();
  if (claimed == 0) return {std::string(name), true, "none is claimed"};
  const std::optional<TreeProof>& proof = plan.certificate->transfers;
  if (!proof) return failed(name, "the certificate proves no bound on the bytes that are moved");
  if (!computes_where_it_likes(plan)) {
    const std::string outside = outside_scope(plan, proof->scope);
    if (!outside.empty()) {
      return failed(
          name, fmt::format("the bound is of {}, but {}", scope_in_words(proof->scope), outside));
    }
  }
  const BoundProblem problem = stated_problem(plan, proof->scope, {.bytes = true});
  if (std::string why = overflow_reason(problem); !why.empty()) return failed(name, why);
  const TreeBound bound = tree_bound(problem, proof->tree);
  if (std::string why = no_bound(bound); !why.empty()) return failed(name, why);
  // Copies move whole bytes, so the bound may be rounded up.
  const double proved = std::ceil(bound.least * (1 + byte_rounding) - byte_slack);
  if (proved < static_cast<double>(claimed)) {
    return failed(name, fmt::format("pcie_lower_bound_bytes is {}, but {} proves no more than {}",
                                    claimed, leaf_in_words(plan, bound), proved));
  }
  return {std::string(name), true,
          fmt::format("{} bytes proved again by {}, of {}", claimed, leaf_in_words(plan, bound),
                      scope_in_words(proof->scope))};
}

bool is_weight(double weight) { return weight >= 0 && weight <= 1; }

// Four lanes side by side. The work of none of them takes longer than the step.
double sum_of_weights(const LaneProof& lanes) {
  return lanes.gpu + lanes.cpu + lanes.uploads + lanes.downloads;
}

Check check_lanes(const Plan& plan, const LaneProof& lanes, std::string_view name, double claimed) {
  const double sum = sum_of_weights(lanes);
  const bool are_weights = is_weight(lanes.gpu) && is_weight(lanes.cpu) &&
                           is_weight(lanes.uploads) && is_weight(lanes.downloads);
  if (!are_weights || sum <= 0) return failed(name, "its lanes have no weights from 0 to 1");
  const BoundProblem problem = stated_problem(
      plan, lanes.scope, {lanes.gpu, lanes.cpu, lanes.uploads, lanes.downloads, false});
  if (std::string why = overflow_reason(problem); !why.empty()) return failed(name, why);
  const TreeBound bound =
      tree_bound(problem, {{{}, BranchLeaf{.steps = lanes.prices, .limits = {}}}});
  if (std::string why = no_bound(bound); !why.empty()) return failed(name, why);
  return compare_seconds(name, "step_lower_bound_seconds", claimed, bound.least / sum,
                         "the weighted lanes", lanes.scope);
}

Check check_split(const Plan& plan, const SplitProof& split, std::string_view name,
                  double claimed) {
  const BoundProblem problem = stated_problem(plan, split.scope, {});
  if (std::string why = overflow_reason(problem); !why.empty()) return failed(name, why);
  const bool is_node = split.node >= 0 && split.node < std::ssize(plan.nodes);
  if (!is_node || problem.nodes[static_cast<std::size_t>(split.node)].side != Side::gpu) {
    return failed(name, fmt::format("node {} need not run on the GPU", split.node));
  }
  if (!is_weight(split.downloads) || !is_weight(split.uploads) || !is_weight(split.cpu)) {
    return failed(name, "its two sides and the CPU have no weights from 0 to 1");
  }
  return compare_seconds(
      name, "step_lower_bound_seconds", claimed,
      beside_bound(problem, split.node, split.downloads, split.uploads, split.cpu),
      fmt::format("what is away during {}", step_label(plan, split.node)), split.scope);
}

Check check_step(const Plan& plan) {
  constexpr std::string_view name = "step certificate";
  const double claimed = plan.totals.step_lower_bound_seconds.value_or(0);
  if (claimed == 0) return {std::string(name), true, "none is claimed"};
  const auto& proof = plan.certificate->step;
  const auto* lanes = std::get_if<LaneProof>(&proof);
  const auto* split = std::get_if<SplitProof>(&proof);
  if (lanes == nullptr && split == nullptr) {
    return failed(name, "the certificate proves no bound on the step");
  }
  const std::string why = out_of_place(plan, lanes != nullptr ? lanes->scope : split->scope);
  if (!why.empty()) return failed(name, why);
  return lanes != nullptr ? check_lanes(plan, *lanes, name, claimed)
                          : check_split(plan, *split, name, claimed);
}

}  // namespace

std::vector<Check> check_certificate(const Plan& plan) {
  if (!plan.certificate) {
    return {not_compared("least workspaces"), not_compared("cost certificate"),
            not_compared("transfer certificate"), not_compared("step certificate")};
  }
  std::vector<Check> checks{check_least_workspaces(plan)};
  if (!checks.front().passed) return checks;
  checks.push_back(check_cost(plan));
  checks.push_back(check_transfers(plan));
  checks.push_back(check_step(plan));
  return checks;
}

}  // namespace stowage
