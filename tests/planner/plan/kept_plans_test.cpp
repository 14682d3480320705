// Plans and steps that earlier versions wrote stay readable, and the plans valid.
#include "tests/support/kept_plans.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "estimator/document/step_document.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage::test {

TEST_CASE("plans that are kept are read and valid, without a lowering") {
  const std::vector<KeptFile> kept = kept_plans();
  CHECK(kept.size() >= 3);
  for (const KeptFile& file : kept) {
    CAPTURE(file.path);
    const auto plan =
        read_plan(std::make_shared<const SourceText>(SourceText{file.path, file.text}));
    if (!plan) FAIL(render(plan.error()));
    const auto source = rule_workspace_source(plan->inputs.card.compute_capability);
    for (const Check& check : validate_plan(*plan, *source).checks) {
      CHECK_MESSAGE(check.passed, check.name, ": ", check.detail);
    }
  }
}

TEST_CASE("steps that are kept are read") {
  const std::vector<KeptFile> kept = kept_steps();
  CHECK(!kept.empty());
  for (const KeptFile& file : kept) {
    CAPTURE(file.path);
    const auto step =
        read_step(std::make_shared<const SourceText>(SourceText{file.path, file.text}));
    if (!step) FAIL(render(step.error()));
    CHECK(!step->graph->nodes.empty());
  }
}

}  // namespace stowage::test
