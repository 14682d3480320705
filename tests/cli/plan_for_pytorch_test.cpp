// plan --for pytorch: what is shown and written, and what is refused.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

std::vector<std::string> asked(const std::vector<std::string>& more) {
  std::vector<std::string> words{"plan", "resnet18", "--for", "pytorch", "--batch", "96"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a plan for PyTorch is shown, and written for stowage.apply") {
  const TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  const Outcome shown = stowage_program(asked({"--gpu-memory", "2500MiB", "-o", path}));
  CAPTURE(shown.out);
  CAPTURE(shown.err);
  REQUIRE(shown.exit_code == 0);
  CHECK(
      shown.out.starts_with("resnet18, batch 96, training with sgd with momentum, fp32, pytorch "
                            "kernels, for PyTorch\n"));
  CHECK(shown.out.find("PyTorch's allocator, simulated on the step as the plan has it run, fits "
                       "the card") != std::string::npos);
  CHECK(shown.out.find("its names are the description's: stowage.apply needs a plan of a recorded "
                       "step (python -m stowage record)") != std::string::npos);
  const json plan = json::parse(text_of(path));
  CHECK(plan["format"] == "stowage-pytorch-plan");
  CHECK(plan["names"] == "described");
  CHECK(plan["totals"]["device_bytes"] <= 2500LL << 20);

  const Outcome checked = stowage_program({"check", path, "--gpu", "rtx3090"});
  CHECK(checked.exit_code == 2);
  CHECK(checked.err.find("'" + path + "' is a plan for PyTorch, not a model's description") !=
        std::string::npos);
  const Outcome validated = stowage_program({"validate", path});
  CHECK(validated.exit_code == 2);
  CHECK(
      validated.err.find("'" + path + "' is a plan for PyTorch, and no executor of ours runs it") !=
      std::string::npos);
}

TEST_CASE("its JSON has every proposal, and the text of a plan goes to stdout") {
  const Outcome shown = stowage_program(asked({"--gpu-memory", "2500MiB", "--format", "json"}));
  REQUIRE(shown.exit_code == 0);
  const json answer = json::parse(shown.out);
  CHECK(answer["verdict"] == "fits");
  REQUIRE(answer["plans"].size() >= 2);
  CHECK(answer["chosen"] == answer["plans"][0]["name"]);
  for (const json& plan : answer["plans"]) {
    CHECK(plan["peak_allocated_bytes"] <= plan["peak_reserved_bytes"]);
    CHECK(plan["pcie_bytes"] >= plan["pcie_lower_bound_bytes"]);
    CHECK(plan["in_words"] != "");
  }
  const Outcome raw = stowage_program(asked({"--gpu-memory", "2500MiB", "-o", "-"}));
  CHECK(json::parse(raw.out)["model"] == "resnet18");
}

TEST_CASE("of an inference that does not fit parameters are streamed") {
  const TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  const std::vector<std::string> words{"plan",         "gpt2",    "--mode", "inference",
                                       "--batch",      "1",       "--for",  "pytorch",
                                       "--gpu-memory", "1100MiB", "-o",     path};
  const Outcome shown = stowage_program(words);
  CAPTURE(shown.out);
  REQUIRE(shown.exit_code == 0);
  CHECK(shown.out.find(
            "\n  Step: simulated, copies beside compute. Gap: to a bound for every choice "
            "of streamed\n  parameters, with the batch in as many parts.\n") != std::string::npos);
  const json plan = json::parse(text_of(path));
  CHECK(plan["mode"] == "inference");
  REQUIRE(plan["stream"].size() > 1);
  const std::string first = plan["stream"][0]["module"];
  CHECK(shown.out.find("copies the parameters of " + first + " and ") != std::string::npos);
  CHECK(shown.out.find("its names are the description's") != std::string::npos);
  const Outcome exported = stowage_program({"export", path, "--to", "deepspeed"});
  CHECK(exported.exit_code == 2);
  CHECK(exported.err.find("a plan of an inference has no settings for an engine that trains") !=
        std::string::npos);
}

TEST_CASE("where everything fits nothing is to be done") {
  const Outcome shown = stowage_program(asked({"--gpu", "a100-sxm4-80gb"}));
  CHECK(shown.exit_code == 0);
  CHECK(shown.out.find("as-is: everything fits: nothing is to be done") != std::string::npos);
}

TEST_CASE("where nothing fits the answer is no, with what is missing") {
  const Outcome shown = stowage_program(asked({"--gpu-memory", "600MiB", "--format", "json"}));
  CHECK(shown.exit_code == 1);
  CHECK(json::parse(shown.out)["verdict"] == "does_not_fit");
}

TEST_CASE("what only our own executor has is refused for PyTorch") {
  const auto refusal = [](const std::vector<std::string>& more) {
    const Outcome refused = stowage_program(asked(more));
    CHECK(refused.exit_code == 2);
    CHECK(refused.out.empty());
    return refused.err;
  };
  CHECK(refusal({"--gpu-memory", "2500MiB", "--budget", "1GiB"})
            .find("--budget is about plans for our own executor, and this one is for PyTorch") !=
        std::string::npos);
  CHECK(refusal({"--gpu-memory", "2500MiB", "--pin", "conv1=cpu"}).find("--pin is about plans") !=
        std::string::npos);
  CHECK(refusal({"--gpu-memory", "2500MiB", "--runtime", "stowage"})
            .find("--for pytorch plans PyTorch's kernels, and --runtime names others") !=
        std::string::npos);
  CHECK(refusal({"--gpu-memory", "2500MiB", "--choose", "checkpoint-al"})
            .find("did you mean 'checkpoint-all'?") != std::string::npos);
  CHECK(refusal({}).find("a plan needs --gpu NAME, --gpu-memory SIZE or --budget SIZE") !=
        std::string::npos);
}

}  // namespace stowage
