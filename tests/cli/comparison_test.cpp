// check and batch of several cards and models, as a user runs them.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::said_beside_cudnn;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

constexpr const char* compared_dense_net = R"(model: dense
inputs:
  image: {shape: [batch, 64]}
  label: {shape: [batch], dtype: int64}
layers:
  - linear: {name: fc1, from: image, features: 256}
  - relu
  - linear: {name: fc2, features: 10}
loss:
  cross_entropy: {from: [fc2, label]}
)";

std::string with_features(const std::string& features) {
  std::string text = compared_dense_net;
  return text.replace(text.find("256"), 3, features);
}

}  // namespace

TEST_SUITE_BEGIN("comparison");

TEST_CASE("several cards make one table, in the order typed") {
  const Outcome outcome = stowage_program(
      {"check", "gpt2", "--gpu", "gtx1080ti,rtx3060,h200", "--batch", "8", "--seq", "512"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.starts_with(
      "gpt2, seq 512, training with adamw, fp32, pytorch runtime\n"
      "    Card has    Needed  At batch  Verdict  Largest batch  Recommended  Card\n"));
  const std::size_t first = outcome.out.find("GeForce GTX 1080 Ti\n");
  const std::size_t second = outcome.out.find("GeForce RTX 3060 12GB\n");
  CHECK(first < second);
  CHECK(second < outcome.out.find("H200 SXM 141GB\n"));
  CHECK(outcome.out.ends_with(
      "gpt2 fits 3 of 3 cards; the smallest is GeForce GTX 1080 Ti, 10.9 GiB\n"));
}

TEST_CASE("a row of a comparison is the answer for its card alone") {
  const Outcome table = stowage_program(
      {"batch", "gpt2", "--gpu", "all", "--format", "json", "--seq", "256", "--margin", "1GiB"});
  CHECK(table.exit_code == 0);
  const json rows = json::parse(table.out)["rows"];
  CHECK(rows.size() > 200);
  for (std::size_t i = 3; i < rows.size(); i += 60) {
    const json& row = rows[i];
    const std::string name = row["device"]["name"];
    CAPTURE(name);
    const Outcome one = stowage_program(
        {"batch", "gpt2", "--gpu", name, "--format", "json", "--seq", "256", "--margin", "1GiB"});
    const json alone = json::parse(one.out);
    CHECK(row["largest"] == alone["largest"]);
    CHECK(row["recommended"] == alone["recommended"]);
    if (alone["recommended"] == 0) continue;
    CHECK(row["needed_bytes"] == alone["recommended_device_bytes"]);
  }
}

TEST_CASE("so it is where the recommended batch hangs on engines that want much at some batches") {
  const std::vector<std::string> cards{"940m", "gtx-1060-3gb"};
  const json rows = json::parse(
      stowage_program({"batch", "alexnet", "--gpu", "940m,gtx-1060-3gb", "--format", "json"})
          .out)["rows"];
  REQUIRE(rows.size() == cards.size());
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const json alone = json::parse(
        stowage_program({"batch", "alexnet", "--gpu", cards[i], "--format", "json"}).out);
    CHECK(rows[i]["largest"] == alone["largest"]);
    CHECK(rows[i]["recommended"] == alone["recommended"]);
  }
}

TEST_CASE("a margin that no batch leaves is told under the table") {
  const auto said = [](const char* cards, const char* margin) {
    return stowage_program({"batch", "gpt2", "--gpu", cards, "--seq", "256", "--margin", margin})
        .out;
  };
  CHECK(said("rtx3090,rtx3060,h200", "100GiB")
            .find("\non GeForce RTX 3090 and in 1 more row no batch leaves the margin: the "
                  "recommended one leaves less\n") != std::string::npos);
  CHECK(said("rtx3090,h200", "100GiB").find("\non GeForce RTX 3090 no batch leaves the margin: ") !=
        std::string::npos);
  CHECK(said("rtx3090,h200", "1GiB").find("leaves the margin") == std::string::npos);
}

