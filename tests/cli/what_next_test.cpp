// What `plan` says at its end: the commands that take the plan, each of which works.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

/// The forms that the plan is said to be exported to, once each command has been run.
std::vector<std::string> forms_that_work(std::vector<std::string> words) {
  const TemporaryFolder folder;
  const std::string file = folder.path("the plan.yaml");
  words.insert(words.begin(), "plan");
  words.insert(words.end(), {"-o", file, "--format", "json", "--no-cache"});
  const Outcome made = stowage_program(words);
  REQUIRE_MESSAGE(made.exit_code == 0, made.err);
  const json next = json::parse(made.out)["next"];
  const Outcome recounted = testing::typed(next["validate"]);
  CHECK_MESSAGE(recounted.exit_code == 0, recounted.err);
  for (const json& form : next["exports"]) {
    const Outcome exported =
        stowage_program({"export", file, "--to", form.get<std::string>(), "--format", "json"});
    CHECK_MESSAGE((exported.exit_code == 0 || exported.exit_code == 1), exported.err);
  }
  return next["exports"];
}

}  // namespace

TEST_SUITE_BEGIN("what-next");

TEST_CASE("a plan says which commands take it, and they do") {
  using Forms = std::vector<std::string>;
  CHECK(forms_that_work({"mnist-cnn", "--batch", "4", "--budget", "8MiB"}) ==
        Forms{"tensorflow", "json", "dot"});
  CHECK(forms_that_work({"mnist-cnn", "--batch", "4", "--budget", "8MiB", "--mode", "inference"}) ==
        Forms{"accelerate", "tensorflow", "json", "dot"});
  CHECK(forms_that_work({"mnist-cnn", "--batch", "4", "--budget", "8MiB", "--runtime",
                         "pytorch"}) == Forms{"tensorflow", "json", "dot"});
  const Forms served = forms_that_work({"llama-3.2-1b", "--set", "layers=2", "--precision", "bf16",
                                        "--context-length", "512", "--gpu-memory", "8GiB"});
  CHECK(served.front() == "llama.cpp");
}

TEST_CASE("the commands are the last lines, to be typed as they stand") {
  const TemporaryFolder folder;
  const std::string file = folder.path("m.yaml");
  const Outcome made =
      stowage_program({"plan", "mnist-cnn", "--batch", "4", "--budget", "8MiB", "-o", file});
  REQUIRE(made.exit_code == 0);
  CHECK(
      made.out.ends_with(fmt::format("is written to {0}\n"
                                     "  stowage validate {0}\n"
                                     "  stowage export {0} --to tensorflow; also json, dot\n",
                                     file)));
}

TEST_SUITE_END();

}  // namespace stowage
