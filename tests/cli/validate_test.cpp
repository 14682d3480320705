// validate as a user runs it: several plans, what a GPU would be given, and times that go back into
// plan.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {
namespace {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;

constexpr const char* validated_net = R"(model: net
inputs:
  image: {shape: [batch, 3, 16, 16]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {channels: 16, kernel: 3, padding: 1}
  - batch_norm
  - relu
  - conv2d: {channels: 16, kernel: 3, padding: 1}
  - relu
  - flatten
  - linear: {name: head, features: 10}
loss:
  cross_entropy: {from: [head, label]}
)";

std::string planned_net(const testing::TemporaryFolder& folder, const std::string& name,
                        std::vector<std::string> more = {}) {
  std::string path = folder.path(name);
  std::vector<std::string> words{"plan", "-", "--batch", "8", "--budget", "60%", "-o", path};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = stowage_program(words, {.input = validated_net});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return path;
}

json answer_of(const Outcome& outcome) { return json::parse(outcome.out); }

}  // namespace

TEST_CASE("several plans are validated one after the other, each with its own report") {
  const testing::TemporaryFolder folder;
  const std::string a = planned_net(folder, "a.yaml"),
                    b = planned_net(folder, "b.yaml", {"--effort", "2"});
  const Outcome outcome = stowage_program({"validate", a, b, "--format", "json"});
  CHECK(outcome.exit_code == 0);
  const json answer = answer_of(outcome);
  REQUIRE(answer["plans"].size() == 2);
  CHECK(answer["plans"][0]["file"] == a);
  CHECK(answer["plans"][1]["file"] == b);
  for (const json& plan : answer["plans"]) {
    CHECK(plan["ran"] == json({"model", "host"}));
    CHECK(plan["measured"]["lanes"]["step"]["seconds"] > 0);
  }
  const json alone = answer_of(stowage_program({"validate", a, "--format", "json"}));
  CHECK_FALSE(alone.contains("plans"));
  CHECK(alone["ran"] == json({"model", "host"}));

  const Outcome listed = stowage_program({"validate", a, b, "--model-only", "--format", "csv"});
  CHECK(listed.out.substr(0, listed.out.find('\n')) == "plan,passed,on,name,detail");
}

TEST_CASE("of several plans all are read before one runs, and the worst decides the exit code") {
  const testing::TemporaryFolder folder;
  const std::string good = planned_net(folder, "good.yaml");
  const std::string broken = folder.file("broken.yaml", "stowage_plan: 3\n---\n---\n");
  const Outcome unread = stowage_program({"validate", good, broken, folder.path("none.yaml")});
  CHECK(unread.exit_code == 2);
  CHECK(unread.out.empty());
  CHECK(unread.err.find("this program reads plans of format 2") != std::string::npos);
  CHECK(unread.err.find("none.yaml") != std::string::npos);

  std::string text = testing::file_text(good);
  const std::string figure = "cost_seconds: ";
  text.insert(text.find("\n  " + figure) + 3 + figure.size(), "9");
  const std::string tampered = folder.file("tampered.yaml", text);
  CHECK(stowage_program({"validate", good, tampered, "--model-only"}).exit_code == 1);
  CHECK(stowage_program({"validate", "-", "-"}).err ==
        "<command line>: error: only one plan can come from stdin\n");
}

TEST_CASE("without a GPU validate says what one would be given") {
  const testing::TemporaryFolder folder;
  const std::string path = planned_net(folder, "plan.yaml", {"--placement", "activations"});
  const Outcome outcome = stowage_program({"validate", path, "--on", "cuda", "--format", "json"});
  if (outcome.exit_code != 3) {
    MESSAGE("there is a GPU");
    return;
  }
  const json wanted = answer_of(outcome)["would_run"];
  CHECK(wanted["cudnn_kernels"] == 5);   // of two convolutions; no gradient of the image
  CHECK(wanted["cublas_kernels"] == 3);  // of one linear layer
  CHECK(wanted["own_kernels"] > 5);
  CHECK(wanted["missing"].empty());
  CHECK(wanted["h2d_bytes"] > 0);
  CHECK(wanted["arena_bytes"] > 0);
  const Outcome told = stowage_program({"validate", path, "--on", "cuda"});
  CHECK(told.out.find("A machine with a GPU would run of each step:") != std::string::npos);
  CHECK(told.out.find("3 of cuBLAS, 5 of cuDNN") != std::string::npos);
}

TEST_CASE("what a run took is written, and planned with") {
  const testing::TemporaryFolder folder;
  const std::string plan = planned_net(folder, "s.yaml"), here = folder.path("here.yaml");
  const Outcome run =
      stowage_program({"validate", plan, "--steps", "3", "--write-calibration", here});
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("its times are written to " + here + "; plan takes them as --calibration") !=
        std::string::npos);
  const Outcome noted =
      stowage_program({"plan", "-", "--batch", "8", "--budget", "60%", "--calibration", here},
                      {.input = validated_net});
  CHECK(noted.err.find("an RTX 3090's rates") == std::string::npos);
  const std::string again = planned_net(folder, "t.yaml", {"--calibration", here});
  const Outcome valid = stowage_program({"validate", again, "--model-only"});
  CHECK(valid.exit_code == 0);
  const std::string text = testing::file_text(again);
  CHECK(text.find("  measured_on: \"host\"\n") != std::string::npos);
  CHECK(text.find("which stood in for the GPU") != std::string::npos);
  // The same file under another card is refused.
  const Outcome other =
      stowage_program({"plan", "-", "--batch", "8", "--gpu", "rtx3060", "--calibration", here},
                      {.input = validated_net});
  CHECK(other.exit_code == 2);
  CHECK(other.err.find("these times were measured for plans on 'generic'") != std::string::npos);
}

TEST_CASE("validate's times are held against a plan that was made with them") {
  const testing::TemporaryFolder folder;
  const std::string plan = planned_net(folder, "s.yaml"), here = folder.path("here.yaml");
  REQUIRE(
      stowage_program({"validate", plan, "--steps", "3", "--write-calibration", here}).exit_code ==
      0);
  const std::string again = planned_net(folder, "t.yaml", {"--calibration", here});
  const json answer =
      answer_of(stowage_program({"validate", again, "--steps", "4", "--format", "json"}));
  const auto checked = std::ranges::find_if(
      answer["checks"], [](const json& check) { return check["name"] == "kernel seconds"; });
  REQUIRE(checked != answer["checks"].end());  // how it ends is this machine's to say
  CHECK((*checked)["detail"].get<std::string>().find(" s planned") != std::string::npos);
  // Of a plan at the rates of a card nothing is compared.
  const json plain = answer_of(stowage_program({"validate", plan, "--format", "json"}));
  for (const json& check : plain["checks"]) CHECK(check["name"] != "kernel seconds");
}

TEST_CASE("mistakes of validate's command line are told") {
  const testing::TemporaryFolder folder;
  const std::string plan = planned_net(folder, "s.yaml");
  CHECK(stowage_program({"validate", plan, "--model-only", "--write-calibration", "x"}).err ==
        "<command line>: error: --model-only runs nothing, but --write-calibration asks for a "
        "run\n");
  CHECK(stowage_program({"validate", plan, plan, "--write-calibration", "x"}).err ==
        "<command line>: error: --write-calibration is of one plan\n");
  CHECK(stowage_program({"validate"}).exit_code == 2);
  CHECK(stowage_program({"explain", plan, "a", "b"}).err ==
        "<command line>: error: 'b' is one argument too many\n");
}

}  // namespace stowage
