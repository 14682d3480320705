// Plans for PyTorch as configurations of engines: what a plan decides is said as far as the engine
// can, named where it cannot, and what the configuration takes is counted.
#include "answers/exporting/pytorch_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "estimator/document/step_hash.hpp"
#include "planner/pytorch/pytorch_plan_file.hpp"
#include "tests/answers/exporting/export_questions.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

/// A plan of small_llama's step in two micro-batches that changes nothing else.
ExportQuestion planned_llama(ExportForm form, Precision precision = Precision::amp_bf16) {
  ExportQuestion question = testing::small_llama(form);
  question.step.model.options.precision = precision;
  question.step.wishes.optimizer = "adamw";
  const CheckQuestion check{.step = question.step, .card = *question.card};
  const auto setup = set_up_check(check);
  REQUIRE_MESSAGE(setup, render(setup.error()));
  const auto step = size_step(setup->step.document.graph, 4, setup->workspaces.source());
  PytorchPlan plan{.stowage_version = "TEST",
                   .model = "llama-3.2-1b",
                   .batch = 2,
                   .micro_batches = 2,
                   .precision = std::string(to_string(precision)),
                   .optimizer = "adamw",
                   .step_hash = step_hash(*step),
                   .card = "H100"};
  plan.question = PlannedQuestion{"llama-3.2-1b", {}};
  const auto source = std::make_shared<const SourceText>(SourceText{"p.yaml", ""});
  question.plan = NamedPytorchPlan{source, std::move(plan)};
  return question;
}

OffloadedStorage offloaded() {
  return {.saved = {{"model.norm#0", DataType::float32, {batch_symbol}}},
          .bytes = Affine(0, 1 << 20),
          .start = "model.norm#0"};
}

ExportAnswer exported(const ExportQuestion& question) {
  auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK(found->of_plan);
  return *std::move(found);
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

Bytes device_bytes(const ExportQuestion& question) {
  return exported(question).verdict()->device_bytes;
}

}  // namespace

TEST_CASE("a plan's micro-batches are the engine's accumulation, and are counted so") {
  const ExportQuestion question = planned_llama(ExportForm::trl);
  const ExportAnswer found = exported(question);
  CHECK(has_line(found.body, "per_device_train_batch_size: 2"));
  CHECK(has_line(found.body, "gradient_accumulation_steps: 2"));
  CHECK(has_line(found.body, "gradient_checkpointing: false"));
  CHECK(found.fits());
  CHECK(found.head.front() == "Written by stowage TEST for llama-3.2-1b on H100 PCIe 80GB.");
  CHECK(found.head[1].starts_with("It fits: "));
  CheckQuestion same{.step = question.step, .card = *question.card, .batch = 2};
  same.step.wishes.accumulation = 2;
  const auto check = answer(same);
  REQUIRE(check.has_value());
  CHECK(found.verdict()->device_bytes == check->report.device_bytes);
}

TEST_CASE("checkpointed modules are the engine's checkpoints of all blocks") {
  ExportQuestion question = planned_llama(ExportForm::torchtitan);
  const Bytes without = device_bytes(question);
  question.plan->plan.checkpoint = {"layers.0", "layers.1"};
  const ExportAnswer all = exported(question);
  CHECK(all.body.find("[activation_checkpoint]\nmode = \"full\"\n") != std::string::npos);
  CHECK(all.verdict()->device_bytes < without);
  CHECK(std::ranges::none_of(all.remarks, [](const std::string& remark) {
    return remark.starts_with("of the plan it cannot say");
  }));

  question.plan->plan.checkpoint = {"layers.0"};
  const ExportAnswer some = exported(question);
  CHECK(some.body == all.body);
  CHECK(some.remarks.front() ==
        "of the plan it cannot say that 1 of 2 blocks run again: here all of them do; "
        "stowage.apply carries it out");

  question.plan->plan.checkpoint = {"layers.0.mlp", "layers.1.mlp"};
  const ExportAnswer others = exported(question);
  CHECK(others.body == all.body);
  CHECK(others.remarks.front() ==
        "of the plan it cannot say which modules run again (layers.0.mlp and 1 more): here "
        "the 2 repeated blocks do; stowage.apply carries it out");
}

