// What check tries and advises where not even a batch of 1 fits.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::typed;

namespace {

json answer_of(const std::string& line) { return json::parse(typed(line + " --format json").out); }

/// Each change's advice, typed as printed, takes what is said of the change.
void check_advice(const json& answer) {
  const json& changes = answer["changes"];
  CHECK(changes["batch"] == 1);
  CHECK(changes["tried"].get<int>() <= 30);
  REQUIRE(!changes["smaller"].empty());
  for (const json& change : changes["smaller"]) {
    CAPTURE(change["advice"]);
    const json changed = answer_of(change["advice"]);
    CHECK(changed["device_bytes"] == change["device_bytes"]);
    CHECK((changed["verdict"] == "fits") == change["fits"].get<bool>());
    CHECK(change["device_bytes"] < answer["device_bytes"]);
  }
}

}  // namespace

TEST_CASE("where no batch fits, each change that is named has been tried and takes what is said") {
  const json answer =
      answer_of("stowage check gpt2 --gpu-memory 2GiB --bf16 --optim adamw_torch --batch 1");
  check_advice(answer);
  // None fits alone, several together do.
  const json& changes = answer["changes"]["smaller"];
  for (std::size_t i = 0; i + 1 < changes.size(); ++i) CHECK(changes[i]["fits"] == false);
  CHECK(changes.back()["fits"] == true);
  CHECK(changes.back()["settings"].size() > 1);
}

TEST_CASE("of several changes that fit together each one is needed") {
  const std::string asked =
      "stowage check llama-3.2-1b --gpu-memory 4GiB --optimizer adamw --seq 512";
  const json answer = answer_of(asked);
  check_advice(answer);
  const json& several = answer["changes"]["smaller"].back();
  REQUIRE(several["fits"] == true);
  REQUIRE(several["settings"].size() > 2);
  for (const auto& [left_out, unused] : several["settings"].items()) {
    std::string line = asked + " --batch 1";
    for (const auto& [setting, value] : several["settings"].items()) {
      if (setting == left_out) continue;
      std::string option = setting;
      std::ranges::replace(option, '_', '-');
      line += " --" + option + (value == "" ? "" : "=" + value.get<std::string>());
    }
    CAPTURE(line);
    CHECK(typed(line).exit_code != 0);
  }
}

TEST_CASE("changes are tried cheapest first, until three fit") {
  const json answer =
      answer_of("stowage check gpt2 --gpu-memory 3600MiB --optimizer adamw --runtime pytorch");
  check_advice(answer);
  int fitting = 0;
  for (const json& change : answer["changes"]["smaller"]) {
    fitting += change["fits"].get<bool>() ? 1 : 0;
    CHECK(change["settings"].size() <= 2);
  }
  CHECK(fitting == 3);
  CHECK(answer["changes"]["smaller"][0]["settings"] == json{{"checkpoint", "all"}});
}

TEST_CASE(
    "the verdict says whose kernels it speaks of, and the first change that fits is advised") {
  const Outcome outcome =
      stowage_program({"check", "gpt2", "--gpu-memory", "3600MiB", "--optimizer", "adamw"});
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.out.find("\ndoes not fit with PyTorch's kernels: ") != std::string::npos);
  CHECK(outcome.out.find("\n  not even a batch of 1 fits\n  of ") != std::string::npos);
  CHECK(outcome.out.find("  it fits with --checkpoint all: stowage check gpt2 --batch 1 "
                         "--gpu-memory 3600MiB --optimizer adamw --checkpoint all\n") !=
        std::string::npos);
  CHECK(outcome.out.find("\n  it may run with part of it on the host: "
                         "stowage plan gpt2 ") != std::string::npos);
}

TEST_CASE("nothing is tried where a batch fits, nor of a model that came through a pipe") {
  const json fitting = answer_of("stowage check gpt2 --gpu t4 --batch 1000");
  CHECK(fitting["largest_batch"] > 0);
  CHECK(!fitting.contains("changes"));
  const std::string net =
      "model: net\ninputs: {x: {shape: [batch, 4000]}, y: {shape: [batch, 40000]}}\nlayers:\n"
      "  - linear: {name: fc, from: x, features: 40000}\nloss: {mse: {from: [fc, y]}}\n";
  const Outcome piped = stowage_program(
      {"check", "-", "--gpu-memory", "600MiB", "--optimizer", "adam", "--format=json"},
      {.input = net});
  const json answer = json::parse(piped.out);
  CHECK(answer["verdict"] == "does_not_fit");
  CHECK(!answer.contains("changes"));
}

}  // namespace stowage
