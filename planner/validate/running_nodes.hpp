// RunningNodes: which of the CPU's nodes are under way, and what they hold on to.
//
// A node on the CPU runs at any time from its window's begin to its end (planner/plan/plan.hpp).
// Meanwhile nobody may write what it reads, and nobody may touch what it writes, but for nodes of
// the CPU that wait behind it.
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

  // What happens, in its order; nodes by their step.
  void issue(std::int32_t node);   ///< one of the CPU's, at its window's begin
  void finish(std::int32_t node);  ///< the same, at its window's end
  void run(std::int32_t node);     ///< one of the GPU's
  void depart(const Transfer& transfer, std::string_view label);

  /// "CPU windows".
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
