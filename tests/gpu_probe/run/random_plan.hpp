// Valid random plans, made without the planner, only from the definition in planner/plan/plan.hpp.
//
// Every storage either stays on the GPU or lives on the host and visits the GPU. Devices, visits
// and the times of copies are drawn at random. So the executor meets every kind of residence and
// transfer that a plan may have, in sizes and orders that no planner would choose.
#pragma once

#include <cstdint>
#include <random>

#include "planner/plan/plan.hpp"

namespace stowage::test {

struct PlanShares {
  double visiting = 0.7;    ///< share of the storages that visit the GPU
  double on_cpu = 0.15;     ///< share of the nodes
  double workspaces = 0.3;  ///< share of the nodes on the GPU
  double windows = 0.8;     ///< share of the CPU's nodes that may run beside the GPU's
};

[[nodiscard]] Plan random_plan(const StepGraph& graph, std::int64_t batch, std::uint64_t seed,
                               const PlanShares& shares = {});

/// A plan with everything on the GPU from the start; inputs are uploaded.
[[nodiscard]] Plan resident_plan(const StepGraph& graph, std::int64_t batch);

/// Computes the totals of a plan whose residences and transfers are set: sums, peaks, arena.
void count_totals(Plan& plan);

}  // namespace stowage::test
