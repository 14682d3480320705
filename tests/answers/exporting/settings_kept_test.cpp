// No setting is dropped silently: whatever is changed in a question changes the file, or what is
// said beside it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <utility>
#include <vector>

#include "tests/answers/exporting/export_questions.hpp"

namespace stowage {

namespace {

using testing::sharded_llama;
using testing::small_llama;

using Change = std::pair<std::string, std::function<void(ExportQuestion&)>>;

FineTuningTexts& tuning(ExportQuestion& question) {
  return question.step.model.options.fine_tuning;
}
DataParallel& parallel(ExportQuestion& question) { return question.step.wishes.parallel; }

std::vector<Change> step_changes() {
  return {
      {"batch", [](auto& q) { q.batch = 3; }},
      {"accumulation", [](auto& q) { q.step.wishes.accumulation = 4; }},
      {"seq", [](auto& q) { q.step.model.options.seq = 128; }},
      {"set", [](auto& q) { q.step.model.options.arguments["layers"] = "3"; }},
      {"optimizer", [](auto& q) { q.step.wishes.optimizer = "momentum"; }},
      {"amsgrad", [](auto& q) { q.step.wishes.optimizer = "amsgrad"; }},
      {"fused", [](auto& q) { q.step.wishes.implementation = OptimizerImplementation::fused; }},
      {"for-loop",
       [](auto& q) { q.step.wishes.implementation = OptimizerImplementation::for_loop; }},
      {"fused momentum",
       [](auto& q) {
         q.step.wishes.optimizer = "momentum";
         q.step.wishes.implementation = OptimizerImplementation::fused;
       }},
      {"master gradients", [](auto& q) { q.step.wishes.master_gradients = true; }},
      {"layout", [](auto& q) { q.step.wishes.layout = TensorLayout::channels_last; }},
      {"deterministic", [](auto& q) { q.step.wishes.convolutions.deterministic = true; }},
      {"benchmark", [](auto& q) { q.step.wishes.convolutions.benchmark = true; }},
      {"tf32", [](auto& q) { q.step.given.tf32 = q.step.wishes.convolutions.tf32 = true; }},
      {"alloc_conf", [](auto& q) { q.step.process.allocator = AllocatorSettings{}; }},
      {"gpus", [](auto& q) { parallel(q).gpus = 4; }},
  };
}

std::vector<Change> tuning_changes() {
  std::vector<Change> changes;
  const auto add = [&](const std::string& name, auto member, const std::string& text) {
    changes.emplace_back(name, [=](ExportQuestion& q) { tuning(q).*member = text; });
  };
  using T = FineTuningTexts;
  for (const char* text : {"all", "every=2", "layers=layers.1", "selective=attention"}) {
    add(text, &T::checkpoint, text);
  }
  for (const char* text :
       {"r=4,targets=q_proj", "r=8,targets=q_proj", "r=4,targets=v_proj", "r=4,targets=all-linear",
        "r=4,targets=q_proj,alpha=32", "r=4,targets=q_proj,alpha=2.5",
        "r=4,targets=q_proj,bias=all", "r=4,targets=q_proj,dropout=0.5",
        "r=4,targets=q_proj,use_rslora=true", "r=4,targets=q_proj,use_dora=true",
        "r=4,targets=q_proj,dtype=bf16", "r=4,targets=q_proj,rank_pattern=q_proj:2",
        "r=4,targets=q_proj,alpha_pattern=q_proj:2",
        "r=4,targets=q_proj,modules_to_save=lm_head"}) {
    add(text, &T::lora, text);
  }
  for (const char* text : {"nf4", "fp4", "nf4,double_quant=false", "int8", "fp8", "gptq",
                           "gptq,bits=8", "nf4,skip=q_proj"}) {
    changes.emplace_back(text, [=](ExportQuestion& q) {
      tuning(q).base = text;
      tuning(q).lora = "r=4,targets=v_proj";
      q.step.model.options.precision = Precision::bf16;
    });
  }
  add("layer_dtype", &T::layer_dtype, "*norm*=fp32");
  for (const char* text : {"8", "4", "8,compiled"}) add(text, &T::chunked_loss, text);
  for (const char* text : {"all", "stash=2", "min_bytes=4096", "streams=false"}) {
    add(text, &T::offload_activations, text);
  }
  add("optimizer_in_backward", &T::optimizer_in_backward, "true");
  for (const Precision precision :
       {Precision::bf16, Precision::fp16, Precision::amp_bf16, Precision::amp_fp16,
        Precision::mixed_bf16, Precision::mixed_fp16, Precision::fp64}) {
    changes.emplace_back(std::string(to_string(precision)),
                         [=](ExportQuestion& q) { q.step.model.options.precision = precision; });
  }
  return changes;
}

std::vector<Change> sharding_changes() {
  return {
      {"zero 1", [](auto& q) { parallel(q) = {.gpus = 8, .zero = 1}; }},
      {"zero 3", [](auto& q) { parallel(q) = {.gpus = 8, .zero = 3}; }},
      {"offload optimizer", [](auto& q) { parallel(q).offload = Offload::optimizer; }},
      {"offload all",
       [](auto& q) { parallel(q) = {.gpus = 8, .zero = 3, .offload = Offload::all}; }},
      {"offload all by FSDP", [](auto& q) { parallel(q).offload = Offload::all; }},
      {"not pinned",
       [](auto& q) {
         parallel(q).offload = parallel(q).fsdp.on ? Offload::all : Offload::optimizer;
         parallel(q).pinned = false;
       }},
      {"wrap=root", [](auto& q) { parallel(q).fsdp.by_block = false; }},
      {"reshard=false", [](auto& q) { parallel(q).fsdp.reshards_after_forward = false; }},
      {"reshard=4", [](auto& q) { parallel(q).fsdp.reshards_among = 4; }},
      {"reduce=fp16", [](auto& q) { parallel(q).fsdp.reduce_type = DataType::float16; }},
      {"forward-prefetch", [](auto& q) { parallel(q).fsdp.forward_prefetch = 2; }},
      {"backward-prefetch", [](auto& q) { parallel(q).fsdp.backward_prefetch = 2; }},
  };
}

struct Told {
  std::string refusal;  ///< or all that is said
  std::string file;
  std::vector<std::string> lists;
  bool operator==(const Told&) const = default;
};

Told told(const ExportQuestion& question) {
  const auto found = answer(question);
  if (!found) return {.refusal = render(found.error())};
  Told all{.file = found->body, .lists = found->unsaid};
  all.lists.insert(all.lists.end(), found->remarks.begin(), found->remarks.end());
  return all;
}

void check_changes(const ExportQuestion& base, const std::vector<Change>& changes) {
  const Told before = told(base);
  REQUIRE_MESSAGE(before.refusal.empty(), before.refusal);
  std::vector<std::pair<std::string, Told>> seen{{"nothing", before}};
  for (const auto& [name, change] : changes) {
    ExportQuestion changed = base;
    change(changed);
    const Told after = told(changed);
    if (!after.refusal.empty()) continue;
    for (const auto& earlier : seen) {
      const std::string told_twice =
          fmt::format("{}: {} is told as {}", row_of(base.form).name, name, earlier.first);
      CHECK_MESSAGE(after != earlier.second, told_twice);
    }
    seen.emplace_back(name, after);
  }
}

constexpr std::array training_forms{ExportForm::deepspeed,  ExportForm::accelerate,
                                    ExportForm::torchtitan, ExportForm::megatron,
                                    ExportForm::axolotl,    ExportForm::trl};

}  // namespace

TEST_CASE("a setting of the step changes the file or what is listed beside it") {
  for (const ExportForm form : training_forms) check_changes(small_llama(form), step_changes());
}

TEST_CASE("a setting of fine-tuning changes the file or what is listed beside it") {
  for (const ExportForm form : training_forms) check_changes(small_llama(form), tuning_changes());
}

TEST_CASE("a setting of sharding changes the file or what is listed beside it") {
  for (const ExportForm form : {ExportForm::deepspeed, ExportForm::accelerate, ExportForm::megatron,
                                ExportForm::axolotl, ExportForm::trl}) {
    auto changes = sharding_changes();
    std::erase_if(changes, [](const Change& change) {
      return change.first.find("FSDP") != std::string::npos ||
             change.first.find("=") != std::string::npos ||
             change.first.find("prefetch") != std::string::npos;
    });
    check_changes(sharded_llama(form, 2, false), changes);
  }
  for (const ExportForm form : {ExportForm::fsdp, ExportForm::accelerate, ExportForm::torchtitan,
                                ExportForm::axolotl, ExportForm::trl}) {
    auto changes = sharding_changes();
    std::erase_if(changes,
                  [](const Change& change) { return change.first == "offload optimizer"; });
    check_changes(sharded_llama(form, 0, true), changes);
  }
}

}  // namespace stowage