TEST_CASE("the exit code says whether every model has a card") {
  const TemporaryFolder folder;
  const std::string small = folder.file("small.yaml", compared_dense_net);
  const std::string large = folder.file("wide.yaml", with_features("90000000"));
  const std::vector<std::string> cards{"--gpu", "gtx1080ti,rtx3090", "--format", "csv"};
  const auto checked = [&](std::vector<std::string> models) {
    models.insert(models.begin(), "check");
    models.insert(models.end(), cards.begin(), cards.end());
    return stowage_program(models);
  };
  CHECK(checked({small}).exit_code == 0);
  CHECK(checked({large}).exit_code == 1);
  CHECK(checked({small, large}).exit_code == 1);
  const Outcome spoilt = checked({small, "no-such-model"});
  CHECK(spoilt.exit_code == 2);
  CHECK(said_beside_cudnn(spoilt) ==
        "error: there is no model 'no-such-model'\n"
        "  a model is a file, '-' or one that 'stowage models' lists\n");
  CHECK(spoilt.out.find(",fits,") != std::string::npos);
  CHECK(spoilt.out.find("\n,,,,no answer,,,,no-such-model\n") != std::string::npos);
}

TEST_CASE("a folder stands for the models in it, mistakes of one beside the answers of others") {
  const TemporaryFolder folder;
  const std::string good = folder.file("a.yaml", compared_dense_net);
  const std::string bad = folder.file("b.yaml", "model: b\nlayers: 5\n");
  (void)folder.file("notes.txt", "no model");
  const Outcome outcome =
      stowage_program({"check", folder.path(), "--gpu", "rtx3090", "--format", "json"});
  CHECK(outcome.exit_code == 2);
  const json rows = json::parse(outcome.out)["rows"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["model"] == good);
  CHECK(rows[0]["verdict"] == "fits");
  CHECK(rows[1]["model"] == bad);
  CHECK(rows[1]["verdict"] == "no answer");
  CHECK(rows[1]["mistakes"][0]["file"] == bad);
}

TEST_CASE("a served model's table says what both passes need of each card") {
  const std::vector<std::string> words{"check",   "gpt2", "--context-length", "512",
                                       "--users", "4",    "--no-cache"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return stowage_program(more);
  };
  const Outcome table = with({"--gpu", "gtx1080ti,h200"});
  CHECK(table.exit_code == 0);
  CHECK(
      table.out.starts_with("serving, users 4, context length 512, paged cache, pytorch runtime\n"
                            "    Card has"));
  CHECK(table.out.find("At users") != std::string::npos);
  CHECK(table.out.find("Largest") == std::string::npos);
  const json rows = json::parse(with({"--gpu", "gtx1080ti,h200", "--format", "json"}).out)["rows"];
  REQUIRE(rows.size() == 2);
  for (const json& row : rows) {
    const std::string name = row["device"]["name"];
    const json alone = json::parse(with({"--gpu", name, "--format", "json"}).out);
    CHECK(row["needed_bytes"] == alone["serving"]["device_bytes"]);
    CHECK(row["fits"] == alone["fits"]);
    CHECK(row["needed_at_users"] == 4);
    CHECK_FALSE(row.contains("largest"));
  }
}

TEST_CASE("a table of the largest users, context or sequence names what a card alone does") {
  const auto both_agree = [](const std::string& of, std::vector<std::string> words,
                             const std::string& model = "gpt2",
                             const std::string& cards = "gtx-960-2gb,gtx1080ti,rtx3060") {
    words.insert(words.begin(), {"batch", model, "--of", of, "--format", "json", "--no-cache"});
    std::vector<std::string> several = words;
    several.insert(several.end(), {"--gpu", cards});
    const Outcome table = stowage_program(several);
    CHECK(table.exit_code == 0);
    const json rows = json::parse(table.out)["rows"];
    CHECK(rows.size() == 3);
    for (const json& row : rows) {
      std::vector<std::string> one = words;
      one.insert(one.end(), {"--gpu", row["device"]["name"]});
      const json alone = json::parse(stowage_program(one).out);
      CHECK(row["largest"] == alone["largest"]);
      CHECK(row["recommended"] == alone["recommended"]);
      if (row["recommended"] == 0) continue;
      CHECK(row["needed_bytes"] == alone["recommended_device_bytes"]);
    }
  };
  both_agree("users", {"--context-length", "256"});
  both_agree("context-length", {"--users", "40"});
  both_agree("seq", {"--at-batch", "4"});
  // A cache that grows by blocks, and one whose layers have windows and whole contexts by turns.
  both_agree("context-length", {"--kv-dtype", "fp8", "--precision", "bf16"},
             testing::source_path("/tests/hf/llama-3.2-1b/config.json"), "rtx3060,h200,rtx4090");
  both_agree("context-length", {"--users", "8", "--precision", "bf16"},
             testing::source_path("/tests/hf/gemma-2-2b/config.json"), "rtx3060,h200,rtx4090");
}

