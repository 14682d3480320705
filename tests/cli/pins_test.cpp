// plan --pin, --no-soft-placement and --log-placement, explain and diff, as a user runs them.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/lowered_step.hpp"
#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::file_text;
using testing::Outcome;
using testing::said_beside_cudnn;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

const std::string network = R"(model: small
inputs:
  image: {shape: [batch, 8, 16, 16]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: conv1, channels: 8, kernel: 3, padding: 1}
  - relu: {name: relu1}
  - conv2d: {name: conv2, channels: 8, kernel: 3, padding: 1}
  - relu: {name: relu2}
  - flatten
  - linear: {name: fc, features: 10}
loss:
  cross_entropy: {from: [fc, label]}
)";

Outcome planned(const std::string& model, const std::vector<std::string>& more) {
  std::vector<std::string> words{"plan", model, "--batch", "8", "--budget", "64MiB"};
  words.insert(words.end(), more.begin(), more.end());
  return stowage_program(words);
}

json row_of(const json& placement, const std::string& name) {
  for (const json& row : placement) {
    if (row["name"] == name) return row;
  }
  FAIL("no row ", name);
  return {};
}

}  // namespace

TEST_CASE("plan --pin: what is pinned is on the CPU, the plan runs, and the file says so") {
  const TemporaryFolder folder;
  const std::string net = folder.file("net.yaml", network);
  const std::string file = folder.path("plan.yaml");
  const Outcome plan =
      planned(net, {"--pin", "conv2.*=cpu", "--pin", "class:optimizer_state=cpu", "--optimizer",
                    "adam", "--log-placement", "--format", "json", "-o", file});
  INFO(plan.err);
  REQUIRE(plan.exit_code == 0);
  const json answer = json::parse(plan.out);
  const json forward = row_of(answer["placement"], "conv2.forward");
  CHECK(forward["device"] == "cpu");
  CHECK(forward["kind"] == "operator");
  CHECK(forward["cause"] == "pinned");
  CHECK(forward["reason"] == "pinned by 'conv2.*=cpu'");
  CHECK(row_of(answer["placement"], "conv1.forward")["cause"] == "cheaper");
  CHECK(row_of(answer["placement"], "fc.weight.exp_avg")["pin"] == "class:optimizer_state=cpu");
  CHECK(file_text(file).find("cpu 0 node conv2.forward") != std::string::npos);

  const Outcome run = stowage_program({"validate", file, "--on", "host", "--format", "json"});
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(json::parse(run.out)["ran"] == json::array({"model", "host"}));
}

