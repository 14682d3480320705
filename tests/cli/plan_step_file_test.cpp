// plan of a step's file: as of its model, and what only such a file can be.
#include <doctest/doctest.h>

#include <fstream>

#include "estimator/document/step_document.hpp"
#include "tests/cli/lowered_step.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/recorded_step.hpp"

namespace stowage {

using testing::file_text;
using testing::lowered;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

namespace {

constexpr const char* four_layers = R"(model: small
inputs:
  image: {shape: [batch, 8, 16, 16]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {channels: 8, kernel: 3, padding: 1}
  - relu
  - conv2d: {channels: 8, kernel: 3, padding: 1}
  - relu
  - conv2d: {channels: 8, kernel: 3, padding: 1}
  - relu
  - flatten
  - linear: {name: fc, features: 10}
loss:
  cross_entropy: {from: [fc, label]}
)";

/// The same step as if it had been recorded at one batch.
std::string recorded(const TemporaryFolder& folder, const std::string& step, std::int64_t batch) {
  const auto document =
      read_step(std::make_shared<const SourceText>(SourceText{step, file_text(step)}));
  REQUIRE(document);
  return folder.file("recorded.json", write_step(testing::recorded(*document, batch)));
}

void check_same(const Words& of_model, const Words& of_step, const Words& how) {
  for (const char* format : {"table", "json"}) {
    CAPTURE(format);
    const Words more = how + Words{"--format", format};
    const Outcome model = stowage_program(of_model + more);
    const Outcome step = stowage_program(of_step + more);
    CHECK(step.out == model.out);
    CHECK(step.exit_code == model.exit_code);
    CHECK_FALSE(step.out.empty());
  }
}

}  // namespace

TEST_CASE("plan answers for a step's file as for its model") {
  struct Case {
    std::string model;
    Words lowering, planning;
  };
  const TemporaryFolder folder;
  const std::string net = folder.file("small.yaml", four_layers);
  const std::vector<Case> cases{
      {net, {"--runtime", "stowage"}, {"--batch", "32", "--budget", "3MiB"}},
      {net, {"--runtime", "stowage"}, {"--batch", "32", "--budget", "1MiB"}},
      {net, {}, {"--batch", "32", "--budget", "4MiB", "--runtime", "pytorch"}},
      {"mlp",
       {"--runtime", "stowage", "--optimizer", "adam"},
       {"--batch", "64", "--gpu", "gtx-960-2gb"}},
      {"mlp",
       {"--runtime", "stowage", "--mode", "inference"},
       {"--batch", "64", "--gpu-memory", "2GiB"}},
  };
  for (const Case& c : cases) {
    const std::string step = lowered(folder, Words{c.model} + c.lowering);
    Words said_again = c.lowering;
    if (!said_again.empty() && said_again.front() == "--runtime") {
      said_again.erase(said_again.begin(), said_again.begin() + 2);
    }
    check_same(Words{"plan", c.model} + said_again, {"plan", step}, c.planning);
  }
}

TEST_CASE("a plan of a step's file is valid, runs on the host and holds no description") {
  const TemporaryFolder folder;
  const std::string net = folder.file("small.yaml", four_layers);
  const std::string step = lowered(folder, {net, "--runtime", "stowage", "--batch", "16"});
  const std::string plan = folder.file("plan.yaml", "");
  const Outcome planned = stowage_program(
      {"plan", step, "--budget", "2MiB", "--validate", "--format", "json", "-o", plan});
  INFO(planned.err);
  REQUIRE(planned.exit_code == 0);
  CHECK(planned.out.find("\"batch\": 16") != std::string::npos);
  CHECK(planned.out.find("\"host\": \"passed\"") != std::string::npos);
  const Outcome valid = stowage_program({"validate", plan, "--source"});
  INFO(valid.out);
  CHECK(valid.exit_code == 0);
  CHECK(valid.out.find("holds no description") != std::string::npos);
}

TEST_CASE("plan refuses what contradicts a step's file, by name") {
  const TemporaryFolder folder;
  const std::string step = lowered(folder, {"mlp", "--gpu", "rtx3090"});
  const auto mistake = [&](const Words& more) {
    const Outcome outcome = stowage_program(Words{"plan", step} + more);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  const std::string hint = "  leave it out, or write the step for it with stowage lower\n";
  CHECK(mistake({"--gpu", "rtx3090", "--runtime", "stowage"}) ==
        "<command line>: error: --runtime stowage: the step was made for pytorch\n" + hint);
  CHECK(mistake({"--gpu", "rtx3090", "--optimizer", "lion"}) ==
        "<command line>: error: --optimizer lion: the step was made for sgd\n" + hint);
  CHECK(mistake({"--gpu", "v100-16gb"}).find("compute capability 7.0: the step was made for 8.6") !=
        std::string::npos);
  // A budget alone names no card that could contradict.
  const std::string of_v100 = lowered(folder, {"mlp", "--gpu", "v100-16gb"});
  CHECK(stowage_program({"plan", of_v100, "--budget", "1GiB"}).exit_code == 0);
}

TEST_CASE("a step that accumulates is planned as one micro-batch, and its user is told") {
  const TemporaryFolder folder;
  const std::string step = lowered(folder, {"mlp", "--runtime", "stowage", "--accumulation", "4"});
  const Words how{"--gpu", "gtx-960-2gb", "--batch", "8"};
  const Outcome of_step = stowage_program(Words{"plan", step} + how);
  CHECK(of_step.out == stowage_program(Words{"plan", "mlp"} + how).out);
  CHECK(of_step.err.find("the step's file accumulates 4 micro-batches; the plan is of a step of "
                         "one") != std::string::npos);
}

TEST_CASE("a step recorded at one batch is answered for that batch, and refused at another") {
  const TemporaryFolder folder;
  const std::string net = folder.file("small.yaml", four_layers);
  for (const std::string runtime : {"pytorch", "stowage"}) {
    CAPTURE(runtime);
    const std::string step = recorded(folder, lowered(folder, {net, "--runtime", runtime}), 24);
    const Words of_runtime{"--runtime", runtime};
    check_same(Words{"check", net, "--batch", "24"} + of_runtime, {"check", step},
               {"--gpu", "rtx3090"});
    check_same(Words{"plan", net, "--batch", "24"} + of_runtime, {"plan", step},
               {"--gpu", "rtx3090"});
    for (const char* command : {"check", "plan"}) {
      const Outcome other = stowage_program({command, step, "--gpu", "rtx3090", "--batch", "25"});
      CHECK(other.exit_code == 2);
      CHECK(other.err ==
            "<command line>: error: --batch 25: the step was recorded at batch 24 and has no sizes "
            "at another\n");
    }
    const Outcome batch = stowage_program({"batch", step, "--gpu", "rtx3090"});
    CHECK(batch.exit_code == 2);
    CHECK(batch.err ==
          "<command line>: error: the step was recorded at batch 24 and has no sizes at another\n");
    // Half of it would be another batch: there is no proposal of micro-batches.
    const Outcome tight = stowage_program({"plan", step, "--budget", "2MiB", "--format", "json"});
    CHECK(tight.exit_code != 2);
    CHECK(tight.out.find("micro-batch-") == std::string::npos);
  }
}

TEST_CASE("batch --global-batch accumulates a step that was written for one micro-batch") {
  const TemporaryFolder folder;
  const std::string step = lowered(folder, {"mlp", "--gpu", "gtx-960-2gb"});
  check_same({"batch", "mlp"}, {"batch", step},
             {"--gpu", "gtx-960-2gb", "--global-batch", "1048576"});
}

TEST_CASE("check of a step's file that does not fit advises a plan that can be typed") {
  const TemporaryFolder folder;
  const std::string net = folder.file("small.yaml", four_layers);
  const std::string step = lowered(folder, {net, "--runtime", "stowage"});
  const Outcome outcome =
      stowage_program({"check", step, "--batch", "50000", "--gpu-memory", "2GiB"});
  CHECK(outcome.exit_code == 1);
  const std::size_t at = outcome.out.find("stowage plan " + step);
  REQUIRE(at != std::string::npos);
  const std::string line = outcome.out.substr(at, outcome.out.find('\n', at) - at);
  CHECK(line == "stowage plan " + step + " --batch 50000 --gpu-memory 2GiB");
  CHECK(testing::typed(line).exit_code == 0);
}

}  // namespace stowage
