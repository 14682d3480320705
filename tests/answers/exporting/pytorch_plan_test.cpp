#include "answers/exporting/pytorch_plan.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "answers/exporting/export.hpp"
#include "planner/pytorch/pytorch_plan_file.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

PytorchPlan small_plan() {
  PytorchPlan plan{.stowage_version = "TEST",
                   .model = "resnet50",
                   .names_are_recorded = true,
                   .batch = 64,
                   .micro_batches = 4,
                   .precision = "amp-bf16",
                   .optimizer = "momentum",
                   .card = "GeForce RTX 3060",
                   .checkpoint = {"layer2.0", "layer2.1"}};
  plan.offload.push_back({.saved = {{"conv1#0", DataType::float32, {batch_symbol}}},
                          .bytes = Affine(0, 16),
                          .start = "conv1#0"});
  return plan;
}

}  // namespace

TEST_CASE("a plan for PyTorch is a step as far as settings can say it") {
  const auto step = engine_step(small_plan());
  REQUIRE_MESSAGE(step, render(step.error()));
  CHECK(step->model == "resnet50");
  CHECK(step->batch == 64);
  CHECK(step->accumulation == 4);
  CHECK(step->precision == Precision::amp_bf16);
  CHECK(step->lowering.optimizer.momentum == 0.9);
  PytorchPlan plan = small_plan();
  plan.optimizer_on_cpu = true;
  plan.stream = {{"h.0", {"h.0.weight"}, Bytes(512)}, {"h.1", {"h.1.weight"}, Bytes(512)}};
  CHECK(unexpressed_decisions(plan) ==
        std::vector<std::string>{
            "1 storage of saved tensors on the host", "2 checkpointed modules: layer2.0 and others",
            "2 blocks whose parameters are streamed: h.0 and others", "updates on the CPU"});
}

TEST_CASE("a plan with words that are not known is no step") {
  PytorchPlan plan = small_plan();
  plan.precision = "fp8";
  CHECK(engine_step(plan).error().front().message == "'fp8' is no precision");
  plan = small_plan();
  plan.optimizer = "muon";
  CHECK(engine_step(plan).error().front().message == "'muon' is no optimizer");
  plan = small_plan();
  plan.trains = false;
  CHECK(engine_step(plan).error().front().message ==
        "a plan of an inference has no settings for an engine that trains");
}

TEST_CASE("a plan for PyTorch is exported unsized, and that is said") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  std::ofstream(path) << write_pytorch_plan(small_plan());
  ExportQuestion question;
  question.form = ExportForm::trl;
  question.written_by = "stowage TEST";
  question.step.model.source = path;
  const auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK(whole_text(*found) ==
        R"(# Written by stowage TEST for resnet50 on GeForce RTX 3060.
# Beside the file:
#   of the plan it cannot say 1 storage of saved tensors on the host; stowage.apply carries it out
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
