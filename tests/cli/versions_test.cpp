// What --pytorch-version and --set attention change, and what is said of versions that are not
// modelled.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/lowered_step.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

Outcome checked_as(const std::string& model, std::vector<std::string> more) {
  std::vector<std::string> words{"check", model, "--gpu", "rtx3090"};
  words.insert(words.end(), more.begin(), more.end());
  return stowage_program(words);
}

json answer_as(const std::string& model, std::vector<std::string> more) {
  more.insert(more.end(), {"--format", "json"});
  const Outcome outcome = checked_as(model, more);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code <= 1);
  return json::parse(outcome.out);
}

std::int64_t tensor_bytes_of(const json& answer) {
  std::int64_t bytes = 0;
  for (const json& part : answer["footprint"]) bytes += part.get<std::int64_t>();
  return bytes;
}

std::int64_t saved_by_layers(const json& summary) {
  std::int64_t bytes = 0;
  for (const json& layer : summary["layers"]) bytes += layer["saved_bytes"].get<std::int64_t>();
  return bytes;
}

/// The notes' messages, without the one about workspaces that is there where cuDNN is not
/// installed.
std::string notes_of(const json& answer) {
  std::string text;
  for (const json& note : answer["notes"]) {
    const std::string message = note["message"];
    if (!message.starts_with("workspaces are by a rule ")) text += message + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("before 2.0 attention is written out, optimizers go parameter by parameter") {
  const std::vector<std::string> question{"--batch", "48"};
  const std::string model = "vit_base_patch16_224";
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), question.begin(), question.end());
    return answer_as(model, more);
  };
  const json today = with({}), then = with({"--pytorch-version", "1.12"});
  const json eager = with({"--set", "attention=eager"});
  // Twelve layers keep the weights of twelve heads over 197 x 197 places.
  const std::int64_t weights = std::int64_t{12} * 48 * 12 * 197 * 197 * 4;
  CHECK(tensor_bytes_of(eager) - tensor_bytes_of(today) > weights / 10 * 9);
  CHECK(tensor_bytes_of(then) > tensor_bytes_of(eager));  // and gradients are there in forward
  CHECK(then["settings"]["optimizer_implementation"] == "for-loop");
  CHECK(then["settings"]["zero_grad"] == "to_zero");
  CHECK(then["loop"]["gradients_during_forward"] == true);
  CHECK(notes_of(today).empty());
  CHECK(notes_of(eager).empty());
  CHECK(notes_of(then) ==
        "as PyTorch 1.12 runs the step, attention is written out in tensor operations, the "
        "optimizer updates one parameter after another and zero_grad keeps the gradients and fills "
        "them with zeros; all else is sized as PyTorch 2.15 does it (docs/pytorch-versions.md)\n");
  // DeepSpeed and hooks let go of gradients themselves; timm's optimizers are not torch.optim's.
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--gpus", "2", "--zero", "2"},
        std::vector<std::string>{"--optimizer-in-backward"}}) {
    std::vector<std::string> words{"--pytorch-version", "1.12", "--batch", "2"};
    words.insert(words.end(), more.begin(), more.end());
    CHECK(answer_as("mlp", words)["settings"]["zero_grad"] == "to_none");
  }
  CHECK(answer_as("mlp", {"--pytorch-version", "1.12", "--optimizer",
                          "lamb"})["settings"]["optimizer_implementation"] == "foreach");
  // What is asked for stays.
  CHECK(with({"--pytorch-version", "1.13", "--optimizer-implementation",
              "foreach"})["settings"]["optimizer_implementation"] == "foreach");
}

TEST_CASE("between 2.0 and 2.5 shared heads are repeated, and no fused kernel takes a mask") {
  const std::vector<std::string> llama{"--batch", "1", "--seq", "128", "--set", "layers=2"};
  const auto as = [&](const std::string& model, const std::string& version,
                      std::vector<std::string> more) {
    more.insert(more.end(), {"--pytorch-version", version});
    return answer_as(model, more);
  };
  CHECK(notes_of(as("llama-3.2-1b", "2.4", llama)) ==
        "as PyTorch 2.4 runs the step, shared key and value heads are repeated; all else is sized "
        "as PyTorch 2.15 does it (docs/pytorch-versions.md)\n");
  CHECK(notes_of(as("llama-3.2-1b", "2.5", llama)) ==
        "PyTorch 2.5 is older than 2.11, the oldest that was measured: but for what "
        "docs/pytorch-versions.md lists, the step is sized as PyTorch 2.15 runs it\n");
  CHECK(notes_of(as("llama-3.2-1b", "2.11", llama)).empty());
  CHECK(notes_of(as("t5-small", "2.0", {})) ==
        "as PyTorch 2.0 runs the step, no fused attention takes a mask; all else is sized as "
        "PyTorch 2.15 does it (docs/pytorch-versions.md)\n");
  CHECK(tensor_bytes_of(as("t5-small", "2.0", {})) > tensor_bytes_of(as("t5-small", "2.1", {})));
}

