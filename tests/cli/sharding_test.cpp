// --fsdp, --zero and --offload, as a user types them.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

Outcome checked_gpt2(const std::vector<std::string>& more) {
  std::vector<std::string> words{"check",   "gpt2", "--gpu",       "a100-sxm4-40gb",
                                 "--batch", "1",    "--optimizer", "adamw"};
  words.insert(words.end(), more.begin(), more.end());
  return stowage_program(words);
}

json checked_json(std::vector<std::string> more) {
  more.insert(more.end(), {"--format", "json"});
  const Outcome outcome = checked_gpt2(more);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(outcome.out);
}

std::string sharding_refusal(const std::vector<std::string>& more) {
  const Outcome outcome = checked_gpt2(more);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  return outcome.err;
}

}  // namespace

TEST_CASE("a step that FSDP shards is told with its settings") {
  const json plain = checked_json({"--gpus", "4", "--fsdp"});
  const json& settings = plain["settings"];
  CHECK(settings["gpus"] == 4);
  CHECK(settings["fsdp"]["wrap"] == "blocks");
  CHECK(settings["fsdp"]["reshard_after_forward"] == true);
  CHECK(settings["fsdp"]["reduce_dtype"].is_null());
  CHECK(settings["offload"].is_null());
  CHECK(plain["host_buffers"].empty());
  const json whole = checked_json({"--gpus", "4"});
  CHECK(whole["settings"]["fsdp"].is_null());
  CHECK(plain["peak"]["tensor_bytes"] < whole["peak"]["tensor_bytes"]);
  const json kept = checked_json({"--gpus", "4", "--fsdp", "reshard=false,reduce=bf16"});
  CHECK(kept["settings"]["fsdp"]["reshard_after_forward"] == false);
  CHECK(kept["settings"]["fsdp"]["reduce_dtype"] == "bfloat16");
  CHECK(kept["peak"]["tensor_bytes"] > plain["peak"]["tensor_bytes"]);
}

TEST_CASE("what is offloaded is shown as the host's, pinned or not") {
  const json pinned = checked_json({"--gpus", "4", "--fsdp", "--offload", "all"});
  REQUIRE(pinned["host_buffers"].size() == 3);
  CHECK(pinned["host_buffers"][0]["name"] == "sharded parameters");
  CHECK(pinned["host_buffers"][0]["pinned"] == true);
  CHECK(pinned["host_buffers"][2]["name"] == "optimizer state");
  const json plain = checked_json({"--gpus", "4", "--fsdp", "--offload", "all,pin=false"});
  CHECK(plain["host_buffers"][0]["pinned"] == false);
  CHECK(plain["host_buffers"][0]["bytes"] < pinned["host_buffers"][0]["bytes"]);
  CHECK(plain["host_bytes"] < pinned["host_bytes"]);
  const json zero = checked_json({"--gpus", "4", "--zero", "2", "--offload", "optimizer"});
  CHECK(zero["settings"]["offload"] == "optimizer");
  CHECK(zero["host_buffers"][0]["name"] == "fp32 master weights");
  const Outcome table = checked_gpt2({"--gpus", "4", "--fsdp", "--offload", "all"});
  CHECK(table.out.find("sharded parameters (pinned)") != std::string::npos);
}

TEST_CASE("a single GPU takes --zero for what it offloads, and nothing else") {
  const json found = checked_json({"--zero", "2", "--offload", "optimizer"});
  CHECK(found["settings"]["gpus"] == 1);
  CHECK(found["settings"]["zero"] == 2);
  CHECK(found["host_buffers"][0]["name"] == "fp32 master weights");
  const Outcome table = checked_gpt2({"--zero", "2", "--offload", "optimizer"});
  CHECK(table.out.find(" (ZeRO 2), optimizer offloaded, ") != std::string::npos);
  CHECK(sharding_refusal({"--zero", "2"}) ==
        "<command line>: error: ZeRO shares a model out among GPUs: one has nobody to share with\n"
        "  offload the optimizer, as a single GPU can, or say how many there are: --gpus N\n");
  const TemporaryFolder folder;
  const std::string step = folder.path() + "/step.json";
  REQUIRE(stowage_program({"lower", "mlp", "--runtime", "pytorch", "--gpu", "a100-sxm4-40gb",
                           "--zero", "2", "--offload", "optimizer", "--output", step})
              .exit_code == 0);
  const Outcome checked = stowage_program({"check", step, "--gpu", "a100-sxm4-40gb"});
  CHECK(checked.out.find(" (ZeRO 2), optimizer offloaded, ") != std::string::npos);
  const Outcome planned = stowage_program({"plan", step, "--gpu", "a100-sxm4-40gb"});
  CHECK(planned.exit_code == 2);
  CHECK(planned.err ==
        "<command line>: error: a plan decides what lies on the host, and of this step ZeRO does\n"
        "  stowage check sizes it; lowered without --offload and --zero it is planned\n");
}

