// A plan of serving as llama.cpp's options: each weight that the plan has on the host is overridden
// to lie there (--override-tensor), by the name that a GGUF file has for it.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "planner/export/plan_text.hpp"

namespace stowage {

/// Options for a shell, as an array. Norms and position embeddings, which are small, stay on the
/// GPU, and the token embedding on the host, as llama.cpp has it. A block's cache lies on the host
/// where the whole block does (the first blocks), or all caches do. Errors: a plan that is not of
/// serving; a layer with weights that GGUF has no name for; a cache of a type that llama.cpp does
/// not have.
[[nodiscard]] Result<PlanText> llama_cpp_plan(const Plan& plan);

}  // namespace stowage