TEST_CASE("an optimizer, or its fused implementation, that came later is refused") {
  struct Row {
    const char *optimizer, *before, *first, *named;
  };
  for (const Row& row : {Row{"adam", "1.12", "1.13", "torch.optim.Adam"},
                         Row{"adamw", "1.13", "2.0", "torch.optim.AdamW"},
                         Row{"sgd", "2.2", "2.3", "torch.optim.SGD"},
                         Row{"adagrad", "2.3", "2.4", "torch.optim.Adagrad"}}) {
    const auto fused = [&](const char* version) {
      return checked_as("mlp", {"--optimizer", row.optimizer, "--optimizer-implementation", "fused",
                                "--pytorch-version", version});
    };
    CHECK(fused(row.before).exit_code == 2);
    CHECK(fused(row.before).err ==
          std::string("<command line>: error: --optimizer-implementation fused: PyTorch ") +
              row.before + " has no fused " + row.named + "\n  " + row.first +
              " was the first with one\n");
    CHECK(fused(row.first).exit_code == 0);
  }
  const auto adafactor = [](const char* version) {
    return checked_as("mlp", {"--optimizer", "adafactor", "--pytorch-version", version});
  };
  CHECK(adafactor("2.4").exit_code == 2);
  CHECK(adafactor("2.4").err ==
        "<command line>: error: --optimizer adafactor: PyTorch 2.4 has no torch.optim.Adafactor\n"
        "  2.5 was the first with it\n");
  CHECK(adafactor("2.5").exit_code == 0);
}

TEST_CASE("releases that are not modelled are refused or said") {
  const Outcome old = checked_as("mlp", {"--pytorch-version", "1.11"});
  CHECK(old.exit_code == 2);
  CHECK(old.err ==
        "<command line>: error: --pytorch-version 1.11 is not modelled\n"
        "  1.12 is the oldest that is (docs/pytorch-versions.md)\n");
  const Outcome expands =
      checked_as("mlp", {"--pytorch-version", "2.0", "--alloc-conf", "expandable_segments:True"});
  CHECK(expands.exit_code == 2);
  CHECK(expands.err ==
        "<command line>: error: --alloc-conf expandable_segments: PyTorch 2.0 does not have them\n"
        "  2.1 was the first with them\n");
  CHECK(notes_of(answer_as("mlp", {"--pytorch-version", "2.16"})) ==
        "PyTorch 2.16 is newer than 2.15, the newest that was measured: the step is sized as that "
        "runs it\n");
  CHECK(notes_of(answer_as("mlp", {"--cuda-version", "14.0"})) ==
        "CUDA 14.0 is newer than 13.0, the newest that was measured: the process is sized as under "
        "that\n");
  const Outcome text = checked_as("mlp", {"--pytorch-version", "2.16"});
  CHECK(text.err ==
        "note: PyTorch 2.16 is newer than 2.15, the newest that was measured: the step is sized as "
        "that runs it\n");
}