TEST_CASE("pins in a description hold, and the command line goes before them") {
  const TemporaryFolder folder;
  const std::string net =
      folder.file("net.yaml", network + "pins:\n  conv*: cpu\n  conv1.*: gpu\n");
  const auto device = [&](const std::vector<std::string>& more, const std::string& node) {
    std::vector<std::string> words{"--log-placement", "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome plan = planned(net, words);
    INFO(plan.err);
    REQUIRE(plan.exit_code == 0);
    return row_of(json::parse(plan.out)["placement"], node)["device"];
  };
  CHECK(device({}, "conv1.forward") == "gpu");
  CHECK(device({}, "conv2.forward") == "cpu");
  CHECK(device({"--pin", "op:conv2d=gpu"}, "conv2.forward") == "gpu");
  // A step file holds no pins, which is said.
  const Outcome lowered = stowage_program({"lower", net, "--runtime", "stowage"});
  CHECK(lowered.err.find("the description's 'pins' are about plans") != std::string::npos);
}

TEST_CASE("a pin that fits nothing, and two that contradict, are mistakes of whoever typed them") {
  const TemporaryFolder folder;
  const std::string net = folder.file("net.yaml", network);
  const Outcome none = planned(net, {"--pin", "convv2=cpu"});
  CHECK(none.exit_code == 2);
  CHECK(said_beside_cudnn(none) ==
        "<command line>: error: the pin 'convv2=cpu' fits nothing in this step\n"
        "  did you mean 'conv2=cpu'?\n");
  const Outcome two = planned(net, {"--pin", "class:parameter=gpu", "--pin", "update.fc.bias=cpu"});
  CHECK(two.exit_code == 2);
  CHECK(two.err.find("'class:parameter=gpu' keeps 'fc.bias' on the GPU, and 'update.fc.bias', "
                     "which writes it, is on the CPU: 'update.fc.bias=cpu'") != std::string::npos);
  CHECK(planned(net, {"--pin", "conv2"}).exit_code == 2);
  CHECK(planned(net, {"--pin", "=cpu"}).exit_code == 2);
  CHECK(planned(net, {"--pin", ""}).exit_code == 2);
  CHECK(planned(net, {"--pin", "conv2=tpu"}).err.find("which is no device of a plan") !=
        std::string::npos);
  CHECK(planned(net, {"--pin", "conv2=cpu", "--pin", "conv2=gpu"}).err.find("given twice") !=
        std::string::npos);
  const std::string described = folder.file("pinned.yaml", network + "pins: {fcc: cpu}\n");
  const Outcome placed = planned(described, {});
  CHECK(placed.exit_code == 2);
  CHECK(placed.err.find("pinned.yaml:14:8: error: the pin 'fcc=cpu' fits nothing") !=
        std::string::npos);
}

TEST_CASE("a kernel that no GPU has is softly placed, or an error") {
  const TemporaryFolder folder;
  const std::string net = folder.file("net.yaml", network);
  const Outcome lowered = stowage_program({"lower", net, "--runtime", "stowage"});
  REQUIRE(lowered.exit_code == 0);
  json step = json::parse(lowered.out);
  for (json& node : step["step"]["nodes"]) {
    if (node[0] != "relu1.forward") continue;
    json attributes = step["attributes"][node[5].get<std::size_t>()];
    attributes["gpu_kernel"] = false;
    node[5] = step["attributes"].size();
    step["attributes"].push_back(attributes);
  }
  const std::string file = folder.file("step.json", step.dump());
  const Outcome soft = planned(file, {"--log-placement", "--format", "json"});
  INFO(soft.err);
  REQUIRE(soft.exit_code == 0);
  CHECK(soft.err.find("note: 'relu1.forward' has no GPU kernel, so soft placement puts it on the "
                      "CPU: the step says that relu_forward has none") != std::string::npos);
  const json row = row_of(json::parse(soft.out)["placement"], "relu1.forward");
  CHECK(row["device"] == "cpu");
  CHECK(row["cause"] == "no GPU kernel");

  const Outcome hard = planned(file, {"--no-soft-placement"});
  CHECK(hard.exit_code == 2);
  CHECK(hard.err.find("error: 'relu1.forward' has no GPU kernel: the step says that relu_forward "
                      "has none") != std::string::npos);
  CHECK(planned(file, {"--no-soft-placement", "--pin", "relu1=cpu"}).exit_code == 0);
}

TEST_CASE("explain: a layer, a kernel, a variable, and what is none of these") {
  const TemporaryFolder folder;
  const std::string net = folder.file("net.yaml", network);
  const std::string file = folder.path("plan.yaml");
  REQUIRE(planned(net, {"-o", file}).exit_code == 0);
  const Outcome layer = stowage_program({"explain", file, "conv1"});
  CHECK(layer.exit_code == 0);
  CHECK(layer.out.find("conv1.backward.filter") != std::string::npos);
  CHECK(layer.out.find("update.conv1.weight") != std::string::npos);
  CHECK(layer.out.find("conv2") == std::string::npos);
  CHECK(layer.out.find("on the CPU") != std::string::npos);

  const json kernel =
      json::parse(stowage_program({"explain", file, "conv1.forward", "--format", "json"}).out);
  CHECK(kernel["placement"].size() == 1);
  REQUIRE(kernel["alternatives"].size() == 2);
  CHECK(kernel["alternatives"][0]["alternative"] == "as planned");
  CHECK(kernel["alternatives"][0]["added_seconds"] == 0.0);
  CHECK(kernel["alternatives"][1]["alternative"] == "on the CPU");
  CHECK(kernel["alternatives"][1]["added_seconds"].get<double>() > 0);

  const json variable =
      json::parse(stowage_program({"explain", file, "fc.weight", "--format", "json"}).out);
  CHECK(variable["placement"][0]["kind"] == "variable");
  CHECK(variable["alternatives"][1]["alternative"] == "swapped between uses");

  const Outcome unknown = stowage_program({"explain", file, "conv1.forwrad"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err ==
        "<command line>: error: nothing in this plan is called 'conv1.forwrad'\n"
        "  did you mean 'conv1.forward'?\n");
  CHECK(stowage_program({"explain", net, "conv1"}).exit_code == 2);
  CHECK(stowage_program({"explain", file}).exit_code == 2);
}

TEST_CASE("diff: what moved, and nothing where nothing has") {
  const TemporaryFolder folder;
  const std::string net = folder.file("net.yaml", network);
  const std::string a = folder.path("a.yaml"), b = folder.path("b.yaml"), c = folder.path("c.yaml");
  REQUIRE(planned(net, {"-o", a}).exit_code == 0);
  REQUIRE(planned(net, {"-o", b, "--pin", "conv2.*=cpu"}).exit_code == 0);
  REQUIRE(planned(net, {"-o", c, "--optimizer", "adam"}).exit_code == 0);
  const Outcome same = stowage_program({"diff", a, a});
  CHECK(same.exit_code == 0);
  CHECK(same.out.find("nothing has moved") != std::string::npos);

  const json moved = json::parse(stowage_program({"diff", a, b, "--format", "json"}).out);
  CHECK(moved["same_step"] == true);
  bool found = false;
  for (const json& node : moved["nodes"]) {
    if (node["name"] != "conv2.forward") continue;
    found = node["before"]["device"] == "gpu" && node["after"]["device"] == "cpu";
  }
  CHECK(found);
  CHECK(moved["after"]["h2d_bytes"] > moved["before"]["h2d_bytes"]);
  const Outcome listed = stowage_program({"diff", a, b, "--format", "csv"});
  CHECK(listed.out.starts_with("kind,before,after,h2d_bytes_before,"));

  const Outcome other = stowage_program({"diff", a, c});
  CHECK(other.exit_code == 0);
  CHECK(other.err.find("note: the plans are of different steps, compared by name") !=
        std::string::npos);
  CHECK(stowage_program({"diff", "-", "-"}).exit_code == 2);
  CHECK(stowage_program({"diff", a, folder.path("none.yaml")}).exit_code == 2);
}

}  // namespace stowage
