// A step's file in place of its model: the same answers to the byte, and what contradicts it.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/lowered_step.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::file_text;
using testing::lowered;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

namespace {

void check_same(const Words& command, const std::string& model, const std::string& step,
                const Words& how) {
  for (const char* format : {"table", "json"}) {
    CAPTURE(model);
    CAPTURE(format);
    const Words more = how + Words{"--format", format};
    const Outcome of_model = stowage_program(command + Words{model} + more);
    const Outcome of_step = stowage_program(command + Words{step} + more);
    CHECK(of_step.out == of_model.out);
    CHECK(of_step.exit_code == of_model.exit_code);
    CHECK_FALSE(of_step.out.empty());
  }
}

struct Case {
  const char* model;
  Words settings;
};

const std::vector<Case> cases{
    {"resnet18", {"--gpu", "rtx3090", "--optimizer", "adam"}},
    {"gpt2", {"--gpu", "a100-80gb", "--precision", "amp-bf16", "--seq", "256"}},
    {"bert-base", {"--gpu", "rtx3090", "--mode", "inference"}},
    {"lstm-lm", {"--gpu", "v100-16gb", "--accumulation", "4"}},
    {"mlp", {"--gpu", "rtx3090", "--runtime", "stowage", "--optimizer", "momentum"}},
    {"mnist-cnn", {"--gpu", "gtx-960-2gb", "--runtime", "tensorflow"}},
};

}  // namespace

TEST_CASE("check answers for a step's file as for its model") {
  const TemporaryFolder folder;
  for (const Case& c : cases) {
    const std::string step = lowered(folder, Words{c.model} + c.settings);
    check_same({"check"}, c.model, step,
               c.settings + Words{"--batch", "8", "--verbose", "--rule-of-thumb"});
  }
}

TEST_CASE("every model's step files are answered as the model, for both kernel sets") {
  const TemporaryFolder folder;
  const Outcome listed = stowage_program({"models", "--format", "json"});
  const auto models = nlohmann::json::parse(listed.out).at("models");
  CHECK(models.size() >= 56);
  for (const auto& model : models) {
    const std::string name = model.at("name");
    CAPTURE(name);
    for (const char* runtime : {"pytorch", "stowage"}) {
      CAPTURE(runtime);
      const Words settings{"--gpu", "rtx3090", "--gpu-memory", "32TiB", "--runtime", runtime};
      const std::string step = lowered(folder, Words{name} + settings);
      const Words how = settings + Words{"--batch", "2", "--format", "json"};
      const Outcome of_model = stowage_program(Words{"check", name} + how);
      const Outcome of_step = stowage_program(Words{"check", step} + how);
      CHECK(of_model.exit_code < 2);
      CHECK(of_step.exit_code == of_model.exit_code);
      CHECK((of_step.out == of_model.out));
    }
  }
}

TEST_CASE("check --eval-batch takes the evaluation that the file has") {
  const TemporaryFolder folder;
  const std::string step = lowered(folder, {"resnet18", "--gpu", "gtx-960-2gb"});
  check_same({"check"}, "resnet18", step,
             {"--gpu", "gtx-960-2gb", "--batch", "4", "--eval-batch", "64"});
}

TEST_CASE("batch and summary answer for a step's file as for its model") {
  const TemporaryFolder folder;
  const std::string step = lowered(folder, {"mlp", "--gpu", "gtx-960-2gb"});
  check_same({"batch"}, "mlp", step, {"--gpu", "gtx-960-2gb"});
  for (const char* model : {"resnet18", "gpt2"}) {
    const std::string of_model = lowered(folder, {model, "--gpu", "rtx3090"});
    check_same({"summary"}, model, of_model, {"--verbose", "--batch", "3"});
    check_same({"summary"}, model, of_model, {});
  }
}

TEST_CASE("a step is sized at the batch that it was written with, where no other is given") {
  const TemporaryFolder folder;
  const Words settings{"--gpu", "rtx3090"};
  const std::string step = lowered(folder, Words{"mlp", "--batch", "8"} + settings);
  const Outcome as_written = stowage_program(Words{"check", step} + settings);
  CHECK(as_written.out == stowage_program(Words{"check", "mlp", "--batch", "8"} + settings).out);
  const Outcome another = stowage_program(Words{"check", step, "--batch", "16"} + settings);
  CHECK(another.out == stowage_program(Words{"check", "mlp", "--batch", "16"} + settings).out);
}

