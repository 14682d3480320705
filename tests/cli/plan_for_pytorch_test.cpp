// plan --for pytorch: what is shown and written, and what is refused.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
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
  const Outcome shown =
      stowage_program(asked({"--gpu-memory", "2500MiB", "--choose", "checkpoint-all", "-o", path}));
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
  CHECK(shown.out.find("\n  stowage validate " + path + " counts it again\n") != std::string::npos);
  const json plan = json::parse(text_of(path));
  CHECK(plan["format"] == "stowage-pytorch-plan");
  CHECK(plan["names"] == "described");
  CHECK(plan["totals"]["device_bytes"] <= 2500LL << 20);

  const Outcome checked = stowage_program({"check", path, "--gpu", "rtx3090"});
  CHECK(checked.exit_code == 2);
  CHECK(checked.err.find("'" + path + "' is a plan for PyTorch, not a model's description") !=
        std::string::npos);
  const Outcome explained = stowage_program({"explain", path, "fc"});
  CHECK(explained.exit_code == 2);
  CHECK(
      explained.err.find("'" + path + "' is a plan for PyTorch, and no executor of ours runs it") !=
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
  // There are no copies and no bound to explain.
  CHECK(shown.out.find("Step: simulated") == std::string::npos);
}

TEST_CASE("where nothing fits the answer is no, with what is missing, was tried and would do") {
  const std::vector<std::string> refused = asked({"--gpu-memory", "600MiB"});
  const Outcome shown = stowage_program(refused);
  CHECK(shown.exit_code == 1);
  CHECK(shown.out.starts_with("a generic 600.0 MiB card has no room for the step: "));
  CHECK(shown.out.find(
            " are missing at best\n  tried were saved tensors on the host with none to all "
            "of the modules run again; the same with updates as gradients come; micro-batches "
            "with none or all of the modules run again; updates on the CPU with saved tensors on "
            "the host or modules run "
            "again; all of this with expandable segments of the allocator\n  a card with "
            "--gpu-memory ") != std::string::npos);
  std::vector<std::string> told = refused;
  told.insert(told.end(), {"--format", "json"});
  const json answer = json::parse(stowage_program(told).out);
  CHECK(answer["verdict"] == "does_not_fit");
  const std::string command = answer["enough"]["command"];
  CHECK(command.starts_with("stowage plan resnet18 --batch 96 "));
  CHECK(shown.out.ends_with(" would do, by '" + answer["enough"]["plan"].get<std::string>() +
                            "':\n  " + command + "\n"));
  const Outcome would = testing::typed(command);
  CAPTURE(would.out);
  CHECK(would.exit_code == 0);
}

TEST_CASE("the first Ctrl-C takes the best plan for PyTorch so far, and says so") {
  const TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  testing::RunningProgram program({"plan", "bert-large", "--for", "pytorch", "--batch", "16",
                                   "--gpu-memory", "10GiB", "-o", path, "--format", "json"});
  REQUIRE(program.shows("Ctrl-C takes the best so far"));
  program.send(SIGINT);
  const Outcome outcome = program.wait();
  CHECK(outcome.exit_code == 130);
  CHECK(outcome.err.find("warning: interrupted: these are the best plans so far\n") !=
        std::string::npos);
  const json answer = json::parse(outcome.out);
  CHECK(answer["stopped_by"] == "interrupt");
  CHECK(answer["written"] == path);
  CHECK(json::parse(text_of(path))["format"] == "stowage-pytorch-plan");
}

TEST_CASE("what a plan wants of the allocator is said in text, JSON and file") {
  const TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  const std::vector<std::string> words{
      "plan", "gpt2",    "--for", "pytorch",  "--gpu-memory",
      "8GiB", "--batch", "8",     "--choose", "cpu-optimizer-32-of-148-checkpoint-expandable",
      "-o",   path};
  const Outcome shown = stowage_program(words);
  CAPTURE(shown.out);
  REQUIRE(shown.exit_code == 0);
  CHECK(shown.out.find("wants PYTORCH_ALLOC_CONF=expandable_segments:True in the environment") !=
        std::string::npos);
  CHECK(shown.out.find("\n  the environment of the training script has to say "
                       "PYTORCH_ALLOC_CONF=expandable_segments:True\n") != std::string::npos);
  CHECK(json::parse(text_of(path))["allocator"] == "expandable_segments:True");
  std::vector<std::string> told = words;
  told.insert(told.end(), {"--format", "json"});
  const json answer = json::parse(stowage_program(told).out);
  for (const json& plan : answer["plans"]) {
    const bool expands = plan["name"].get<std::string>().ends_with("-expandable");
    CHECK(plan["environment"] ==
          (expands ? json{{"PYTORCH_ALLOC_CONF", "expandable_segments:True"}} : json::object()));
  }
}

