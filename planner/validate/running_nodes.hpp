// RunningNodes: the CPU's nodes that are under way, and the storages that they use meanwhile.
//
// A node on the CPU runs at any time from its window's begin to its end (planner/plan/plan.hpp).
// Meanwhile nothing may write what it reads, and nothing may touch what it writes, except nodes of
// the CPU that are issued after it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/validate/checks.hpp"

namespace stowage {

class RunningNodes {
 public:
  /// The plan is kept by reference.
  explicit RunningNodes(const Plan& plan);

  // The events, to be called in their order; nodes by their step.
  void issue(std::int32_t node);   ///< a node of the CPU, at its window's begin
  void finish(std::int32_t node);  ///< a node of the CPU, at its window's end
  void run(std::int32_t node);     ///< a node of the GPU
  void start_copy(const Transfer& transfer, std::string_view label);

  /// The check "CPU windows".
  [[nodiscard]] Check check() const;

 private:
  struct Hold {
    std::int32_t node = 0;
    bool writes = false;
  };
  struct Touched {
    StorageId storage;
    bool writes = false;
  };
  [[nodiscard]] std::vector<Touched> touched_by(std::int32_t node) const;

  const Plan& plan_;
  std::vector<std::vector<Hold>> holds_;  // by storage
  std::int64_t issued_ = 0, beside_ = 0;
  Violations wrong_;
};

}  // namespace stowage
