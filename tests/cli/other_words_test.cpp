// Options in the words of other tools.
#include "cli/options/other_words.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "cli/options/arguments.hpp"
#include "cli/options/option.hpp"
#include "estimator/optimizer/other_names.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using testing::Outcome;
using testing::stowage_program;

namespace {

using Words = std::vector<std::string>;

const CommandSpec& check_command() { return *find_command("check"); }

Words translated(const Words& words) { return in_own_words(check_command(), words); }

std::string complaint_about(const Words& words) {
  const auto parsed = parse_arguments(check_command(), words);
  return parsed ? "accepted" : render(parsed.error());
}

}  // namespace

TEST_CASE("Trainer's options are read as the options of their meaning") {
  CHECK(translated({"gpt2", "--bf16", "--gpu", "t4"}) ==
        Words{"gpt2", "--precision=amp-bf16", "--gpu", "t4"});
  CHECK(translated({"--fp16", "True"}) == Words{"--precision=amp-fp16"});
  CHECK(translated({"--bf16=False", "gpt2"}) == Words{"gpt2"});
  CHECK(translated({"--gradient_checkpointing", "True", "gpt2"}) ==
        Words{"--checkpoint=all", "gpt2"});
  CHECK(translated({"--gradient-checkpointing", "gpt2"}) == Words{"--checkpoint=all", "gpt2"});
  CHECK(translated({"--gradient-accumulation-steps", "4"}) == Words{"--accumulation=4"});
  CHECK(translated({"--per_device_train_batch_size=8"}) == Words{"--batch=8"});
  CHECK(translated({"--per-device-train-batch-size", "8"}) == Words{"--batch=8"});
  CHECK(translated({"--max_seq_length", "512"}) == Words{"--seq=512"});
  CHECK(translated({"--load-in-4bit"}) == Words{"--base=nf4"});
  CHECK(translated({"--load_in_8bit", "true"}) == Words{"--base=int8"});
  CHECK(translated({"--mixed_precision", "bf16"}) == Words{"--precision=amp-bf16"});
  CHECK(translated({"--mixed-precision", "no", "gpt2"}) == Words{"gpt2"});
  CHECK(translated({"--optim", "adamw_torch"}) == Words{"--optimizer=adamw"});
  CHECK(translated({"--optim=adamw_torch_fused"}) ==
        Words{"--optimizer=adamw", "--optimizer-implementation=fused"});
  CHECK(translated({"--optim", "adafactor"}) == Words{"--optimizer=adafactor-transformers"});
  CHECK(translated({"--optimizer", "adafactor"}) == Words{"--optimizer=adafactor"});
  CHECK(translated({"--tf32", "True"}) == Words{"--tf32=on"});
  CHECK(translated({"--tf32", "off"}) == Words{"--tf32=off"});
  CHECK(translated({"--tf32", "--verbose"}) == Words{"--tf32", "--verbose"});
}

TEST_CASE("what is known here, and what stands behind --, stays as it is") {
  const Words own{"gpt2", "--batch", "-5", "-v", "--checkpoint", "every=2", "--gpu=t4", "--bathc"};
  CHECK(translated(own) == own);
  CHECK(translated({"--", "--bf16"}) == Words{"--", "--bf16"});
  CHECK(translated({"--optimizer="}) == Words{"--optimizer="});
  CHECK(translated({"--optimizer"}) == Words{"--optimizer"});
}

TEST_CASE("any option may be written with underscores") {
  CHECK(translated({"--chunked_loss", "8", "--gpu_memory=8GiB"}) ==
        Words{"--chunked-loss", "8", "--gpu-memory=8GiB"});
}

TEST_CASE("optimizers go by the names of their classes, in any case") {
  for (const char* name : {"AdamW", "adamw_torch", "torch.optim.AdamW", "ADAMW", "adamw-torch"}) {
    CAPTURE(name);
    CHECK(optimizer_meant(name)->name == "adamw");
  }
  CHECK(optimizer_meant("SGD")->name == "sgd");
  CHECK(optimizer_meant("bnb.optim.PagedAdamW8bit")->name == "paged_adamw_8bit");
  CHECK(optimizer_meant("adamw_bnb_8bit")->name == "adamw8bit");
  CHECK(optimizer_meant("adamw_8bit")->name == "adamw8bit");
  CHECK(optimizer_meant("lion_32bit")->name == "lion");
  CHECK(optimizer_meant("keras.optimizers.RMSprop")->name == "rmsprop");
  CHECK(optimizer_meant("adamw_torch_fused")->implementation == OptimizerImplementation::fused);
  CHECK(!optimizer_meant("galore_adamw"));
  CHECK(!optimizer_meant(""));
}

