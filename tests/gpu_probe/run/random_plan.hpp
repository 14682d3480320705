// Valid plans made without the planner, from the definition in planner/plan/plan.hpp alone.
//
// Every storage either stays where it is used or lives on the host and visits the GPU; devices,
// visits and the copies' places are drawn. So a run of the executor meets every kind of residence
// and transfer that a plan may hold, at sizes and in orders that no planner would choose.
#pragma once

#include <cstdint>
#include <random>

#include "planner/plan/plan.hpp"

namespace stowage::test {

struct PlanShares {
  double visiting = 0.7;    ///< of the storages: live on the host and visit the GPU
  double on_cpu = 0.15;     ///< of the nodes
  double workspaces = 0.3;  ///< of the nodes on the GPU
  double windows = 0.8;     ///< of the nodes on the CPU: run beside the GPU's where they may
};

[[nodiscard]] Plan random_plan(const StepGraph& graph, std::int64_t batch, std::uint64_t seed,
                               const PlanShares& shares = {});

/// Everything on the GPU from the start; inputs are uploaded.
[[nodiscard]] Plan resident_plan(const StepGraph& graph, std::int64_t batch);

/// Counts the totals of a plan whose residences and transfers are set: sums, peaks, arena.
void count_totals(Plan& plan);

}  // namespace stowage::test
