#include "answers/subject/named_plan.hpp"

#include <filesystem>
#include <utility>

#include "answers/question/question_error.hpp"
#include "answers/subject/file_kind.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/formats/import_model.hpp"
#include "planner/pytorch/pytorch_plan_file.hpp"

namespace stowage {

Result<std::optional<NamedPytorchPlan>> pytorch_plan_of(SourceTextPtr source) {
  if (stowage_file(source->text) != StowageFile::pytorch_plan) {
    return std::optional<NamedPytorchPlan>();
  }
  return read_pytorch_plan(source).map([&](PytorchPlan&& plan) {
    return std::optional(NamedPytorchPlan{.source = source, .plan = std::move(plan)});
  });
}

Result<std::optional<NamedPytorchPlan>> find_pytorch_plan(const std::string& path) {
  if (!names_plan(path)) return std::optional<NamedPytorchPlan>();
  return read_source(path, FileKind::plan).and_then(pytorch_plan_of);
}

Diagnostics about_plan(Diagnostics mistakes, const NamedPytorchPlan& named) {
  for (Diagnostic& mistake : mistakes) {
    if (mistake.span.source && mistake.span.source->name != question_place) continue;
    mistake.message = "what the plan was made of cannot be sized again: " + mistake.message;
    mistake.span = {.source = named.source};
  }
  return mistakes;
}

bool names_plan(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const StowageFile kind = stowage_file(read_file_head(path).first_bytes);
  return kind == StowageFile::plan || kind == StowageFile::pytorch_plan;
}

}  // namespace stowage