TEST_CASE("updates on the CPU are each engine's own offload, of a single GPU") {
  const auto body_of = [](ExportForm form, Precision precision) {
    ExportQuestion question = planned_llama(form, precision);
    const Bytes before = form == ExportForm::fsdp ? Bytes() : device_bytes(question);
    question.plan->plan.optimizer_on_cpu = true;
    const ExportAnswer found = exported(question);
    CHECK(std::ranges::none_of(found.remarks, [](const std::string& remark) {
      return remark.find("updates on the CPU") != std::string::npos;
    }));
    if (form != ExportForm::fsdp) CHECK(found.verdict()->device_bytes != before);
    return found.body;
  };
  const std::string deepspeed = body_of(ExportForm::deepspeed, Precision::amp_bf16);
  CHECK(deepspeed.find("\"stage\": 2") != std::string::npos);
  CHECK(deepspeed.find("\"offload_optimizer\": {\n      \"device\": \"cpu\"") != std::string::npos);
  CHECK(deepspeed.find("\"train_batch_size\": 4") != std::string::npos);
  const std::string accelerate = body_of(ExportForm::accelerate, Precision::amp_bf16);
  CHECK(has_line(accelerate, "distributed_type: \"DEEPSPEED\""));
  CHECK(has_line(accelerate, "  offload_optimizer_device: \"cpu\""));
  CHECK(has_line(accelerate, "num_processes: 1"));
  CHECK(body_of(ExportForm::axolotl, Precision::amp_bf16).find("offload_optimizer:") !=
        std::string::npos);
  CHECK(body_of(ExportForm::trl, Precision::amp_bf16).find("offload_optimizer:") !=
        std::string::npos);
  CHECK(has_line(body_of(ExportForm::fsdp, Precision::fp32), "  fsdp_offload_params: true"));
  CHECK(body_of(ExportForm::megatron, Precision::fp32).find("--optimizer-cpu-offload") !=
        std::string::npos);
}

TEST_CASE("engines update all parameters on the CPU, and after backward") {
  ExportQuestion question = planned_llama(ExportForm::deepspeed, Precision::amp_bf16);
  question.plan->plan.optimizer_on_cpu = true;
  const ExportAnswer all = exported(question);
  question.plan->plan.cpu_parameters = {"a", "b"};
  question.plan->plan.early_updates = true;
  const ExportAnswer some = exported(question);
  CHECK(some.body == all.body);
  REQUIRE(some.remarks.size() >= 2);
  CHECK(some.remarks[0] ==
        "of the plan it cannot say that only 2 parameters are updated on the CPU: here all "
        "parameters are; stowage.apply carries it out");
  CHECK(some.remarks[1] ==
        "of the plan it cannot say updates as soon as gradients are whole: here they come after "
        "backward; stowage.apply carries it out");
  question.plan->plan.cpu_parameters = {"a"};
  CHECK(exported(question).remarks[0].starts_with(
      "of the plan it cannot say that only a is updated on the CPU: here all parameters are"));
}

