#include "estimator/workspace/benchmark.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace stowage;

namespace {

std::vector<Engine> plans(std::initializer_list<std::int64_t> workspaces) {
  std::vector<Engine> plans;
  for (const std::int64_t bytes : workspaces) {
    plans.push_back({"eng" + std::to_string(plans.size()), Bytes(bytes)});
  }
  return plans;
}

std::string said(const BenchmarkOutcome& outcome) {
  std::string text = "buffer " + std::to_string(outcome.buffer.count()) + ", winners";
  for (const Engine& winner : outcome.winners) {
    text += " " + winner.name + "=" + std::to_string(winner.workspace.count());
  }
  return text;
}

}  // namespace

TEST_CASE("the buffer is the largest workspace, and any plan may win") {
  CHECK(said(benchmark_outcome(plans({30, 0, 50, 30}))) ==
        "buffer 50, winners eng2=50 eng0=30 eng1=0");
  CHECK(said(benchmark_outcome(plans({0, 0}))) == "buffer 0, winners eng0=0");
}

TEST_CASE("only the first ten are timed, but all of them count for the buffer") {
  CHECK(said(benchmark_outcome(plans({1, 2, 1, 1, 1, 1, 1, 1, 1, 3, 99, 0}))) ==
        "buffer 99, winners eng9=3 eng1=2 eng0=1");
}

TEST_CASE("plans that want more than is available are dropped before they are counted") {
  const auto twelve = plans({70, 2, 1, 1, 60, 1, 1, 1, 1, 1, 5, 50});
  CHECK(said(benchmark_outcome(twelve, 50_B)) ==
        "buffer 50, winners eng11=50 eng10=5 eng1=2 eng2=1");
  CHECK(said(benchmark_outcome(twelve, 60_B)) ==
        "buffer 60, winners eng4=60 eng10=5 eng1=2 eng2=1");
  CHECK(said(benchmark_outcome(twelve, 0_B)) == "buffer 0, winners");
}

TEST_CASE("TensorFlow's scratch limit leaves the engines within it, or the least") {
  WorkspaceAnswer answer{.engines = plans({50, 10, 30}), .origin = WorkspaceOrigin::cudnn};
  answer.benchmark = plans({50, 50, 10});
  const WorkspaceAnswer within = within_limit(answer, 30_B);
  REQUIRE(within.engines.size() == 2);
  CHECK(within.engines[0].name == "eng1");
  CHECK(within.engines[1].name == "eng2");
  CHECK(within.benchmark.size() == 1);
  CHECK(within.origin == WorkspaceOrigin::cudnn);
  const WorkspaceAnswer least = within_limit(answer, 5_B);
  REQUIRE(least.engines.size() == 1);
  CHECK(least.engines[0].name == "eng1");
  CHECK(within_limit({}, 5_B).engines.empty());
}
