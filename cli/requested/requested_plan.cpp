#include "cli/requested/requested_plan.hpp"

#include <fmt/format.h>

#include "cli/requested/file_kind.hpp"
#include "estimator/base/read_source.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

Result<Plan> requested_plan(const std::string& argument) {
  auto source = read_source(argument, FileKind::plan);
  if (!source) return tl::unexpected(std::move(source.error()));
  if (auto mistake = not_a_plan(**source)) return failure(*std::move(mistake));
  const SourceTextPtr text = *source;
  auto plan = read_plan(*std::move(source));
  if (!plan) return tl::unexpected(std::move(plan.error()));
  const Check structure = check_structure(*plan);
  if (structure.passed) return plan;
  return failure({.message = "this plan is not valid: " + structure.detail,
                  .span = {.source = text, .line = 1, .column = 1}});
}

}  // namespace stowage