TEST_CASE("what an engine cannot carry out is named") {
  ExportQuestion question = planned_llama(ExportForm::torchtitan);
  question.plan->plan.optimizer_on_cpu = true;
  question.plan->plan.offload = {offloaded()};
  question.plan->plan.expandable_segments = true;
  const ExportAnswer titan = exported(question);
  REQUIRE(titan.remarks.size() > 2);
  CHECK(titan.remarks[0] ==
        "of the plan it cannot say which saved tensors lie on the host, 4.0 MiB each way; "
        "stowage.apply carries it out");
  CHECK(titan.remarks[1] ==
        "of the plan it cannot say updates on the CPU; stowage.apply carries it out");
  CHECK(std::ranges::count(titan.unsaid,
                           "`alloc_conf` expandable_segments:True: the environment variable "
                           "PYTORCH_ALLOC_CONF") == 1);

  question.form = ExportForm::trl;
  question.plan->plan.optimizer_on_cpu = false;
  const ExportAnswer trl = exported(question);
  CHECK(has_line(trl.body, "activation_offloading: true"));
  CHECK(trl.remarks.front() ==
        "of the plan it cannot say which saved tensors leave the GPU, and when: "
        "`offload_activations` moves all of them; stowage.apply carries it out");
  question.plan->plan.offload.clear();
  CHECK(trl.verdict()->device_bytes < device_bytes(question));
}

TEST_CASE("a configuration that does not fit the plan's card says so first") {
  ExportQuestion question = planned_llama(ExportForm::accelerate);
  question.card->name.clear();
  question.card->cuda_total = 1_GiB;
  question.card->compute_capability = 9.0;
  const ExportAnswer found = exported(question);
  CHECK_FALSE(found.fits());
  CHECK(found.head[1].starts_with("It does not fit: "));
}

TEST_CASE("a plan of another step, or of no model that is named, is not sized") {
  const auto refusal = [](const ExportQuestion& question) {
    const auto found = answer(question);
    REQUIRE_FALSE(found);
    return render(found.error());
  };
  ExportQuestion question = planned_llama(ExportForm::trl);
  question.step.model.options.seq = 32;
  CHECK(refusal(question) ==
        "p.yaml: error: the plan is of another step than 'llama-3.2-1b' has now\n"
        "  stowage plan makes one of the step as it is\n");
  question = planned_llama(ExportForm::trl);
  question.step.model.source = "no-such-model";
  CHECK(refusal(question).starts_with(
      "p.yaml: error: what the plan was made of cannot be sized again: "));
  question = planned_llama(ExportForm::trl);
  question.plan->plan.question.reset();
  CHECK(refusal(question) ==
        "p.yaml: error: the plan does not say of which file or model it was made, so that nothing "
        "can be sized\n"
        "  stowage plan writes that into a plan of a file or of a model that is named\n");
  question = planned_llama(ExportForm::tensorflow);
  CHECK(refusal(question) ==
        "p.yaml: error: a plan for PyTorch is not exported to tensorflow\n"
        "  stowage.apply carries it out; the forms of engines that train take its settings\n");
}

TEST_CASE("a plan of a step's file has its blocks run again and its optimizer offloaded") {
  const testing::TemporaryFolder folder;
  ExportQuestion question = planned_llama(ExportForm::deepspeed);
  const auto setup = set_up_check({.step = question.step, .card = *question.card});
  REQUIRE(setup.has_value());
  const std::string path = folder.path("s.json");
  std::ofstream(path) << write_step(setup->step.document);
  const Bytes described = [&] {
    ExportQuestion changed = question;
    changed.plan->plan.checkpoint = {"model.layers.0", "model.layers.1"};
    changed.plan->plan.optimizer_on_cpu = true;
    return device_bytes(changed);
  }();
  question.step.model = {.source = path};
  question.step.wishes = {};
  CHECK(device_bytes(question) == device_bytes(planned_llama(ExportForm::deepspeed)));
  question.plan->plan.checkpoint = {"model.layers.0", "model.layers.1"};
  question.plan->plan.optimizer_on_cpu = true;
  const ExportAnswer found = exported(question);
  CHECK(found.body.find("\"activation_checkpointing\"") != std::string::npos);
  CHECK(found.verdict()->device_bytes == described);
  question.form = ExportForm::fsdp;
  const auto refused = answer(question);
  REQUIRE_FALSE(refused);
  CHECK(render(refused.error()) ==
        "p.yaml: error: a step's file is not sized with FSDP\n"
        "  `to` accelerate writes a configuration without it\n");
}

}  // namespace stowage
