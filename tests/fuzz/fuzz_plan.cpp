// A plan file: read; what is read is written back and read again as the same, and validated.
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/explain/placement_log.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/validate/validate_plan.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stowage;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t most_text = std::size_t{256} << 10;
  if (size > most_text) return -1;
  const auto plan = read_plan(fuzz::source_of(data, size));
  if (!plan) {
    fuzz::require_shown(plan.error());
    return 0;
  }
  const std::string written = write_plan(*plan);
  const auto again = read_plan(std::make_shared<const SourceText>(SourceText{"written", written}));
  fuzz::require(again.has_value() && write_plan(*again) == written);
  const auto workspaces = rule_workspace_source(8.6);
  const PlanValidation validation = validate_plan(*plan, *workspaces);
  fuzz::require(!validation.checks.empty());
  if (!check_structure(*plan).passed) return 0;
  const auto planned = planned_problem(*plan);
  if (!planned) {
    fuzz::require_shown(planned.error());
    return 0;
  }
  for (std::size_t i = 0; i < plan->nodes.size(); ++i) {
    fuzz::require(!in_words(reason_of(*plan, *planned, NodeId::of(i))).empty());
  }
  return 0;
}
