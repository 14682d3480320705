#include "answers/exporting/pytorch_plan.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "answers/exporting/export.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

const std::string small_plan = R"({"format": "stowage-pytorch-plan", "version": 1,
 "written_by": "stowage TEST",
 "model": "resnet50", "names": "recorded", "batch": 256, "micro_batches": 4, "precision": "amp-bf16",
 "optimizer": "momentum", "step": "00", "gpu": {"name": "GeForce RTX 3060", "available_bytes": 123},
 "offload": [
  {"saved": [{"key": "conv1#0"}], "bytes": [0, 16], "start": "conv1#0", "release": null, "fetch": null}
 ],
 "checkpoint": [{"module": "layer2.0"}, {"module": "layer2.1"}],
 "optimizer_on_cpu": null}
)";

Result<PyTorchPlan> read(const std::string& text) {
  return read_pytorch_plan(std::make_shared<const SourceText>(SourceText{"p.yaml", text}));
}

/// The plan with one part of its text replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = small_plan;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string mistake(const std::string& text) {
  const auto plan = read(text);
  if (plan) return "";
  return plan.error().front().message;
}

}  // namespace

TEST_CASE("a plan for PyTorch is told by its first member") {
  CHECK(is_pytorch_plan(small_plan));
  CHECK(is_pytorch_plan("\n{\n  \"format\":\"stowage-pytorch-plan\"}"));
  CHECK_FALSE(is_pytorch_plan("{\"format\": \"stowage-step\"}"));
  CHECK_FALSE(is_pytorch_plan("{\"model\": 1, \"format\": \"stowage-pytorch-plan\"}"));
  CHECK_FALSE(is_pytorch_plan(""));
}

TEST_CASE("a plan for PyTorch is read as far as settings can say it") {
  const auto plan = read(small_plan);
  REQUIRE_MESSAGE(plan, render(plan.error()));
  const EngineStep step = engine_step(*plan);
  CHECK(step.model == "resnet50");
  CHECK(step.batch == 64);
  CHECK(step.accumulation == 4);
  CHECK(step.precision == Precision::amp_bf16);
  CHECK(step.lowering.optimizer.momentum == 0.9);
  CHECK(unexpressed_decisions(*plan) ==
        std::vector<std::string>{"1 saved storages that leave the GPU",
                                 "2 checkpointed modules: layer2.0 and others"});
}

TEST_CASE("mistakes in a plan for PyTorch") {
  CHECK(mistake(with("\"version\": 1", "\"version\": 2")) ==
        "version 2 of plans for PyTorch is not known; 1 is");
  CHECK(mistake(with("\"batch\": 256", "\"batch\": 255")) == "a batch of 255 has no 4 equal parts");
  CHECK(mistake(with("\"batch\": 256", "\"batch\": 0")) ==
        "'batch' is out of range; it is from 1 to 1,099,511,627,776");
  CHECK(mistake(with("\"batch\": 256, ", "")) == "'batch' is missing");
  CHECK(mistake(with("\"batch\": 256", "\"batch\": \"x\"")) ==
        "'batch' is a whole number, and this is a text");
  CHECK(mistake(with("amp-bf16", "fp8")) == "'fp8' is no precision");
  CHECK(mistake(with("momentum", "muon")) == "'muon' is no optimizer");
  CHECK(mistake(with("\"module\": \"layer2.0\"", "\"path\": 1")) ==
        "a checkpoint has a member 'module', a text");
  CHECK(mistake("[1]") == "a plan for PyTorch is an object");
  CHECK_FALSE(mistake("{\"format\":").empty());
}

TEST_CASE("a plan for PyTorch is exported unsized, and that is said") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  std::ofstream(path) << small_plan;
  ExportQuestion question;
  question.form = ExportForm::trl;
  question.written_by = "stowage TEST";
  question.step.model.source = path;
  const auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK(whole_text(*found) ==
        R"(# Written by stowage TEST for resnet50 on GeForce RTX 3060.
# Beside the file:
#   of the plan it cannot say 1 saved storages that leave the GPU; stowage.apply carries it out
#   of the plan it cannot say 2 checkpointed modules: layer2.0 and others; stowage.apply carries it out
#   the model, the data and the learning rate: keys model_name_or_path, dataset_name and learning_rate, which change no memory that is counted here
# Not counted:
#   what this configuration takes: the plan holds no model, and an export of the model itself counts it
#   SFTTrainer's loss 'nll', which does not make the logits whole: it takes less than is counted
per_device_train_batch_size: 64
gradient_accumulation_steps: 4
packing: false
bf16: true
fp16: false
dtype: "float32"
optim: "sgd"
optim_args: "momentum=0.9"
gradient_checkpointing: false
activation_offloading: false
)");
  question.form = ExportForm::tensorflow;
  const auto refused = answer(question);
  REQUIRE_FALSE(refused);
  CHECK(render(refused.error()) ==
        path +
            ": error: a plan for PyTorch is not exported to tensorflow\n"
            "  stowage.apply carries it out; the forms of engines that train take its settings\n");
}

}  // namespace stowage