TEST_CASE("choices are read in any case") {
  const auto arguments = parse_arguments(
      check_command(),
      Words{"gpt2", "--precision", "BF16", "--runtime", "PyTorch", "--mode", "Training"});
  REQUIRE(arguments);
  CHECK(arguments->text("precision") == "bf16");
  CHECK(arguments->text("runtime") == "pytorch");
  CHECK(arguments->text("mode") == "train");
}

TEST_CASE("words that mean nothing here, or another thing, say what to type") {
  CHECK(complaint_about({"gpt2", "--fp8"}) ==
        "<command line>: error: stowage check has no option '--fp8'\n"
        "  training in FP8 is not modelled; --base fp8 is for a frozen base beside --lora\n");
  CHECK(complaint_about({"gpt2", "--learning_rate", "3e-4"}) ==
        "<command line>: error: stowage check has no option '--learning_rate'\n"
        "  it changes no size: leave it out\n");
  CHECK(complaint_about({"--model_name_or_path", "gpt2"}) ==
        "<command line>: error: stowage check has no option '--model_name_or_path'\n"
        "  the model stands without an option: stowage check gpt2\n");
  const auto batch = parse_arguments(*find_command("gpus"), Words{"--per-device-train-batch-size"});
  REQUIRE(!batch);
  CHECK(render(batch.error()) ==
        "<command line>: error: stowage gpus has no option '--per-device-train-batch-size'\n"
        "  it is --batch here, which stowage gpus does not take\n");
}

TEST_CASE("every record of another tool's word means an option, or is explained") {
  std::set<std::string_view> names;
  for (const OtherWord& word : other_words()) {
    CAPTURE(word.name);
    CHECK(names.insert(word.name).second);
    CHECK(word.name.find('_') == word.name.npos);
    CHECK(word.option.empty() != word.hint.empty());
    if (word.option.empty()) continue;
    const OptionSpec* const option = find_option(word.option);
    REQUIRE(option != nullptr);
    // What it stands for is taken.
    const auto takes = [&](std::string_view value) {
      if (option->type != OptionType::choice || value.empty()) return true;
      return std::ranges::find(option->choices, value) != option->choices.end();
    };
    CHECK(takes(word.on));
    for (const auto& [given, meant] : word.values) CHECK(takes(meant));
  }
}

TEST_CASE("a line as Trainer's users type it gives the answer of the line in our words") {
  const Outcome theirs =
      stowage_program({"check", "mlp", "--gpu", "rtx3090", "--bf16", "--optim", "adamw_torch",
                       "--per_device_train_batch_size", "8", "--gradient_accumulation_steps", "2"});
  const Outcome ours =
      stowage_program({"check", "mlp", "--gpu", "rtx3090", "--precision", "amp-bf16", "--optimizer",
                       "adamw", "--batch", "8", "--accumulation", "2"});
  CHECK(theirs.exit_code == 0);
  CHECK(theirs.out == ours.out);
}

TEST_CASE("a description names its optimizer as code does") {
  const std::string net =
      "model: net\ninputs: {x: {shape: [batch, 4]}, y: {shape: [batch], dtype: int64}}\nlayers:\n"
      "  - linear: {name: fc, from: x, features: 3}\nloss: {cross_entropy: {from: [fc, y]}}\n"
      "train: {optimizer: ";
  const auto out = [&](const std::string& optimizer) {
    const Outcome outcome = stowage_program({"check", "-", "--gpu", "rtx3090", "--format=json"},
                                            {.input = net + optimizer + "}\n"});
    CHECK(outcome.exit_code == 0);
    return outcome.out;
  };
  CHECK(out("torch.optim.AdamW") == out("adamw"));
  CHECK(out("adamw_torch_fused") == out("adamw, implementation: fused"));
  CHECK(out("SGD") == out("sgd"));
}

TEST_CASE("the documentation has every record") {
  const std::string page = testing::file_text(testing::source_path("/docs/other-words.md"));
  for (const OtherWord& word : other_words()) {
    CAPTURE(word.name);
    CHECK(page.find("`--" + std::string(word.name) + "`") != std::string::npos);
  }
}

}  // namespace stowage
