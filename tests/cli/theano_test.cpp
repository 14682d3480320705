// --runtime theano as a user runs it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

Outcome run_theano(std::vector<std::string> options) {
  std::vector<std::string> words{"check", "keras-deep-16x16", "--gpu", "gtx-960-2gb", "--batch",
                                 "1",     "--runtime",        "theano"};
  words.insert(words.end(), options.begin(), options.end());
  return stowage_program(words);
}

json theano_report(std::vector<std::string> options) {
  options.insert(options.end(), {"--format", "json"});
  return json::parse(run_theano(std::move(options)).out);
}

std::string theano_complaint(std::vector<std::string> options) {
  const Outcome outcome = run_theano(std::move(options));
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  return outcome.err;
}

constexpr std::int64_t keras_parameters = 826'152'768;

}  // namespace

TEST_CASE("the network that filled a card of 2 GB at batch 1 doubles when training starts") {
  const json keras = theano_report({});
  CHECK(keras["verdict"] == "does_not_fit");
  CHECK(keras["footprint"]["parameter"] == keras_parameters);
  CHECK(keras["footprint"]["optimizer_state"] == keras_parameters);
  // The filters' copies: all parameters but the biases and the two dense layers'.
  CHECK(keras["footprint"]["activation"].get<std::int64_t>() > 800'000'000);
  CHECK(keras["phases"][0]["tensor_bytes"].get<std::int64_t>() >= 2 * keras_parameters);
  CHECK(keras["theano"] == json{{"backend", "gpuarray"},
                                {"pool", "libgpuarray's cache"},
                                {"preallocate", 0},
                                {"allow_gc", true}});
  // Gradients go soon after they have come: never more than two of the large ones here.
  CHECK(keras["footprint"]["gradient"].get<std::int64_t>() < 80'000'000);
}

TEST_CASE("allow_gc=False keeps all gradients, and CNMeM takes its share at once") {
  // All but the last one's bias, whose gradient comes when the inputs have gone.
  const json kept = theano_report({"--theano-flags", "allow_gc=False"});
  CHECK(kept["footprint"]["gradient"] == keras_parameters - 1024);
  const Outcome outcome =
      stowage_program({"check", "mnist-cnn", "--gpu", "gtx-960-2gb", "--batch", "64", "--runtime",
                       "theano", "--theano-flags", "device=gpu,lib.cnmem=0.5", "--format", "json"});
  CHECK(outcome.exit_code == 0);
  const json share = json::parse(outcome.out);
  const std::int64_t total = share["device"]["total_bytes"];
  const std::int64_t reserved = share["peak"]["reserved_bytes"];
  CHECK(reserved >= total / 2);
  CHECK(reserved < total / 2 + 512);
}

TEST_CASE("what Keras over Theano does not have is refused") {
  CHECK(theano_complaint({"--precision", "bf16"}) ==
        "<command line>: error: --runtime theano has no bf16\n"
        "  Theano's floatX is float32, float16 or float64: --precision fp32, fp16 or fp64\n");
  CHECK(theano_complaint({"--gpus", "2", "--accumulation", "4"}) ==
        "<command line>: error: --gpus is not of --runtime theano\n"
        "<command line>: error: --accumulation is not of --runtime theano\n");
  CHECK(theano_complaint({"--memory-growth"}) ==
        "<command line>: error: --memory-growth is for --runtime tensorflow, not for theano\n");
  CHECK(theano_complaint({"--lora", "r=8,targets=dense1"}) ==
        "<command line>: error: adapters, quantised weights and checkpoints are PyTorch's, and not "
        "of --runtime theano\n");
  CHECK(theano_complaint({"--theano-flags", "lib.cnmem=much"}) ==
        "<option --theano-flags>:1:11: error: 'much' is no share of the card and no number of MiB\n"
        "  lib.cnmem=much\n"
        "            ^~~~\n"
        "  0.8 is a share, 2000 are MiB\n");
  const Outcome other =
      stowage_program({"check", "mlp", "--gpu", "gtx-960-2gb", "--theano-flags", "device=cuda"});
  CHECK(other.exit_code == 2);
  CHECK(other.err ==
        "<command line>: error: --theano-flags is for --runtime theano, not for pytorch\n");
}

TEST_CASE("a step file of another runtime is not taken for Theano's") {
  const TemporaryFolder folder;
  const std::string ours = folder.path() + "/ours.json", theirs = folder.path() + "/theirs.json";
  for (const auto& [runtime, file] : {std::pair("stowage", ours), std::pair("theano", theirs)}) {
    REQUIRE(stowage_program({"lower", "mnist-cnn", "--gpu", "gtx-960-2gb", "--runtime", runtime,
                             "--output", file})
                .exit_code == 0);
  }
  const auto checked_file = [](const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> words{"check", file, "--gpu", "gtx-960-2gb", "--batch", "8"};
    words.insert(words.end(), more.begin(), more.end());
    return stowage_program(words);
  };
  CHECK(checked_file(theirs, {}).exit_code == 0);
  CHECK(checked_file(ours, {"--runtime", "theano"}).err ==
        "<command line>: error: --runtime theano: the step was made for stowage\n"
        "  leave it out, or write the step for it with stowage lower\n");
  CHECK(checked_file(theirs, {"--theano-flags", "allow_gc=False"}).err ==
        "<command line>: error: allow_gc=False is in the step itself, and not in the one of this "
        "file\n"
        "  name the model in place of its step\n");
}

TEST_CASE("the largest batch under Theano fits, and the next does not") {
  const auto verdict = [](std::int64_t batch) {
    return stowage_program({"check", "mnist-cnn", "--gpu", "gtx-960-2gb", "--runtime", "theano",
                            "--batch", std::to_string(batch)})
        .exit_code;
  };
  const Outcome found = stowage_program(
      {"batch", "mnist-cnn", "--gpu", "gtx-960-2gb", "--runtime", "theano", "--format", "json"});
  const std::int64_t most = json::parse(found.out)["largest"];
  CHECK(verdict(most) == 0);
  CHECK(verdict(most + 1) == 1);
}

}  // namespace stowage
