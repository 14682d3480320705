// export of models and plans to other programs, as a user runs it.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "answers/question/version.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;

namespace {

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

const std::vector<std::string> mlp{
    "export", "mlp", "--gpu-memory", "8GiB", "--compute-capability", "8.6", "--batch", "4"};

Outcome export_mlp(std::vector<std::string> more) {
  more.insert(more.begin(), mlp.begin(), mlp.end());
  return stowage_program(more);
}

/// The budget is below what everything on the GPU takes.
std::string small_plan(const testing::TemporaryFolder& folder) {
  std::string path = folder.path("plan.yaml");
  const Outcome planned =
      stowage_program({"plan", "mlp", "--mode", "inference", "--batch", "2048", "--budget", "8MiB",
                       "--placement", "weights,activations", "-o", path});
  REQUIRE_MESSAGE(planned.exit_code == 0, planned.out, planned.err);
  return path;
}

}  // namespace

TEST_CASE("an export prints the file, and beside it what it takes and leaves unsaid") {
  const Outcome outcome = export_mlp({"--to", "accelerate", "--optimizer", "momentum"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.starts_with("# Written by stowage " + std::string(program_version) +
                                " for mlp on a generic 8.0 GiB card.\n# It fits: "));
  CHECK(outcome.out.ends_with(R"(
# Counted, and not said by this file:
#   --batch 4: the data loader
#   --optimizer sgd with momentum: the optimizer that the script makes
compute_environment: "LOCAL_MACHINE"
distributed_type: "NO"
mixed_precision: "no"
num_machines: 1
num_processes: 1
machine_rank: 0
main_training_function: "main"
use_cpu: false
)"));
  CHECK(outcome.err.find("note: fits: ") != std::string::npos);
  CHECK(outcome.err.ends_with(
      "note: counted, and not said by the file:\n"
      "  --batch 4: the data loader\n"
      "  --optimizer sgd with momentum: the optimizer that the script makes\n"));
}

TEST_CASE("with a file the rest is the report, as JSON too") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("ds.json");
  const Outcome outcome =
      export_mlp({"--to", "deepspeed", "--gpus", "2", "--zero", "1", "-o", path});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.starts_with("mlp, batch 4 on each of 2 GPUs (ZeRO 1), training with "));
  CHECK(outcome.out.find("\nfits: ") != std::string::npos);
  CHECK(outcome.out.find("\ncounted, and not said by the file:\n  --gpus 2: torchrun") !=
        std::string::npos);
  CHECK(json::parse(content(path))["zero_optimization"]["stage"] == 1);

  const Outcome told = export_mlp(
      {"--to", "deepspeed", "--gpus", "2", "--zero", "1", "-o", path, "--format", "json"});
  const json answer = json::parse(told.out);
  CHECK(answer["form"] == "deepspeed");
  CHECK(answer["text"] == content(path));
  CHECK(answer["fits"] == true);
  CHECK(answer["device_bytes"].get<std::int64_t>() + answer["headroom_bytes"].get<std::int64_t>() ==
        answer["available_bytes"]);
  CHECK(answer["not_in_the_file"] ==
        json({"--gpus 2: torchrun or another launcher starts one process a GPU"}));
  CHECK(answer["not_counted"] == json({"what DeepSpeed takes before the first step"}));
  // Without a file the JSON is all that is printed.
  const Outcome alone =
      export_mlp({"--to", "deepspeed", "--gpus", "2", "--zero", "1", "--format", "json"});
  CHECK(json::parse(alone.out)["text"] == answer["text"]);
}

TEST_CASE("what does not fit is written, said and exit code 1") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("axolotl.yaml");
  const std::vector<std::string> words{"export",  "gpt2", "--gpu-memory", "1GiB",
                                       "--batch", "64",   "--to",         "axolotl"};
  std::vector<std::string> to_file = words;
  to_file.insert(to_file.end(), {"-o", path, "--format", "json"});
  const Outcome outcome = stowage_program(to_file);
  CHECK(outcome.exit_code == 1);
  const json answer = json::parse(outcome.out);
  CHECK(answer["fits"] == false);
  CHECK(answer["headroom_bytes"] < 0);
  CHECK(content(path).find("\n# It does not fit: ") != std::string::npos);
  CHECK(content(path).find("\nmicro_batch_size: 64\n") != std::string::npos);
  const Outcome printed = stowage_program(words);
  CHECK(printed.exit_code == 1);
  CHECK(printed.out == content(path));
  CHECK(printed.err.find("warning: does not fit with PyTorch's kernels: ") != std::string::npos);
}

