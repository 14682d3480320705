// Plans of serving as a user makes them: plan --context-length, and what takes such a plan.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

/// Two layers of Llama 3.2 1B, served to two users.
std::vector<std::string> planned(const std::vector<std::string>& more) {
  std::vector<std::string> words{
      "plan", "llama-3.2-1b", "--set", "layers=2",  "--precision", "bf16", "--context-length",
      "2048", "--users",      "2",     "--no-cache"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string refused(const std::vector<std::string>& more) {
  const Outcome outcome = stowage_program(planned(more));
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  return testing::said_beside_cudnn(outcome);
}

}  // namespace

TEST_SUITE_BEGIN("served-plan");

TEST_CASE("a plan of serving says its passes, decode by itself and the homes") {
  const Outcome outcome = stowage_program(planned({"--gpu-memory", "800MiB", "--format", "json"}));
  REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.err);
  const json found = json::parse(outcome.out);
  CHECK(found["verdict"] == "fits");
  CHECK(found["serving"]["context_length"] == 2048);
  CHECK(found["serving"]["users"] == 2);
  CHECK(found["serving"]["cache"] == "paged");
  CHECK(found["prefill"]["tokens_of_each"] == 2048);
  CHECK(found["decode"]["tokens_of_each"] == 1);
  CHECK(found["decode"]["cached_before"] == 2047);
  const double seconds = found["decode"]["step_seconds"];
  CHECK(seconds >= found["decode"]["step_lower_bound_seconds"].get<double>() * (1 - 1e-9));
  CHECK(found["decode"]["tokens_per_second"].get<double>() == doctest::Approx(2 / seconds));
  const json& homes = found["homes"];
  CHECK(homes["weights"]["host_bytes"] > 0);
  CHECK(homes["cache"]["gpu_bytes"].get<std::int64_t>() +
            homes["cache"]["host_bytes"].get<std::int64_t>() ==
        std::int64_t{2} * 2 * 2 * 2048 * 8 * 64 * 2);
}

TEST_CASE("a plan of serving is written, recounted, explained and exported") {
  const TemporaryFolder folder;
  const std::string plan = folder.path("l.yaml");
  const Outcome made = stowage_program(planned({"--gpu-memory", "800MiB", "-o", plan}));
  REQUIRE_MESSAGE(made.exit_code == 0, made.err);
  CHECK(made.out.find("llama-3.2-1b serving 2 users of 2,048 tokens, bf16, paged cache in blocks "
                      "of 16, pytorch kernels\n") == 0);
  CHECK(made.out.find("  The step is a pass of prefill, then one of decode. Prefill: 2,048 tokens "
                      "of one user. Decode: 1 token of 2 users, 2,047 cached before.\n") !=
        std::string::npos);
  const Outcome recounted = stowage_program({"validate", plan, "--model-only"});
  CHECK(recounted.exit_code == 0);
  CHECK(recounted.out.find("FAILED") == std::string::npos);
  const Outcome explained = stowage_program({"explain", plan, "embed_tokens"});
  CHECK(explained.exit_code == 0);
  CHECK(explained.out.find("it lies on the host in every pass") != std::string::npos);
  const Outcome exported = stowage_program({"export", plan, "--to", "llama.cpp"});
  CHECK(exported.exit_code == 0);
  CHECK(exported.out.find("# It fits: ") != std::string::npos);
  CHECK(exported.out.find("\n  -c 4096\n  -np 2\n") != std::string::npos);
}

TEST_CASE("what a plan of serving has no place for is refused") {
  CHECK(refused({"--gpu", "rtx3060", "--for", "pytorch"}) ==
        "<command line>: error: --for pytorch is of one step, and --context-length plans two "
        "passes\n  leave --for out; stowage export --to llama.cpp takes the plan\n");
  CHECK(
      refused({"--gpu", "rtx3060", "--frontier", "f.csv"}) ==
      "<command line>: error: --frontier is of one step, and --context-length plans two passes\n");
  CHECK(
      refused({"--gpu", "rtx3060", "--validate"}) ==
      "<command line>: error: --validate is of one step, and --context-length plans two passes\n");
  CHECK(refused({"--gpu", "rtx3060", "--runtime", "stowage"}) ==
        "<command line>: error: --runtime stowage serves no cache of keys and values\n"
        "  --runtime pytorch does\n");
  CHECK(refused({"--gpu", "rtx3060", "--mode", "train"}) ==
        "<command line>: error: --context-length is of inference, and --mode asks for training\n");
  CHECK(
      refused({"--gpu", "rtx3060", "--cache", "dynamic"}) ==
      "error: each step makes its cache 'layers.0.attention.cache.keys' anew, so that no plan of "
      "two passes has a place for it\n  --cache paged and static have one place for all passes\n");
  const Outcome alone = stowage_program({"plan", "resnet50", "--users", "2", "--gpu", "rtx3060"});
  CHECK(alone.exit_code == 2);
  CHECK(alone.err ==
        "<command line>: error: --users is of serving, which needs --context-length\n");
}

TEST_CASE("where no plan keeps within the budget the command that would do serves the same") {
  const Outcome none = stowage_program(
      planned({"--placement", "activations,weights", "--budget", "1MiB", "--format", "json"}));
  REQUIRE(none.exit_code == 1);
  const json found = json::parse(none.out);
  REQUIRE(found.contains("least"));
  const Outcome again = testing::typed(found["least"]["command"]);
  CHECK(again.exit_code == 0);
  CHECK(again.out.find("serving 2 users of 2,048 tokens") != std::string::npos);
}

TEST_SUITE_END();

}  // namespace stowage
