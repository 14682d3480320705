// --layout, and the settings of PyTorch's that a plan carries.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

// What follows flatten keeps a copy of it where the channels lie innermost.
constexpr const char* net = R"(model: small
inputs:
  image: {shape: [batch, 3, 16, 16]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: conv, channels: 8, kernel: 3, padding: 1}
  - relu
  - flatten
  - linear: {name: fc, features: 10}
loss:
  cross_entropy: {from: [fc, label]}
)";

json check_layout(const std::vector<std::string>& more, const std::string& text = net) {
  std::vector<std::string> words{"check",   "-",  "--gpu",        "gtx-960-2gb",
                                 "--batch", "32", "--format=json"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = stowage_program(words, {.input = text});
  INFO(outcome.err);
  REQUIRE_FALSE(outcome.out.empty());
  return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("with channels innermost a flattened image is a copy") {
  const json plain = check_layout({});
  const json last = check_layout({"--layout", "nhwc"});
  CHECK(plain["settings"]["layout"] == "nchw");
  CHECK(last["settings"]["layout"] == "nhwc");
  constexpr std::int64_t image = 32 * 8 * 16 * 16 * 4;
  const auto activations = [](const json& answer) {
    return answer["footprint"]["activation"].get<std::int64_t>();
  };
  CHECK(activations(last) == activations(plain) + image);
  // The description's is the default; the option wins.
  const std::string described = std::string(net) + "train: {layout: nhwc}\n";
  CHECK(check_layout({}, described)["peak"] == last["peak"]);
  CHECK(check_layout({"--layout", "nchw"}, described)["peak"] == plain["peak"]);
}

TEST_CASE("a layout that a runtime does not have is refused") {
  const auto refused = [](const std::string& runtime) {
    return stowage_program(
        {"check", "-", "--gpu", "gtx-960-2gb", "--runtime", runtime, "--layout", "nhwc"},
        {.input = net});
  };
  CHECK(refused("stowage").exit_code == 2);
  CHECK(refused("stowage").err ==
        "error: only PyTorch's kernels run with channels innermost (layout nhwc)\n"
        "  use --layout nchw, or use --runtime pytorch\n");
  CHECK(refused("tensorflow").exit_code == 2);
  CHECK(refused("tensorflow").err ==
        "<command line>: error: --layout nhwc is a memory format of PyTorch's; TensorFlow chooses "
        "between NHWC and NCHW by itself, and is sized with NCHW\n");
  CHECK(refused("ideal").exit_code == 0);
  const Outcome plan =
      stowage_program({"plan", "-", "--budget", "64MiB", "--layout", "nhwc"}, {.input = net});
  CHECK(plan.exit_code == 2);
}

TEST_CASE("a model without images has nothing to lay out") {
  const Outcome outcome =
      stowage_program({"check", "mlp", "--gpu", "gtx-960-2gb", "--layout", "nhwc"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.find("warning: model 'mlp' has no image and no filter to lay out as nhwc") !=
        std::string::npos);
}

TEST_CASE("a plan for PyTorch carries PyTorch's settings, and is sized by them again") {
  const Outcome plan = stowage_program(
      {"plan", "-", "--batch", "8", "--gpu-memory", "2GiB", "--runtime", "pytorch", "--layout",
       "nhwc", "--tf32", "off", "--deterministic", "--cudnn-benchmark", "-o", "-"},
      {.input = net});
  CAPTURE(plan.err);
  REQUIRE(plan.exit_code == 0);
  CHECK(plan.out.find("\n\"layout\": \"nhwc\",\n") != std::string::npos);
  CHECK(plan.out.find("\n\"tf32\": false,\n\"deterministic\": true,\n"
                      "\"cudnn_benchmark\": true,\n") != std::string::npos);
  const Outcome again = stowage_program({"validate", "-", "--model-only"}, {.input = plan.out});
  CAPTURE(again.out);
  CHECK(again.exit_code == 0);
  // Otherwise the kernels are others.
  std::string other = plan.out;
  const std::string layout = "\"layout\": \"nhwc\"";
  other.replace(other.find("\n" + layout) + 1, layout.size(), "\"layout\": \"nchw\"");
  CHECK(stowage_program({"validate", "-", "--model-only"}, {.input = other}).exit_code == 1);
}

TEST_CASE("a plan that we run ourselves does not take PyTorch's settings, but for TF32") {
  const Outcome plan =
      stowage_program({"plan", "-", "--budget", "64MiB", "--deterministic"}, {.input = net});
  CHECK(plan.exit_code == 2);
  CHECK(
      plan.err ==
      "<command line>: error: --deterministic is a setting of PyTorch's, and this plan is for our "
      "own executor\n  add --runtime pytorch\n");
  const Outcome exact = stowage_program(
      {"plan", "-", "--budget", "64MiB", "--tf32", "off", "-o", "-"}, {.input = net});
  CAPTURE(exact.err);
  REQUIRE(exact.exit_code == 0);
  CHECK(exact.out.find("\n\"tf32\": false,\n") != std::string::npos);
  CHECK(stowage_program({"validate", "-", "--on", "host"}, {.input = exact.out}).exit_code == 0);
}

}  // namespace stowage
