// A step's file with kernels that are none of the program's: weighed, planned, and run nowhere.
#include <doctest/doctest.h>

#include "tests/cli/program.hpp"

namespace stowage {

using testing::file_text;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

std::string lowered(const TemporaryFolder& folder, const std::string& runtime) {
  std::string path = folder.file("known.json", "");
  const Outcome outcome = stowage_program({"lower", "mlp", "--runtime", runtime, "-o", path});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return path;
}

/// The same step with relu_forward under another name.
std::string renamed(const TemporaryFolder& folder, const std::string& step,
                    const std::string& name) {
  std::string text = file_text(step);
  const std::string known = "\"relu_forward\"";
  REQUIRE(text.find(known) != std::string::npos);
  for (std::size_t at = 0; (at = text.find(known, at)) != std::string::npos;) {
    text.replace(at, known.size(), "\"" + name + "\"");
  }
  return folder.file("foreign.json", text);
}

}  // namespace

TEST_CASE("check and plan answer for a foreign kernel as for one of ours") {
  const TemporaryFolder folder;
  for (const char* const runtime : {"stowage", "pytorch"}) {
    CAPTURE(runtime);
    const std::string known = lowered(folder, runtime);
    const std::string foreign = renamed(folder, known, "triton_fused_relu");
    for (const char* const command : {"check", "plan"}) {
      const std::vector<std::string> how{"--batch", "64", "--gpu", "rtx3090", "--format", "json"};
      std::vector<std::string> of_known{command, known}, of_foreign{command, foreign};
      of_known.insert(of_known.end(), how.begin(), how.end());
      of_foreign.insert(of_foreign.end(), how.begin(), how.end());
      const Outcome outcome = stowage_program(of_foreign);
      CHECK(outcome.exit_code == 0);
      CHECK(outcome.out == stowage_program(of_known).out);
      CHECK(outcome.err.find("triton_fused_relu") == std::string::npos);
    }
  }
}

TEST_CASE("a plan with a foreign kernel is valid on paper, and a run says what it lacks") {
  const TemporaryFolder folder;
  const std::string foreign = renamed(folder, lowered(folder, "stowage"), "triton_fused_relu");
  const std::string plan = folder.file("plan.yaml", "");
  const Outcome planned =
      stowage_program({"plan", foreign, "--batch", "8", "--budget", "64MiB", "-o", plan});
  INFO(planned.err);
  REQUIRE(planned.exit_code == 0);
  CHECK(stowage_program({"validate", plan, "--model-only"}).exit_code == 0);
  const Outcome run = stowage_program({"validate", plan});
  CHECK(run.exit_code == 2);
  CHECK(run.err ==
        "error: 'relu_1.forward' calls triton_fused_relu in float32, which the host kernels do not "
        "have (not a kernel of this program)\n"
        "  its memory is planned and checked all the same\n");
}

TEST_CASE("a kernel's misspelt name gets a suggestion where its kernels are ours") {
  const TemporaryFolder folder;
  const std::string warning =
      "warning: node 'relu_1.forward' calls 'relu_forwrad', which is no kernel of this program and "
      "runs nowhere\n"
      "  did you mean 'relu_forward'?\n";
  const std::string ours = renamed(folder, lowered(folder, "stowage"), "relu_forwrad");
  const std::string plan = folder.file("plan.yaml", "");
  const Outcome check = stowage_program({"check", ours, "--batch", "8", "--gpu", "rtx3090"});
  CHECK(check.exit_code == 0);
  CHECK(check.err == warning);
  const Outcome planned =
      stowage_program({"plan", ours, "--batch", "8", "--gpu", "rtx3090", "-o", plan});
  CHECK(planned.exit_code == 0);
  CHECK(planned.err.find(warning) != std::string::npos);
  const Outcome run = stowage_program({"validate", plan});
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("(not a kernel of this program; did you mean 'relu_forward'?)") !=
        std::string::npos);
  // PyTorch has many more kernels than the table names.
  const std::string theirs = renamed(folder, lowered(folder, "pytorch"), "relu_forwrad");
  const Outcome of_theirs = stowage_program({"check", theirs, "--batch", "8", "--gpu", "rtx3090"});
  CHECK(of_theirs.exit_code == 0);
  CHECK(of_theirs.err.find("relu_forwrad") == std::string::npos);
}

// PyTorch's kernels share scratch: what one of them writes there another reads.
TEST_CASE("PyTorch's steps are planned with the scratch that kernels share") {
  const TemporaryFolder folder;
  const std::string plan = folder.path("plan.yaml");
  for (const char* const model : {"lstm-lm", "unet"}) {
    for (const char* const budget : {"60%", "100%"}) {
      CAPTURE(model);
      CAPTURE(budget);
      const Outcome planned = stowage_program(
          {"plan", model, "--batch", "2", "--runtime", "pytorch", "--budget", budget, "-o", plan});
      INFO(planned.err);
      CHECK(planned.exit_code == 0);
      CHECK(stowage_program({"validate", plan, "--model-only"}).exit_code == 0);
    }
  }
}

TEST_CASE("an input that no kernel reads is in no bound on what crosses the link") {
  // The labels, of an inference; hardly any time, so that nothing is solved for the bound.
  const Outcome planned =
      stowage_program({"plan", "bert-base", "--batch", "1", "--budget", "95%", "--time-limit",
                       "0.01", "--mode", "inference", "--precision", "amp-bf16"});
  INFO(planned.err);
  CHECK(planned.exit_code == 0);
}

}  // namespace stowage
