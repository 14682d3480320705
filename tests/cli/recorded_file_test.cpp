// Steps that were recorded from PyTorch are taken by the commands as lowered ones are.
#include <doctest/doctest.h>

#include <string>

#include "tests/cli/lowered_step.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

namespace {

std::string recorded_file(const std::string& name) {
  return testing::source_path("/tests/recorded/" + name + ".json");
}

/// The rows of check's answer in JSON that name no tensor.
std::string phases_of(const Words& what, const std::string& runtime) {
  const Outcome outcome = stowage_program(
      Words{"check"} + what +
      Words{"--gpu", "rtx3090", "--batch", "64", "--runtime", runtime, "--format", "json"});
  CHECK(outcome.exit_code == 0);
  const std::size_t begin = outcome.out.find("\"phases\""),
                    end = outcome.out.find("\"host_bytes\"");
  REQUIRE(end != std::string::npos);
  return outcome.out.substr(begin, end - begin);
}

}  // namespace

TEST_CASE("check says of a recorded step what it says of the description") {
  const std::string step = recorded_file("resnet18");
  for (const std::string runtime : {"ideal", "pytorch"}) {
    CAPTURE(runtime);
    CHECK(phases_of({step}, runtime) == phases_of({"resnet18", "--optimizer", "adam"}, runtime));
  }
}

TEST_CASE("batch, summary and plan take a recorded step") {
  const std::string step = recorded_file("resnet18");
  const Outcome batch = stowage_program({"batch", step, "--gpu-memory", "2GiB"});
  CHECK(batch.exit_code == 0);
  CHECK(batch.out.find("the largest batch that fits is") != std::string::npos);
  const Outcome summary = stowage_program({"summary", step, "--verbose"});
  CHECK(summary.exit_code == 0);
  CHECK(summary.out.find("11,689,512   3.652  20.6 MiB") != std::string::npos);
  const TemporaryFolder folder;
  const std::string plan = folder.file("plan.yaml", "");
  const Outcome planned =
      stowage_program({"plan", step, "--gpu", "rtx3090", "--batch", "16", "--budget", "500MiB",
                       "--runtime", "pytorch", "-o", plan});
  CHECK(planned.exit_code == 0);
  CHECK(planned.out.find("model checks passed") != std::string::npos);
  CHECK(stowage_program({"validate", plan}).exit_code == 0);
}

TEST_CASE("what contradicts a recorded step is refused with how to record another") {
  const std::string step = recorded_file("mlp");
  const Outcome outcome = stowage_program({"check", step, "--gpu", "v100-16gb"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err.find("compute capability 7.0: the step was made for 8.6\n"
                         "  leave it out, or record the step for it: python -m stowage record\n") !=
        std::string::npos);
  const Outcome split = stowage_program({"check", step, "--gpu", "rtx3090", "--accumulation", "2"});
  CHECK(split.exit_code == 2);
  CHECK(split.err.find("--accumulation 2: the step was made for 1 micro-batches") !=
        std::string::npos);
}

TEST_CASE("a recorded call that does not hang together is refused with its node's name") {
  const TemporaryFolder folder;
  std::string text = testing::file_text(recorded_file("mlp"));
  const std::string arguments = "\"arguments\":\"self,mat2\"";
  const std::size_t at = text.find(arguments);
  REQUIRE(at != std::string::npos);
  const std::string step =
      folder.file("s.json", text.replace(at, arguments.size(), "\"arguments\":\"self\""));
  const Outcome outcome = stowage_program({"check", step, "--gpu", "rtx3090"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err == step +
                           ": error: node '4.mm' calls aten::mm, whose arguments 'self' are not "
                           "the 2 tensors that it "
                           "reads\n");
}

}  // namespace stowage
