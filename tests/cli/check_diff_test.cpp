// diff of two checks, as a user runs it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

json answer_of(std::vector<std::string> words) {
  words.insert(words.end(), {"--format", "json"});
  return json::parse(stowage_program(words).out);
}

std::string refusal(const std::vector<std::string>& words) {
  const Outcome outcome = stowage_program(words);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  return outcome.err;
}

}  // namespace

TEST_CASE("diff of two models: both are as check has them, and add up by class and by layer") {
  const json found = answer_of({"diff", "resnet18", "resnet34", "--gpu", "t4", "--batch", "8"});
  const json before = answer_of({"check", "resnet18", "--gpu", "t4", "--batch", "8"});
  const json after = answer_of({"check", "resnet34", "--gpu", "t4", "--batch", "8"});
  CHECK(found["before"]["device_bytes"] == before["device_bytes"]);
  CHECK(found["after"]["device_bytes"] == after["device_bytes"]);
  CHECK(found["after"]["settings"] == after["settings"]);
  CHECK(found["verdict"] == after["verdict"]);
  CHECK(found["added_bytes"].get<std::int64_t>() ==
        after["device_bytes"].get<std::int64_t>() - before["device_bytes"].get<std::int64_t>());
  std::int64_t first = 0;
  std::int64_t second = 0;
  for (const json& change : found["classes"]) {
    CHECK(change["before_bytes"] == before["footprint"][change["class"].get<std::string>()]);
    first += change["before_bytes"].get<std::int64_t>();
    second += change["after_bytes"].get<std::int64_t>();
  }
  CHECK(first == before["peak"]["tensor_bytes"]);
  CHECK(second == after["peak"]["tensor_bytes"]);
  std::int64_t by_layer = 0;
  std::int64_t smallest = first + second;
  for (const json& change : found["layers"]) {
    const std::int64_t added =
        change["after_bytes"].get<std::int64_t>() - change["before_bytes"].get<std::int64_t>();
    CHECK(added != 0);
    CHECK(std::abs(added) <= smallest);  // the largest difference first
    smallest = std::abs(added);
    by_layer += added;
  }
  CHECK(by_layer == second - first);
}

TEST_CASE("diff of one model with a change is that of the command lines written out") {
  const json found = answer_of({"diff", "gpt2", "--gpu", "rtx3090", "--batch", "2", "--change",
                                "precision=amp-bf16", "--change", "checkpoint=all"});
  const json after = answer_of({"check", "gpt2", "--gpu", "rtx3090", "--batch", "2", "--precision",
                                "amp-bf16", "--checkpoint", "all"});
  CHECK(found["after"]["device_bytes"] == after["device_bytes"]);
  CHECK(found["after"]["settings"]["precision"] == "amp-bf16");
  CHECK(found["before"]["settings"]["precision"] == "fp32");
  // A name as settings have it; an option that is left out; a flag.
  const json left_out =
      answer_of({"diff", "gpt2", "--gpu", "rtx3090", "--in-use", "1GiB", "--deterministic",
                 "--change", "in_use=", "--change", "deterministic="});
  CHECK(left_out["after"]["headroom_bytes"].get<std::int64_t>() -
            left_out["before"]["headroom_bytes"].get<std::int64_t>() >=
        std::int64_t{1} << 30);
  CHECK(left_out["before"]["settings"]["deterministic"] == true);
  CHECK(left_out["after"]["settings"]["deterministic"] == false);
  CHECK(answer_of({"diff", "gpt2", "--gpu", "rtx3090", "--change",
                   "deterministic=true"})["after"]["settings"]["deterministic"] == true);
}