TEST_CASE("a model of a folder that serves no cache has a row that says so") {
  const TemporaryFolder folder;
  (void)folder.file("dense.yaml", compared_dense_net);
  const Outcome outcome =
      stowage_program({"check", folder.path(), "--gpu", "rtx3090,h200", "--context-length", "64"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err.find("model 'dense' has no symbol 'seq', so that its context has no length") !=
        std::string::npos);
  CHECK(outcome.out.find("no answer") != std::string::npos);
}

TEST_CASE("what means one card or one model is refused with several") {
  const auto said = [](const std::vector<std::string>& words) {
    const Outcome outcome = stowage_program(words);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK(said({"check", "gpt2", "--gpu", "rtx3090,,h200"}) ==
        "<command line>: error: --gpu rtx3090,,h200: '' cannot stand in a list of cards\n");
  CHECK(said({"batch", "gpt2", "--gpu", "rtx3090,here"}) ==
        "<command line>: error: --gpu rtx3090,here: 'here' cannot stand in a list of cards\n");
  CHECK(said({"check", "gpt2", "--gpu", "rtx3090,GeForce RTX 3090"}) ==
        "<command line>: error: --gpu rtx3090,GeForce RTX 3090: GeForce RTX 3090 is named "
        "twice\n");
  CHECK(said({"check", "gpt2", "--gpu", "all", "--gpu-memory", "8GiB"}) ==
        "<command line>: error: --gpu-memory is of one card, and --gpu names several\n");
  CHECK(said({"check", "gpt2", "--gpu", "all", "--eval-batch", "8"}) ==
        "<command line>: error: --eval-batch is of one model on one card\n");
  CHECK(said({"batch", "gpt2", "vgg16", "--gpu", "rtx3090", "--global-batch", "8"}) ==
        "<command line>: error: --global-batch is of one model on one card\n");
  const TemporaryFolder empty;
  CHECK(said({"check", empty.path(), "--gpu", "rtx3090"}) ==
        "<command line>: error: the folder '" + empty.path() +
            "' has no model\n"
            "  models in a folder end in .yaml, .yml, .json or .onnx, or are folders with a "
            "config.json\n");
  const TemporaryFolder weights;
  (void)weights.file("model.safetensors", "");
  CHECK(said({"check", weights.path(), "--gpu", "rtx3090"}) ==
        "<command line>: error: the folder '" + weights.path() +
            "' has weights, and no config.json that says of what network\n"
            "  `stowage summary` prints what is in them\n");
  const TemporaryFolder adapters;
  (void)adapters.file("adapter_config.json",
                      R"({"peft_type": "LORA", "base_model_name_or_path": "org/base", "r": 8,
                          "target_modules": ["q_proj"]})");
  CHECK(said({"check", adapters.path(), "--gpu", "rtx3090"}) ==
        "error: '" + adapters.path() +
            "' holds adapters of peft's kind LORA, and no network\n"
            "  name the model that they belong to, hf:org/base, and give --lora "
            "r=8,targets=q_proj\n");
}

TEST_CASE("of more pairs than cuDNN is asked about all are by the documented rule") {
  const Outcome few =
      stowage_program({"check", "mnist-cnn", "--gpu", "gtx1080ti,gtx-960-2gb", "--format", "json"});
  CHECK(few.err.find("documented rule") == std::string::npos);
  const Outcome many = stowage_program({"check", "mnist-cnn", "--gpu", "all", "--format", "json"});
  CHECK(many.err.find("note: workspaces are by the documented rule: cuDNN is asked about 8 pairs "
                      "of a model and a card at most, and these are ") != std::string::npos);
  const json shown = json::parse(many.out);
  for (const json& row : shown["rows"]) CHECK(row["workspaces"] == "rule");
}

TEST_SUITE_END();

}  // namespace stowage
