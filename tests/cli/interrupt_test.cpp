// Ctrl-C while a plan is searched for.
#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::RunningProgram;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

std::vector<std::string> interrupted_plan(const std::string& output,
                                          const std::string& format = "json") {
  return {"plan", "resnet50", "--batch",  "64",   "--budget", "3GiB",
          "-o",   output,     "--format", format, "--effort", "1024"};
}

}  // namespace

TEST_CASE("the first Ctrl-C gives the best plan so far, which is valid") {
  const TemporaryFolder folder;
  const std::string path = folder.path("plan.yaml");
  RunningProgram program(interrupted_plan(path));
  REQUIRE(program.shows("Ctrl-C takes the best so far"));
  program.send(SIGINT);
  const Outcome outcome = program.wait();
  CHECK(outcome.exit_code == 130);
  INFO(outcome.err);
  CHECK(outcome.err.find("warning: interrupted: these are the best plans so far") !=
        std::string::npos);
  const json answer = json::parse(outcome.out);
  REQUIRE_FALSE(answer["plans"].empty());
  CHECK(answer["written"] == path);
  CHECK(answer["search"]["stopped_by"] == "interrupt");
  CHECK(answer["search"]["effort"] == 1024);
  CHECK(stowage_program({"validate", path, "--model-only"}).exit_code == 0);
}

TEST_CASE("a frontier that an interrupted search leaves out is said") {
  const TemporaryFolder folder;
  const std::string frontier = folder.path("frontier.csv");
  std::vector<std::string> words = interrupted_plan(folder.path("plan.yaml"));
  words.insert(words.end(), {"--frontier", frontier});
  RunningProgram program(words);
  REQUIRE(program.shows("Ctrl-C takes the best so far"));
  program.send(SIGINT);
  const Outcome outcome = program.wait();
  CHECK(outcome.exit_code == 130);
  const json answer = json::parse(outcome.out);
  CHECK(answer["frontier"].is_null());
  CHECK(answer["frontier_budgets_left_out"] == 12);
  CHECK(outcome.err.find(
            "warning: interrupted: 12 of the budgets of --frontier were not searched\n") !=
        std::string::npos);
  CHECK(folder.names() == std::vector<std::string>{"plan.yaml"});
}

TEST_CASE("a frontier that is left out is not said to have no step") {
  const TemporaryFolder folder;
  const std::string frontier = folder.path("frontier.csv");
  std::vector<std::string> words = interrupted_plan(folder.path("plan.yaml"), "table");
  words.insert(words.end(), {"--frontier", frontier});
  RunningProgram program(words);
  REQUIRE(program.shows("Ctrl-C takes the best so far"));
  program.send(SIGINT);
  const Outcome outcome = program.wait();
  CHECK(outcome.out.ends_with(frontier +
                              " is not written: the search stopped before it had a step\n"));
}

TEST_CASE("the second Ctrl-C ends the program, and nothing is written") {
  const TemporaryFolder folder;
  RunningProgram program(interrupted_plan(folder.path("plan.yaml")));
  REQUIRE(program.shows("Ctrl-C takes the best so far"));
  program.send(SIGINT);
  program.send(SIGINT);
  const Outcome outcome = program.wait();
  CHECK(outcome.exit_code == 130);
  CHECK((folder.names().empty() || outcome.out.find("\"written\"") != std::string::npos));
}

}  // namespace stowage