// huggingface/transformers#3360: "Tried to allocate 786.00 MiB (GPU 0; 14.73 GiB total capacity;
// 13.33 GiB already allocated", transformers of March 2020 on a T4.
TEST_CASE("GPT-2 with eager attention and gradients that stay does not fit a T4, as reported") {
  const auto on_t4 = [](std::vector<std::string> more) {
    std::vector<std::string> words{"check", "gpt2",  "--gpu",           "t4",       "--batch",
                                   "4",     "--set", "attention=eager", "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(stowage_program(words).out);
  };
  CHECK(on_t4({})["allocator"]["failure"].is_null());
  const json then = on_t4({"--pytorch-version", "1.12"});
  CHECK(then["headroom_bytes"] < 0);
  const json failure = then["allocator"]["failure"];
  CHECK(failure["tried_bytes"] == 786 << 20);
  CHECK(failure["step"] == 2);
  CHECK(failure["message"].get<std::string>().find("13.30 GiB is allocated by PyTorch") !=
        std::string::npos);
  CHECK(failure["expandable_segments_would_do"] == false);
}

TEST_CASE("a step's file keeps its calls, whatever release is asked for") {
  const std::string recorded = testing::source_path("/tests/recorded/gpt2-1layer.json");
  CHECK(notes_of(answer_as(recorded, {"--pytorch-version", "1.12"})) ==
        "the step's calls are those of PyTorch 2.15, with which it was recorded; for PyTorch 1.12 "
        "only cuBLAS's workspaces and the process's own memory are changed\n");
  CHECK(notes_of(answer_as(recorded, {"--pytorch-version", "2.15"})).empty());
  const TemporaryFolder folder;
  const std::string step = testing::lowered(folder, {"mlp", "--runtime", "pytorch"});
  CHECK(notes_of(answer_as(step, {"--pytorch-version", "2.4"})) ==
        "the step's calls are those of the step's file; for PyTorch 2.4 only cuBLAS's workspaces "
        "and the process's own memory are changed\n");
}

TEST_CASE("every model of the catalogue that attends takes attention=eager, sdpa and flash") {
  for (const std::string model :
       {"bert-base", "distilgpt2", "gpt2", "llama-3.2-1b", "mistral-7b", "mixtral-8x7b", "opt-125m",
        "phi-2", "qwen3-0.6b", "t5-small", "vit_b_16", "vit_tiny_patch16_224", "whisper-small",
        "stable-diffusion-unet"}) {
    CAPTURE(model);
    const auto summary = [&](const std::string& attention) {
      const Outcome outcome = stowage_program({"summary", model, "--batch", "1", "--set",
                                               "attention=" + attention, "--format", "json"});
      INFO(outcome.err);
      REQUIRE(outcome.exit_code == 0);
      return json::parse(outcome.out);
    };
    const json eager = summary("eager"), fused = summary("sdpa"), flash = summary("flash");
    CHECK(eager["model"]["parameters"] == fused["model"]["parameters"]);
    CHECK(saved_by_layers(eager) > saved_by_layers(fused));
    CHECK(saved_by_layers(flash) == saved_by_layers(fused));
    CHECK(notes_of(flash).find("the attention 'flash' is sized as 'sdpa'\n") == 0);
  }
  const Outcome none = checked_as("resnet18", {"--set", "attention=eager"});
  CHECK(none.exit_code == 2);
  CHECK(none.err ==
        "error: the model 'resnet18' has no scaled_dot_product_attention, which the argument "
        "'attention' is about\n");
}

TEST_CASE("the loop that a step is sized for is said") {
  const auto line = [](const std::string& model, std::vector<std::string> more) {
    const Outcome outcome = checked_as(model, std::move(more));
    INFO(outcome.err);
    const std::size_t at = outcome.out.find("the loop: ");
    if (at == std::string::npos) return std::string();
    return outcome.out.substr(at, outcome.out.find('\n', at) - at);
  };
  CHECK(line("gpt2", {"--batch", "1"}) ==
        "the loop: zero_grad drops the gradients before forward; lm_head and loss stay until the "
        "next step's have been made");
  CHECK(line("mlp", {"--pytorch-version", "1.12"}) ==
        "the loop: zero_grad fills the gradients with zeros, so that they are there during "
        "forward; fc3 and loss stay until the next step's have been made");
  CHECK(line("mlp", {"--mode", "inference"}).empty());
  CHECK(line("mlp", {"--runtime", "tensorflow"}).empty());
  CHECK(line(testing::source_path("/tests/recorded/gpt2-1layer.json"), {}) ==
        "the loop: as it was recorded");
  CHECK(answer_as("gpt2", {"--batch", "1"})["loop"] == json{{"recorded", false},
                                                            {"zero_grad", "to_none"},
                                                            {"gradients_during_forward", false},
                                                            {"kept", {"lm_head", "loss"}},
                                                            {"replaced_after", "loss"}});
  CHECK(answer_as("mlp", {"--mode", "inference"})["loop"].is_null());
  const Outcome batch = stowage_program({"batch", "mlp", "--gpu", "rtx3090", "--format", "json"});
  CHECK(json::parse(batch.out)["loop"]["replaced_after"] == "forward");
}

TEST_CASE("a Keras model is told of TensorFlow's runtime, unless a runtime is asked for") {
  const std::string model = testing::source_path("/tests/keras/cnn.json");
  const auto told = [&](std::vector<std::string> more) {
    return checked_as(model, std::move(more)).err.find("as PyTorch runs it") != std::string::npos;
  };
  CHECK(checked_as(model, {}).err.find("note: a Keras model is sized as PyTorch runs it\n"
                                       "  --runtime tensorflow sizes it as TensorFlow runs it\n") !=
        std::string::npos);
  CHECK_FALSE(told({"--runtime", "tensorflow"}));
  CHECK_FALSE(told({"--runtime", "pytorch"}));
}

}  // namespace stowage
