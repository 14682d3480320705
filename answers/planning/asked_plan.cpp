#include "answers/planning/asked_plan.hpp"

#include <fmt/format.h>

#include "answers/subject/file_kind.hpp"
#include "estimator/base/read_source.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

namespace {

Result<SourceTextPtr> text_of_plan(const std::string& name) {
  auto source = read_source(name, FileKind::plan);
  if (!source) return source;
  if (auto mistake = not_a_plan(**source)) return failure(*std::move(mistake));
  return source;
}

}  // namespace

Result<Plan> read_plan_file(const std::string& name) {
  return text_of_plan(name).and_then(
      [](SourceTextPtr&& text) { return read_plan(std::move(text)); });
}

Result<Plan> read_plan_text(SourceTextPtr text) {
  if (auto mistake = not_a_plan(*text)) return failure(*std::move(mistake));
  return read_plan(std::move(text));
}

Result<Plan> read_asked_plan(const std::string& name) {
  const auto text = text_of_plan(name);
  if (!text) return tl::unexpected(text.error());
  auto plan = read_plan(*text);
  if (!plan) return plan;
  const Check structure = check_structure(*plan);
  if (structure.passed) return plan;
  return failure({.message = "this plan is not valid: " + structure.detail,
                  .span = {.source = *text, .line = 1, .column = 1}});
}

}  // namespace stowage