TEST_CASE("settings of --fsdp and --offload that there are not are refused") {
  CHECK(sharding_refusal({"--gpus", "2", "--fsdp=wrap=layers"}) ==
        "<command line>: error: --fsdp wrap= is blocks or root, not 'layers'\n");
  CHECK(sharding_refusal({"--gpus", "2", "--fsdp=reshard=1"}) ==
        "<command line>: error: --fsdp reshard= is true, false or a number of GPUs above 1, not "
        "'1'\n");
  CHECK(sharding_refusal({"--gpus", "2", "--fsdp=reduce=int8"}) ==
        "<command line>: error: --fsdp reduce= is fp32, bf16, fp16 or fp64, not 'int8'\n");
  CHECK(sharding_refusal({"--gpus", "2", "--fsdp=wrap=root,wrap=root"}) ==
        "<command line>: error: --fsdp says 'wrap' twice\n");
  CHECK(sharding_refusal({"--fsdp=wrap=root"}) ==
        "<command line>: error: --fsdp shards a model among GPUs, and their number is not said\n"
        "  say how many there are: --gpus N\n");
  CHECK(sharding_refusal({"--gpus", "2", "--zero", "3", "--offload", "disk"}) ==
        "<command line>: error: --offload is optimizer, parameters or all, and pin=false beside "
        "it, not 'disk'\n");
  CHECK(sharding_refusal({"--gpus", "2", "--zero", "3", "--offload", "pin=false"}) ==
        "<command line>: error: --offload says how memory is pinned, and not what lies there: "
        "optimizer, parameters or all\n");
}

TEST_CASE("ways to share a model out that make no sense together are refused") {
  CHECK(sharding_refusal({"--gpus", "2", "--zero", "3", "--fsdp=wrap=root"})
            .find("a model is sharded by ZeRO or by FSDP, not by both") != std::string::npos);
  CHECK(
      sharding_refusal({"--gpus", "2", "--offload", "all"}).find("offload is ZeRO's and FSDP's") !=
      std::string::npos);
  CHECK(sharding_refusal({"--gpus", "2", "--fsdp", "--runtime", "stowage"}) ==
        "<command line>: error: --fsdp is PyTorch's, and not of --runtime stowage\n");
  CHECK(sharding_refusal({"--gpus", "2", "--zero", "1", "--runtime", "stowage"}) ==
        "<command line>: error: --zero is DeepSpeed's, and not of --runtime stowage\n");
  CHECK(sharding_refusal({"--gpus", "2", "--fsdp", "--eval-batch", "4"})
            .find("--eval-batch is not sized beside a sharded model") != std::string::npos);
}

TEST_CASE("a sharded step is lowered, checked and not planned") {
  const TemporaryFolder folder;
  const std::string step = folder.path() + "/step.json";
  REQUIRE(stowage_program({"lower", "mlp", "--runtime", "pytorch", "--gpu", "a100-sxm4-40gb",
                           "--gpus", "2", "--fsdp", "--output", step})
              .exit_code == 0);
  CHECK(stowage_program({"check", step, "--gpu", "a100-sxm4-40gb", "--batch", "32"}).exit_code ==
        0);
  const Outcome other = stowage_program({"check", step, "--gpu", "a100-sxm4-40gb", "--batch", "32",
                                         "--gpus", "2", "--fsdp=wrap=root"});
  CHECK(other.exit_code == 2);
  const Outcome plan = stowage_program({"plan", step, "--runtime", "pytorch", "--batch", "32",
                                        "--budget", "1GiB", "--output", folder.path() + "/p.yaml"});
  CHECK(plan.exit_code == 2);
  CHECK(plan.err.find("a plan is of a step on one GPU, and this one is sharded among 2 by FSDP") !=
        std::string::npos);
}

}  // namespace stowage
