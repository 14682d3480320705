// A plan, or a model, as text for another program.
#pragma once

#include <string>

#include "answers/question/model_question.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct ExportQuestion {
  ModelQuestion model;  ///< its source may also be a plan's file
};

/// Graphviz's dot. Errors: the plan or the model cannot be read.
[[nodiscard]] Result<std::string> answer(const ExportQuestion& question);

}  // namespace stowage
