// The model that a question names: found, told apart by its content, and loaded.
//
//   ModelQuestion -> FoundModel (a description, or a step's file) -> AskedModel (a model's graph)
#pragma once

#include "answers/question/model_question.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/model/load_model.hpp"

namespace stowage {

struct AskedModel {
  SourceTextPtr source;
  ModelOptions options;
  ModelGraph graph;  ///< `warnings`: also what the reader of its file had to say
};

/// What the question names: a description, a name of the catalogue, or a file of another format as
/// the description that its reader makes of it. Errors: also those of that reader.
[[nodiscard]] Result<FoundModel> find_asked_model(const ModelQuestion& question);
/// Errors: a file of another kind (file_kind.hpp), the description's own mistakes.
[[nodiscard]] Result<AskedModel> load_asked_model(FoundModel found, const ModelQuestion& question);
/// Both. Errors: also a step's file, which only some questions take.
[[nodiscard]] Result<AskedModel> read_asked_model(const ModelQuestion& question);

}  // namespace stowage
