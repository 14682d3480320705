// A module of the script as a step runs it: its kernels in forward.
#pragma once

#include <string_view>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

struct ModuleSpan {
  NodeId first, last;                 ///< its kernels in forward; none: it has none
  std::vector<OperatorId> operators;  ///< ascending
  bool is_in_one_piece = true;        ///< no other module's kernel runs between its own
};

/// All layers whose path is the module's or begins with it and a dot.
[[nodiscard]] ModuleSpan module_span(const StepGraph& step, std::string_view module);

}  // namespace stowage
