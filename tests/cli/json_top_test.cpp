// The JSON of a command begins alike whatever kind of question it was asked.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::source_path;
using testing::stowage_program;

namespace {

json printed_json(std::vector<std::string> words) {
  words.insert(words.end(), {"--format", "json"});
  const Outcome outcome = stowage_program(words);
  INFO(outcome.err);
  REQUIRE_FALSE(outcome.out.empty());
  return json::parse(outcome.out);
}

const std::string served_model = source_path("/tests/hf/opt-125m/config.json");

}  // namespace

TEST_CASE("every answer about a card's memory has a device, a verdict, its bytes and notes") {
  const std::vector<std::vector<std::string>> questions = {
      {"check", "mlp", "--gpu", "t4", "--batch", "8"},
      {"check", "gpt2-xl", "--gpu", "t4", "--batch", "64"},
      {"check", served_model, "--gpu", "t4", "--context-length", "64", "--users", "2"},
      {"check", "mlp", "mnist-cnn", "--gpu", "t4", "--batch", "8"},
      {"check", served_model, "--gpu", "t4,rtx3090", "--context-length", "64"},
      {"batch", "mlp", "--gpu", "t4"},
      {"batch", "gpt2", "--gpu", "t4", "--of", "seq"},
      {"batch", served_model, "--gpu", "t4", "--of", "users", "--context-length", "64"},
      {"batch", "mlp", "--gpu", "t4,rtx3090"}};
  for (const std::vector<std::string>& words : questions) {
    CAPTURE(words);
    const json answer = printed_json(words);
    for (const char* key :
         {"schema_version", "device", "verdict", "device_bytes", "headroom_bytes", "notes"}) {
      CAPTURE(key);
      CHECK(answer.contains(key));
    }
    const std::string verdict = answer["verdict"];
    CHECK((verdict == "fits" || verdict == "does_not_fit"));
    if (answer.contains("rows")) continue;  // whose devices are the rows'
    CHECK(answer["device"].contains("available_bytes"));
    CHECK(answer["headroom_bytes"] == answer["device"]["available_bytes"].get<std::int64_t>() -
                                          answer["device_bytes"].get<std::int64_t>());
    for (const char* key : {"settings", "software", "tensorflow", "theano"}) {
      CAPTURE(key);
      CHECK(answer.contains(key));
    }
  }
}

TEST_CASE("plan says its verdict, budget and choice whether there is a plan or not") {
  const json some = printed_json({"plan", "mnist-cnn", "--batch", "8", "--budget", "64MiB"});
  const json none = printed_json({"plan", "mnist-cnn", "--batch", "8", "--budget", "64KiB",
                                  "--placement", "activations,optimizer"});
  CHECK(some["verdict"] == "fits");
  CHECK(some["budget_bytes"] == 64 << 20);
  CHECK(some["chosen"].is_string());
  CHECK(none["verdict"] == "does_not_fit");
  CHECK(none["budget_bytes"] == 64 << 10);
  CHECK(none["chosen"].is_null());
  CHECK(none["plans"].empty());
}

}  // namespace stowage
