// StepSketch: residency problems of training steps, written down by hand, for known answers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "planner/problem/residency_problem.hpp"

namespace stowage {

enum class Life { transient, input, state };

/// Collects storages and operations in their order. Times are those of `Rates` with flops and bytes
/// given by the caller.
class StepSketch {
 public:
  explicit StepSketch(Rates rates) : rates_(rates) {}

  std::int32_t storage(std::string name, Bytes bytes, Life life = Life::transient);
  void operation(std::string name, Pin pin, std::initializer_list<std::int32_t> reads,
                 std::initializer_list<std::int32_t> writes, double flops = 0);
  [[nodiscard]] ResidencyProblem problem() const;

 private:
  Rates rates_;
  std::vector<Life> life_;
  ResidencyProblem problem_;
};

/// 10 GB/s each way without latency, a GPU of 10 TFLOP/s and a CPU of 0.1.
[[nodiscard]] Rates round_rates();

/// A decoder-only transformer's training step under Adam: forward, backward, one update a
/// parameter. Updates are free, all else is pinned to the GPU.
[[nodiscard]] ResidencyProblem transformer_step(int layers, std::int64_t width, std::int64_t tokens,
                                                std::int64_t vocabulary, const Rates& rates);

}  // namespace stowage