TEST_CASE("a plan for PyTorch is judged under the allocator's settings of its user") {
  const TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  const std::vector<std::string> words =
      asked({"--gpu-memory", "2500MiB", "--alloc-conf", "expandable_segments:True", "--choose",
             "checkpoint-all", "-o", path});
  const Outcome shown = stowage_program(words);
  CAPTURE(shown.err);
  REQUIRE(shown.exit_code == 0);
  CHECK(shown.out.find("-expandable") == std::string::npos);
  const json plan = json::parse(text_of(path));
  CHECK(plan["allocator"] == "expandable_segments:True");
  CHECK(plan["question"]["settings"]["alloc_conf"] == json{"expandable_segments:True"});
  CHECK(stowage_program({"validate", path}).exit_code == 0);
  const Outcome refused = stowage_program(
      {"plan", "resnet18", "--gpu-memory", "2500MiB", "--alloc-conf", "expandable_segments:True"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err ==
        "<command line>: error: --alloc-conf is about PyTorch's allocator, and this plan has an "
        "arena of its own\n  --for pytorch makes a plan that PyTorch carries out, with its "
        "allocator\n");
}

TEST_CASE("a plan's file says what it was made of, and its export is sized by that") {
  const TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  const Outcome planned = stowage_program(
      {"plan", "gpt2", "--for", "pytorch", "--batch", "2", "--gpu-memory", "3300MiB", "--precision",
       "amp-bf16", "--optimizer", "adamw", "--choose", "cpu-optimizer-checkpoint", "-o", path});
  CAPTURE(planned.out);
  CAPTURE(planned.err);
  REQUIRE(planned.exit_code == 0);
  const json plan = json::parse(text_of(path));
  CHECK(
      plan["question"] ==
      json{{"model", "gpt2"},
           {"settings",
            {{"gpu_memory", {"3300MiB"}}, {"precision", {"amp-bf16"}}, {"optimizer", {"adamw"}}}}});
  const Outcome exported = stowage_program({"export", path, "--to", "deepspeed"});
  CAPTURE(exported.err);
  const json config = json::parse(exported.out);
  CHECK(config["zero_optimization"]["offload_optimizer"]["device"] == "cpu");
  CHECK(config.contains("activation_checkpointing"));
  const Outcome same =
      stowage_program({"export", "gpt2", "--to", "deepspeed", "--batch", "2", "--gpu-memory",
                       "3300MiB", "--precision", "amp-bf16", "--optimizer", "adamw", "--checkpoint",
                       "all", "--zero", "2", "--offload", "optimizer"});
  CHECK(same.out == exported.out);
  CHECK(same.exit_code == exported.exit_code);
  // ZeRO's reduction buffer alone has 2 GB.
  CHECK(exported.exit_code == 1);
  CHECK(exported.err.find("warning: does not fit with PyTorch's kernels: ") != std::string::npos);
}

TEST_CASE("updates as gradients come, and of some parameters on the CPU, are said and written") {
  const TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  const std::vector<std::string> words{"plan", "gpt2",         "--for",   "pytorch",     "--batch",
                                       "1",    "--gpu-memory", "1900MiB", "--optimizer", "adamw"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> told = words;
    told.insert(told.end(), more.begin(), more.end());
    return stowage_program(told);
  };
  const Outcome listed = with({"--format", "json"});
  CAPTURE(listed.err);
  const json answer = json::parse(listed.out);
  std::string some;
  for (const json& plan : answer["plans"]) {
    const std::string name = plan["name"];
    if (!plan["cpu_parameters"].empty()) some = name;
    CHECK(plan["early_updates"] ==
          (name.starts_with("early-update") || name.starts_with("cpu-optimizer")));
  }
  CAPTURE(answer.dump());
  REQUIRE(some.starts_with("cpu-optimizer-"));
  const Outcome shown = with({"--choose", some, "-o", path});
  CAPTURE(shown.out);
  REQUIRE(shown.exit_code == 0);
  const json plan = json::parse(text_of(path));
  CHECK(plan["updates"] == "early");
  const json& parameters = plan["optimizer_on_cpu"]["parameters"];
  CHECK(shown.out.find(fmt::format("updates {} parameters on the CPU, with their optimizer state "
                                   "there; updates each parameter as soon as its gradient is whole",
                                   parameters.size())) != std::string::npos);
  CHECK(shown.out.find(some + ": updates begin before optimizer.step(): the script may not read or "
                              "add up gradients, nor leave a step out") != std::string::npos);
}

TEST_CASE("a plan of a model that came through a pipe is not exported, and says why") {
  const TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  const Outcome planned = stowage_program(
      {"plan", "-", "--for", "pytorch", "--batch", "2000", "--gpu-memory", "600MiB", "-o", path},
      {.input = "model: net\ninputs: {x: {shape: [batch, 4000]}, y: {shape: [batch, 4000]}}\n"
                "layers:\n  - linear: {name: fc, from: x, features: 4000}\n"
                "loss: {mse: {from: [fc, y]}}\n"});
  CAPTURE(planned.err);
  REQUIRE(planned.exit_code == 0);
  CHECK_FALSE(json::parse(text_of(path)).contains("question"));
  const Outcome refused = stowage_program({"export", path, "--to", "trl"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err ==
        path +
            ": error: the plan does not say of which file or model it was made, so that nothing "
            "can be sized\n"
            "  stowage plan writes that into a plan of a file or of a model that is named\n");
}

TEST_CASE("a plan's question with settings that are none is refused with its file") {
  const TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  REQUIRE(stowage_program(asked({"--gpu", "a100-sxm4-80gb", "-o", path})).exit_code == 0);
  const std::string text = text_of(path);
  const auto refusal = [&](const std::string& settings) {
    const std::string with = "\"settings\": " + settings + "},";
    const std::size_t at = text.find("\"settings\": ");
    std::string changed = text;
    changed.replace(at, text.find('\n', at) - at, with);
    std::ofstream(path) << changed;
    const Outcome refused = stowage_program({"export", path, "--to", "trl"});
    CHECK(refused.exit_code == 2);
    return refused.err;
  };
  CHECK(refusal("{\"frobnicate\": [\"1\"]}") ==
        path + ": error: the plan's question has a setting 'frobnicate' that is not known\n");
  CHECK(refusal("{\"gpu\": []}") ==
        path +
            ": error: the plan's question has a setting 'gpu' without a "
            "value, or with one that it does not take\n");
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
