// Small steps, their sizes and rates, for tests of what is recomputed.
#pragma once

#include <stdexcept>
#include <string>

#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/problem/residency_problem.hpp"
#include "tests/support/described_model.hpp"

namespace stowage::testing {

inline constexpr const char* branching_network = R"(
model: branching
inputs: {x: {shape: [batch, 6, 12, 12]}, t: {shape: [batch], dtype: int64}}
layers:
  - conv2d: {name: a, from: x, channels: 8, kernel: 3, padding: 1}
  - gelu: {name: bent}
  - conv2d: {name: b, channels: 8, kernel: 3, padding: 1}
  - dropout: {name: drop}
  - add: {name: sum, from: [drop, bent]}
  - gelu: {name: late}
  - max_pool2d: {name: pool, kernel: 2}
  - flatten
  - linear: {name: head, features: 10}
loss: {cross_entropy: {from: [head, t]}}
)";

inline constexpr const char* normalised_network = R"(
model: normalised
inputs: {x: {shape: [batch, 4, 16, 16]}, t: {shape: [batch], dtype: int64}}
layers:
  - conv2d: {name: a, from: x, channels: 8, kernel: 3, padding: 1, bias: false}
  - batch_norm: {name: na}
  - relu: {name: ra, in_place: true}
  - conv2d: {name: b, channels: 8, kernel: 3, padding: 1, bias: false}
  - batch_norm: {name: nb}
  - add: {name: sum, from: [nb, ra]}
  - relu: {name: rb, in_place: true}
  - conv2d: {name: c, channels: 8, kernel: 1, bias: false}
  - batch_norm: {name: nc}
  - relu: {name: rc, in_place: true}
  - adaptive_avg_pool2d: {name: mean, size: 1}
  - flatten
  - linear: {name: head, features: 10}
loss: {cross_entropy: {from: [head, t]}}
)";

inline Rates usual_rates() {
  Rates rates;
  rates.gpu_flops = 1e12;
  rates.gpu_bandwidth = 1e11;
  rates.gpu_launch = 1e-7;
  rates.cpu_flops = 1e10;
  rates.cpu_bandwidth = 1e10;
  rates.h2d_bandwidth = rates.d2h_bandwidth = 1e10;
  return rates;
}

inline SizedStep sized(std::shared_ptr<const StepGraph> graph, std::int64_t batch) {
  const auto workspaces = rule_workspace_source(8.6);
  auto step = size_step(std::move(graph), batch, *workspaces);
  if (!step) throw std::runtime_error(render(step.error()));
  return *std::move(step);
}

inline SizedStep sized_step_of(const std::string& text, int micro_batches = 1,
                               std::int64_t batch = 16) {
  return sized(lowered(described(text), {.micro_batches = micro_batches, .in_place = true}), batch);
}

/// The figures of the step with everything on the GPU and the least workspaces, by the definition
/// of the problem.
struct PlainFigures {
  double seconds = 0;
  Bytes peak;
  std::vector<Bytes> memory;
};
inline PlainFigures plain_figures(const SizedStep& step) {
  const ResidencyProblem problem = make_problem(step, usual_rates(), {.all_on_gpu = true});
  const Evaluation evaluation = evaluate(problem, all_gpu_placement(problem, Bytes()));
  return {evaluation.compute_seconds, evaluation.peak, evaluation.memory};
}

}  // namespace stowage::testing
