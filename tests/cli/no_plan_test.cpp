// Where nothing fits: the answer names what would do, and that can be typed as printed.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;

namespace {

using Line = std::vector<std::string>;

Line words_of(const std::string& line) {
  std::istringstream text(line);
  Line words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

Line line_with(Line words, const Line& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// What the refused command's answer says to type, less the program's name.
Line advised(const Line& refused, const char* member) {
  const Outcome outcome = stowage_program(line_with(refused, {"--format", "json"}));
  CAPTURE(outcome.out);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 1);
  const json answer = json::parse(outcome.out);
  REQUIRE(answer.contains(member));
  const std::string line = answer[member]["command"];
  CHECK(stowage_program(refused).out.find("\n  " + line + "\n") != std::string::npos);
  Line words = words_of(line);
  REQUIRE(words.front() == "stowage");
  words.erase(words.begin());
  return words;
}

void check_works(const Line& words) {
  const Outcome outcome = stowage_program(words);
  CAPTURE(outcome.out);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
}

}  // namespace

TEST_CASE("the least memory that would do does, for a budget, a card and a share") {
  for (const Line& refused :
       {Line{"plan", "mlp", "--batch", "64", "--budget", "100KiB", "--placement", "weights"},
        Line{"plan", "mlp", "--batch", "64", "--gpu-memory", "200MiB", "--placement", "optimizer"},
        Line{"plan", "mlp", "--batch", "64", "--gpu", "gtx-960-2gb", "--in-use", "1785MiB",
             "--placement", "recompute"},
        Line{"plan", "mlp", "--batch", "64", "--budget", "1%", "--pin", "class:parameter=gpu"},
        Line{"plan", "mnist-cnn", "--batch", "2000", "--mode", "inference", "--budget", "1KiB",
             "--placement", "activations"}}) {
    check_works(advised(refused, "least"));
  }
}

TEST_CASE("the operation that breaks the budget is named with its bytes and its items") {
  const Outcome outcome = stowage_program(
      {"plan", "mlp", "--batch", "64", "--budget", "1MiB", "--placement", "weights"});
  CHECK(outcome.exit_code == 1);
  CHECK(
      outcome.out.starts_with("no plan keeps within 1.0 MiB\n"
                              "  a budget of 1.0 MiB is below the 10.2 MiB that are on the GPU "
                              "while 'update.fc1.weight' runs: 6.1 MiB "
                              "are its own, 4.0 MiB are kept there beside it\n"
                              "    'fc2.weight.grad', which is kept on the GPU, takes 4.0 MiB\n"));
  CHECK(outcome.out.find("  the least that would do is --budget ") != std::string::npos);
}

TEST_CASE("a card without room for an arena is told which total has some") {
  const Line refused{"plan", "mlp", "--gpu-memory", "200MiB"};
  const Outcome outcome = stowage_program(refused);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.out.find("has nothing left for an arena: 200.0 MiB of CUDA total") !=
        std::string::npos);
  check_works(advised(refused, "least"));
}

TEST_CASE("a host that is too small is told how much one of the plans needs") {
  const Line refused{"plan",          "mlp",  "--batch",     "64",
                     "--budget",      "9MiB", "--placement", "optimizer,weights",
                     "--host-memory", "2MiB"};
  const Line words = advised(refused, "least_host");
  CHECK(std::ranges::find(words, "--host-memory") != words.end());
  CHECK(std::ranges::find(words, "--budget") != words.end());
  const Outcome outcome = stowage_program(words);
  CAPTURE(outcome.out);
  CHECK(outcome.exit_code == 0);
  const Outcome nothing =
      stowage_program({"plan", "mlp", "--budget", "9MiB", "--host-memory", "0"});
  CHECK(nothing.exit_code == 2);
}

}  // namespace stowage