TEST_CASE("diff of checks: text, markdown, csv, and the second step's exit code") {
  const Outcome text = stowage_program({"diff", "resnet50", "resnet101", "--gpu", "t4"});
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("before: resnet50, batch 1, training with sgd with momentum, fp32, pytorch "
                      "runtime, Tesla T4\nafter:  resnet101,") == 0);
  CHECK(text.out.find("; by block, of which --verbose shows the layers:\n") != std::string::npos);
  CHECK(text.out.find("  layer3.22\n") != std::string::npos);
  CHECK(text.out.find("\nfits: ") != std::string::npos);
  const Outcome all =
      stowage_program({"diff", "resnet50", "resnet101", "--gpu", "t4", "--verbose"});
  CHECK(all.out.find("  layer3.22.conv3\n") != std::string::npos);
  const Outcome markdown =
      stowage_program({"diff", "resnet50", "resnet101", "--gpu", "t4", "--format", "markdown"});
  CHECK(markdown.out.find("| activation |") != std::string::npos);
  const Outcome csv =
      stowage_program({"diff", "resnet50", "resnet101", "--gpu", "t4", "--format", "csv"});
  CHECK(csv.out.find("kind,before_bytes,after_bytes,name\nclass,") == 0);
  const Outcome same = stowage_program({"diff", "resnet18", "resnet18", "--gpu", "t4"});
  CHECK(same.out.find("\nit takes as much as before\n") != std::string::npos);
  const Outcome too_large =
      stowage_program({"diff", "resnet18", "--gpu", "t4", "--change", "batch=4096"});
  CHECK(too_large.exit_code == 1);
  CHECK(too_large.out.find(" more: ") != std::string::npos);
  const Outcome smaller =
      stowage_program({"diff", "resnet18", "--gpu", "t4", "--batch", "64", "--change", "batch=8"});
  CHECK(smaller.out.find(" less: ") != std::string::npos);
}

TEST_CASE("diff takes a step file, and both sides' mistakes once") {
  const TemporaryFolder folder;
  const std::string step = folder.path() + "/s.json";
  REQUIRE(stowage_program({"lower", "resnet18", "--gpu", "t4", "-o", step}).exit_code == 0);
  const json found = answer_of({"diff", step, "resnet18", "--gpu", "t4", "--batch", "8"});
  CHECK(found["added_bytes"] == 0);
  CHECK(refusal({"diff", "nosuch1", "nosuch1", "--gpu", "t4"}) ==
        "error: there is no model 'nosuch1'\n"
        "  a model is a file, '-' or one that 'stowage models' lists\n");
}

TEST_CASE("diff: what is no question") {
  CHECK(refusal({"diff", "gpt2", "--gpu", "t4"}) ==
        "<command line>: error: nothing is compared with one model\n"
        "  give a second one, or --change NAME=VALUE\n");
  CHECK(refusal({"diff", "gpt2", "bert-base"}) ==
        "<command line>: error: there is no file 'gpt2', and models are compared on a card\n"
        "  stowage diff gpt2 bert-base --gpu NAME\n");
  CHECK(refusal({"diff", "a.yaml"}) ==
        "<command line>: error: two plans are compared, and one is named\n"
        "  stowage diff BEFORE.yaml AFTER.yaml\n");
  CHECK(refusal({"diff", "a.yaml", "b.yaml", "--batch", "8"}) ==
        "<command line>: error: --batch is about two checks, and no card is named\n"
        "  --gpu NAME compares what two steps take; without options two plans are compared\n");
  CHECK(refusal({"diff", "gpt2", "--gpu", "t4", "--change", "optimiser=sgd"}) ==
        "<command line>: error: stowage check has no option '--optimiser'\n"
        "  did you mean '--optimizer'?\n");
  CHECK(refusal({"diff", "gpt2", "--gpu", "t4", "--change", "deterministic=3"}) ==
        "<command line>: error: --change deterministic=3: --deterministic takes no value\n"
        "  --change deterministic=true has it, --change deterministic= leaves it out\n");
  CHECK(refusal({"diff", "gpt2", "gpt2", "--gpu", "t4,l4"}) ==
        "<command line>: error: one model on one card is compared with another\n"
        "  stowage check has a table of several models and cards, and serving's passes\n");
  CHECK(refusal({"diff", "-", "-", "--gpu", "t4"}) ==
        "<command line>: error: both models cannot come from stdin\n");
  CHECK(refusal({"diff", "gpt2", "gpt2", "--gpu", "t4", "--mode", "inference", "--context-length",
                 "512"}) ==
        "<command line>: error: two steps are compared, and --context-length asks about serving\n"
        "  stowage check has a table of several models and cards, and serving's passes\n");
}

}  // namespace stowage