TEST_CASE("options that say nothing about a form are refused") {
  const auto error_of = [](const std::vector<std::string>& words) {
    const Outcome outcome = stowage_program(words);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  const std::string place = "<command line>: error: ";
  CHECK(error_of({"export", "mlp", "--to", "dot", "--gpu", "rtx3090", "--batch", "2"}) ==
        place + "--batch says nothing about dot\n" + place + "--gpu says nothing about dot\n");
  CHECK(error_of({"export", "mlp", "--to", "trl"}) ==
        place +
            "a card is missing: --gpu NAME or --gpu-memory SIZE\n"
            "  stowage gpus lists the names; without a card, stowage summary mlp --batch 1 says "
            "what the tensors take\n");
  CHECK(error_of({"export", "mlp", "--to", "trl", "--gpu", "all"}) ==
        place + "what is exported is sized on one card\n  --gpu takes one name here\n");
  CHECK(error_of({"export", "mlp", "--to", "json"}) ==
        place + "json is written of a plan, and 'mlp' is none\n  stowage plan makes one\n");
  CHECK(error_of({"export", "mlp", "--to", "trl", "--gpu", "rtx3090", "-o", "x.json"}) ==
        place +
            "what is written is a file .yaml, and 'x.json' is named as something else\n"
            "  stowage export mlp --to trl --gpu rtx3090 -o x.yaml\n");
  CHECK(error_of(
            {"export", "mlp", "--to", "deepspeed", "--gpu", "rtx3090", "--gpus", "2", "--fsdp"}) ==
        place +
            "--fsdp is PyTorch's way to shard, and not DeepSpeed's\n"
            "  --zero 3 shards parameters too; --to fsdp writes FSDP's settings\n");
  CHECK(error_of({"export", "gpt2", "--to", "llama.cpp", "--gpu", "rtx3090"}) ==
        place + "llama.cpp serves: how long is a context?\n  --context-length N says it\n");
}

TEST_CASE("a step's file is exported, and said to be silent on adapters") {
  const std::string step = testing::source_path("/tests/fuzz/step/no-update.json");
  const Outcome refused = stowage_program({"export", step, "--to", "trl", "--gpu", "rtx3090"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err ==
        "<command line>: error: the step has no update of its parameters, and TRL trains with one\n"
        "  --optimizer NAME adds one\n");
  const Outcome outcome = stowage_program(
      {"export", step, "--to", "accelerate", "--gpu", "rtx3090", "--optimizer", "adamw"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find(
            "\n#   adapters, a quantised base and checkpointed blocks: a step's file does "
            "not say whether it was made with them\n") != std::string::npos);
}

TEST_CASE("a plan of an inference becomes accelerate's device_map") {
  const testing::TemporaryFolder folder;
  const std::string plan = small_plan(folder);
  const Outcome outcome = stowage_program({"export", plan, "--to", "accelerate"});
  const json map = json::parse(outcome.out);
  CHECK(map.size() == 2);
  const json summary = json::parse(stowage_program({"summary", "mlp", "--format", "json"}).out);
  std::int64_t bytes =
      map["max_memory"]["0"].get<std::int64_t>() + map["max_memory"]["cpu"].get<std::int64_t>();
  CHECK(bytes == 4 * summary["model"]["parameters"].get<std::int64_t>());
  for (const auto& [name, device] : map["device_map"].items()) {
    CHECK((device == 0 || device == "cpu"));
  }
  CHECK(stowage_program({"export", plan, "--to", "accelerate", "--batch", "2"}).err ==
        "<command line>: error: --batch is of a model; a plan says its step itself\n");
  CHECK(stowage_program({"export", plan, "--seq", "2"}).err ==
        "<command line>: error: --seq is of a model; a plan says its step itself\n");
  CHECK(stowage_program({"export", plan, "--to", "fsdp"}).err ==
        plan +
            ": error: accelerate's settings are of a model, and this is a plan\n"
            "  name the model that it was made of, with its settings\n");
  CHECK(stowage_program({"export", plan, "--to", "trl"}).err ==
        "<command line>: error: TRL's settings are of training, and this is an inference\n");
}

TEST_CASE("each parameter is under one name of the device_map, tied ones on one device") {
  const testing::TemporaryFolder folder;
  const std::string plan = folder.path("plan.yaml");
  const Outcome planned = stowage_program(
      {"plan", "gpt2", "--mode", "inference", "--seq", "64", "--set", "layers=6", "--batch", "4",
       "--budget", "250MiB", "--placement", "weights,activations", "-o", plan});
  REQUIRE_MESSAGE(planned.exit_code == 0, planned.out, planned.err);
  const json map =
      json::parse(stowage_program({"export", plan, "--to", "accelerate"}).out)["device_map"];
  const std::string text = content(plan);
  const json step = json::parse(text.substr(text.rfind("\n---\n") + 5));
  bool has_both = false;
  for (const json& row : step["parameters"]) {
    const std::string name = row[0];
    int rules = 0;
    for (const auto& [module, device] : map.items()) {
      if (name.starts_with(module + '.')) ++rules;
      has_both = has_both || device != map.begin().value();
    }
    CHECK_MESSAGE(rules == 1, name);
  }
  CHECK(has_both);
  CHECK(map["lm_head"] == map["wte"]);  // one weight
}

TEST_CASE("a plan as JSON has all that its file decides") {
  const testing::TemporaryFolder folder;
  const std::string plan = small_plan(folder);
  const Outcome outcome = stowage_program({"export", plan, "--to", "json"});
  CHECK(outcome.exit_code == 0);
  const json told = json::parse(outcome.out);
  CHECK(told["model"] == "mlp");
  CHECK(told["batch"] == 2048);
  CHECK(told["budget_bytes"] == 8 << 20);
  std::int64_t moved = 0;
  for (const json& row : told["transfers"]) moved += row["bytes"].get<std::int64_t>();
  CHECK(moved == told["totals"]["h2d_bytes"].get<std::int64_t>() +
                     told["totals"]["d2h_bytes"].get<std::int64_t>());
  const std::string text = content(plan);
  for (const json& row : told["residences"]) {
    const std::string line = "\n  " + row["memory"].get<std::string>() + ' ' +
                             std::to_string(row["steps"][0].get<int>()) + ' ' +
                             std::to_string(row["steps"][1].get<int>()) + ' ' +
                             std::to_string(row["offset"].get<std::int64_t>()) + ' ' +
                             row["storage"].get<std::string>() + '\n';
    CHECK_MESSAGE(text.find(line) != std::string::npos, line);
  }
}

TEST_CASE("a plan that trains becomes TensorFlow's devices, and an engine's settings") {
  const testing::TemporaryFolder folder;
  const std::string plan = folder.path("plan.yaml");
  const Outcome planned =
      stowage_program({"plan", "mnist-cnn", "--batch", "64", "--budget", "8MiB", "-o", plan});
  REQUIRE_MESSAGE(planned.exit_code == 0, planned.out, planned.err);
  const Outcome devices = stowage_program({"export", plan, "--to", "tensorflow"});
  CHECK(devices.exit_code == 0);
  CHECK(devices.out.find("\nMEMORY_LIMIT_MIB = 8\n") != std::string::npos);
  CHECK(devices.out.find("\n    \"conv1\": \"/device:GPU:0\",\n") != std::string::npos);
  CHECK(devices.out.find("\n#   addresses, and when a copy begins: TensorFlow chooses them\n") !=
        std::string::npos);
  CHECK(stowage_program({"export", plan, "--to", "accelerate"}).err ==
        "error: a device_map is of an inference, and the plan trains\n");
  // With PyTorch's kernels and context 8 MiB are too few, and that is said.
  const Outcome settings = stowage_program({"export", plan, "--to", "deepspeed"});
  CHECK(settings.exit_code == 1);
  const json config = json::parse(settings.out);
  CHECK(config["train_batch_size"] == 64);
  CHECK(settings.err.find("of the plan it cannot say ") != std::string::npos);
}

}  // namespace stowage