TEST_CASE("what contradicts a step's file is refused by name; what it was made for is fine") {
  const TemporaryFolder folder;
  const std::string step = lowered(
      folder, {"gpt2", "--gpu", "rtx3090", "--optimizer", "adam", "--precision", "amp-bf16"});
  const auto mistake = [&](const Words& more) {
    const Outcome outcome = stowage_program(Words{"check", step, "--gpu", "rtx3090"} + more);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  const std::string hint = "  leave it out, or write the step for it with stowage lower\n";
  const auto error = [&](const std::string& text) {
    return "<command line>: error: " + text + "\n" + hint;
  };
  CHECK(mistake({"--optimizer", "sgd"}) == error("--optimizer sgd: the step was made for adam"));
  CHECK(mistake({"--mode", "inference"}) == error("--mode inference: the step was made for train"));
  CHECK(mistake({"--precision", "fp32"}) ==
        error("--precision fp32: the step was made for amp-bf16"));
  CHECK(mistake({"--seq", "512"}) == error("--seq 512: the step was made for seq 1024"));
  CHECK(mistake({"--layout", "nhwc"}) == error("--layout nhwc: the step was made for nchw"));
  CHECK(mistake({"--runtime", "stowage"}) ==
        error("--runtime stowage: the step was made for pytorch"));
  CHECK(mistake({"--gpus", "4"}) == error("--gpus 4: the step was made for 1 GPU"));
  CHECK(mistake({"--tf32", "off"}) == error("--tf32 off: the step was made for tf32 on"));
  CHECK(mistake({"--accumulation", "2"}) ==
        error("--accumulation 2: the step was made for 1 micro-batches"));
  CHECK(mistake({"--set", "layers=3"}) ==
        "<command line>: error: --set layers: changes a description, and this is a step that was "
        "made of one\n");
  const Outcome other_card = stowage_program({"check", step, "--gpu", "h100-sxm"});
  CHECK(other_card.exit_code == 2);
  CHECK(other_card.err.find("has compute capability 9.0: the step was made for 8.6") !=
        std::string::npos);
  const Outcome again = stowage_program({"check", step, "--gpu", "rtx3090", "--optimizer", "adam",
                                         "--precision", "amp-bf16", "--mode", "train", "--seq",
                                         "1024", "--runtime", "pytorch", "--layout", "nchw"});
  CHECK(again.exit_code == stowage_program({"check", step, "--gpu", "rtx3090"}).exit_code);
  CHECK_FALSE(again.out.empty());
}

TEST_CASE("settings of PyTorch's allocator contradict another runtime's step") {
  const TemporaryFolder folder;
  const std::string step = lowered(folder, {"mlp", "--runtime", "stowage"});
  const Outcome outcome = stowage_program({"check", step, "--gpu", "rtx3090", "--alloc-conf",
                                           "expandable_segments:True", "--pytorch-version", "2.4"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err ==
        "<command line>: error: --pytorch-version is for --runtime pytorch, not for stowage\n"
        "<command line>: error: --alloc-conf is for PyTorch's allocator, not for --runtime "
        "stowage\n");
}

TEST_CASE("a step without tensors that does not fit has a culprit all the same") {
  const TemporaryFolder folder;
  const std::string step = lowered(folder, {"mlp", "--runtime", "ideal", "--mode", "inference"});
  json document = json::parse(std::ifstream(step));
  document["parameters"] = document["convolutions"] = document["layers"] = json::array();
  document["result_bytes"] = document["evaluation"] = nullptr;
  document.erase("evaluation");
  document["shapes"] = json::parse("[[0]]");
  document["layouts"] = json::parse(R"([["float32", 0]])");
  document["attributes"] = json::parse("[{}]");
  document["step"] = json::parse(R"({
    "storages": [["nothing", "activation", "transient", 0]],
    "nodes": [["idle", "idle", "forward", -1, 0, 0, [], []]],
    "saved": [], "inputs": [], "losses": [], "gradients": [], "output": [0, 0],
    "host_state_bytes": 0})");
  const std::string empty = folder.file("empty.json", document.dump());
  const Outcome outcome =
      stowage_program({"check", empty, "--gpu", "rtx3090", "--in-use", "30GiB"});
  CHECK(outcome.err == "");
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.out.find("idle needs 0 B at once\n") != std::string::npos);
}

TEST_CASE("a step's file says for which runtime the options of its process are") {
  const TemporaryFolder folder;
  const std::string tensorflow = lowered(folder, {"mlp", "--runtime", "tensorflow"});
  CHECK(stowage_program({"check", tensorflow, "--gpu", "rtx3090", "--memory-growth"}).out ==
        stowage_program(
            {"check", "mlp", "--gpu", "rtx3090", "--memory-growth", "--runtime", "tensorflow"})
            .out);
  const TemporaryFolder other;
  const std::string ideal = lowered(other, {"mlp", "--runtime", "ideal"});
  const Outcome served = stowage_program({"check", ideal, "--gpu", "rtx3090", "--runtime",
                                          "pytorch", "--alloc-conf", "expandable_segments:True"});
  CHECK(served.exit_code == 0);
  CHECK(served.err == "");
}

