// End to end: small networks are planned under tight budgets, run on the host backend, and compared
// with the step with everything resident. Every bit must be equal.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "estimator/document/make_document.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/step/lower.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "planner/propose/proposals.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

constexpr std::int64_t planned_batch = 4;
constexpr double compute_capability = 8.6;

PlanRequest request_for(const char* text, const LoweringSettings& settings, Bytes budget) {
  PlanRequest request;
  request.description = std::make_shared<SourceText>(SourceText{"<test>", text});
  const ModelGraph model = load_model(request.description).value();
  request.document =
      make_document(model, {.lowering = settings}, Runtime::stowage, {}, step_alone).value();
  request.batch = WholeBatch(planned_batch);
  request.card.name = "a test's card";
  request.card.compute_capability = compute_capability;
  request.host = {.name = "a test's host", .memory = 1_GiB, .pinned_limit = 1_GiB};
  request.budget = budget;
  request.stowage_version = "test";
  return request;
}

std::string failures_of_plan(const RunReport& report) {
  std::string text;
  for (const Check& check : report.checks) {
    if (!check.passed) text += check.name + ": " + check.detail + "\n";
  }
  return text;
}

/// The proposals within a budget; none if a single operation needs more.
std::vector<Plan> plans_within(const char* text, const LoweringSettings& settings, Bytes budget) {
  const auto source = rule_workspace_source(compute_capability);
  auto plans = make_plans(request_for(text, settings, budget), *source,
                          {.work = {60'000'000}, .target_gap = 0.2});
  return plans ? std::move(*plans) : std::vector<Plan>{};
}

struct Tally {
  int plans = 0;
  CopyCount up, down;
};

void run_all(const char* text, const LoweringSettings& settings, std::vector<int> budgets,
             Tally& tally) {
  const Plan resident = resident_plan(step_of(text, settings), planned_batch);
  for (const int percent : budgets) {
    const Bytes budget = round_up(Bytes(resident.totals.arena.count() * percent / 100), 256_B);
    for (const Plan& plan : plans_within(text, settings, budget)) {
      auto backend = open_host_backend();
      REQUIRE(backend.has_value());
      const auto report = run_plan(plan, **backend);
      REQUIRE(report.has_value());
      INFO(plan.step.graph->model, " with ", settings.optimizer.name, " at ", percent,
           " percent: ", plan.name);
      CHECK(failures_of_plan(*report) == "");
      CHECK(report->measured.gpu_high_water <= budget);
      ++tally.plans;
      tally.up.copies += report->measured.h2d.copies;
      tally.down.copies += report->measured.d2h.copies;
    }
  }
}

void report(const std::string& what, const Tally& tally) {
  MESSAGE(what, ": ", tally.plans, " plans, ", tally.up.copies, " uploads, ", tally.down.copies,
          " downloads");
}

}  // namespace

TEST_CASE("planned steps of an mlp leave the resident step's bits") {
  Tally tally;
  run_all(mlp, sgd_momentum(), {25, 40, 60, 80}, tally);
  run_all(mlp, adamw(), {25, 40, 60, 80}, tally);
  CHECK(tally.plans >= 4);
  CHECK(tally.down.copies > 50);
  report("mlp", tally);
}

TEST_CASE("planned steps of a convolutional network leave the resident step's bits") {
  Tally tally;
  run_all(small_cnn, sgd_momentum(), {40, 60, 80}, tally);
  run_all(small_cnn, adamw(), {40, 60, 80}, tally);
  CHECK(tally.plans >= 4);
  CHECK(tally.down.copies > 20);
  report("cnn", tally);
}

TEST_CASE("planned steps of a residual network leave the resident step's bits") {
  Tally tally;
  run_all(small_resnet, sgd_momentum(), {40, 60}, tally);
  run_all(small_resnet, adamw(), {40, 60}, tally);
  CHECK(tally.plans >= 4);
  CHECK(tally.down.copies > 20);
  report("resnet", tally);
}

TEST_CASE("planned steps of a transformer leave the resident step's bits") {
  Tally tally;
  run_all(small_gpt2, sgd_momentum(), {40, 60}, tally);
  run_all(small_gpt2, adamw(), {40, 60}, tally);
  CHECK(tally.plans >= 4);
  CHECK(tally.down.copies > 100);
  report("gpt2", tally);
}

}  // namespace stowage::test