TEST_CASE("a step's file is planned for a runtime that plans are made for") {
  const TemporaryFolder folder;
  const std::string step = lowered(folder, {"mlp", "--runtime", "tensorflow"});
  const Outcome refused = stowage_program({"plan", step, "--gpu", "rtx3090"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err ==
        "<command line>: error: the step was made for tensorflow: a plan is made for stowage or "
        "pytorch\n  --runtime stowage plans the same kernels\n");
  CHECK(stowage_program({"plan", step, "--gpu", "rtx3090", "--runtime", "stowage"}).exit_code == 0);
}

TEST_CASE("stowage works in place, TensorFlow makes room for every result") {
  const TemporaryFolder ours, theirs;
  const std::string stowage = lowered(ours, {"vgg11", "--runtime", "stowage"});
  const std::string tensorflow = lowered(theirs, {"vgg11", "--runtime", "tensorflow"});
  CHECK(file_text(stowage).find("\n\"in_place\": true") != std::string::npos);
  CHECK(file_text(tensorflow).find("\n\"in_place\": true") == std::string::npos);
  const Outcome refused =
      stowage_program({"check", stowage, "--gpu", "rtx3090", "--runtime", "tensorflow"});
  CHECK(refused.err ==
        "<command line>: error: --runtime tensorflow: the step was made for stowage\n"
        "  leave it out, or write the step for it with stowage lower\n");
  CHECK(stowage_program({"check", tensorflow, "--gpu", "rtx3090", "--runtime", "stowage"})
            .exit_code == 0);
}

TEST_CASE("a plan without a card refuses what is about one") {
  const Outcome outcome =
      stowage_program({"plan", "mlp", "--budget", "8MiB", "--in-use", "1GiB", "--context", "1MiB"});
  CHECK(outcome.exit_code == 2);
  const std::string hint = "  --gpu NAME or --gpu-memory SIZE names one\n";
  CHECK(outcome.err ==
        "<command line>: error: --in-use is about a card, and --budget alone names none\n" + hint +
            "<command line>: error: --context is about a card, and --budget alone names none\n" +
            hint);
}

TEST_CASE("an answer as JSON says what it rests on") {
  const Outcome outcome =
      stowage_program({"check", "mlp", "--gpu-memory", "2GiB", "--format", "json"});
  const auto notes = nlohmann::json::parse(outcome.out).at("notes");
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].at("severity") == "note");
  CHECK(notes[0].at("message").get<std::string>().starts_with("taken for a generic card of 2.0"));
  const Outcome silent = stowage_program({"models", "mlp", "--format", "json"});
  CHECK(nlohmann::json::parse(silent.out).at("notes").empty());
}

TEST_CASE("a step's file is refused where a description is wanted") {
  const TemporaryFolder folder;
  const std::string step = lowered(folder, {"mlp", "--runtime", "stowage"});
  const Outcome outcome = stowage_program({"lower", step, "--gpu", "rtx3090"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err == step +
                           ": error: this is a step, and a description is wanted here\n"
                           "  stowage check, batch, summary and plan take a step's file\n");
}

TEST_CASE("lower writes to stdout where no file is named, and says for which card") {
  const Outcome outcome = stowage_program({"lower", "mlp"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.substr(0, 33) == "{\n\"format\": \"stowage-step\",\n\"vers");
  CHECK(outcome.err.find("no card was named: the step is for compute capability 8.6") !=
        std::string::npos);
}

TEST_CASE("a step of a file whose name has control characters can be read") {
  const TemporaryFolder folder;
  const std::string model =
      folder.file("n\x1b[31m\xff\xe2\x80\xae.yaml",
                  file_text(testing::source_path("/configs/models/mlp.yaml")));
  const std::string step = lowered(folder, {model, "--gpu", "rtx3090"});
  CHECK(file_text(step).find(R"(["fc1","n\\x1b[31m\\xff\\u202e.yaml:9:5"])") != std::string::npos);
  CHECK(stowage_program({"check", step, "--gpu", "rtx3090"}).exit_code == 0);
}

TEST_CASE("a description's name and source may hold anything, and its step can be read") {
  const TemporaryFolder folder;
  const std::string mlp = file_text(testing::source_path("/configs/models/mlp.yaml"));
  const std::string model =
      folder.file("net.yaml", "model: \"n\\e[31m\"\nsource: |\n  two\n  lines\n" +
                                  mlp.substr(mlp.find("arguments:")));
  const std::string step = lowered(folder, {model, "--gpu", "rtx3090"});
  CHECK(file_text(step).find(R"("model": "n\\x1b[31m")") != std::string::npos);
  CHECK(file_text(step).find(R"("source": "two\\nlines\\n")") != std::string::npos);
  CHECK(stowage_program({"check", step, "--gpu", "rtx3090"}).exit_code == 0);
  const std::string plan = folder.file("plan.yaml", "");
  const Outcome planned = stowage_program(
      {"plan", model, "--gpu", "rtx3090", "--batch", "2", "--budget", "100MiB", "-o", plan});
  CHECK(planned.exit_code == 0);
  const Outcome validated = stowage_program({"validate", plan, "--model-only"});
  INFO(validated.out);
  CHECK(validated.exit_code == 0);
}

}  // namespace stowage
