// Steps of all models of the catalogue, each with a setting, an optimizer and a precision in turn,
// so that every model, every setting, every optimizer, every precision and every runtime comes up:
// what `lower` writes is read back, and sized as it was.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "answers/sizing/lower.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

struct StepSetting {
  const char* name;
  void (*set)(LowerQuestion&);
};

constexpr StepSetting step_settings[] = {
    {"none", [](LowerQuestion&) {}},
    {"lora",
     [](LowerQuestion& q) { q.model.options.fine_tuning.lora = "r=4,targets=q_proj+v_proj"; }},
    {"lora on nf4",
     [](LowerQuestion& q) {
       q.model.options.fine_tuning.lora = "r=4,targets=q_proj+v_proj";
       q.model.options.fine_tuning.base = "nf4";
     }},
    {"lora on int8",
     [](LowerQuestion& q) {
       q.model.options.fine_tuning.lora = "r=4,targets=q_proj+v_proj";
       q.model.options.fine_tuning.base = "int8";
     }},
    {"lora on fp8",
     [](LowerQuestion& q) {
       q.model.options.fine_tuning.lora = "r=4,targets=q_proj+v_proj";
       q.model.options.fine_tuning.base = "fp8";
     }},
    {"checkpoint all", [](LowerQuestion& q) { q.model.options.fine_tuning.checkpoint = "all"; }},
    {"checkpoint every=2",
     [](LowerQuestion& q) { q.model.options.fine_tuning.checkpoint = "every=2"; }},
    {"checkpoint selective",
     [](LowerQuestion& q) { q.model.options.fine_tuning.checkpoint = "selective=attention"; }},
    {"chunked loss", [](LowerQuestion& q) { q.model.options.fine_tuning.chunked_loss = "4"; }},
    {"offloaded activations",
     [](LowerQuestion& q) { q.model.options.fine_tuning.offload_activations = "all"; }},
    {"offloaded without streams",
     [](LowerQuestion& q) { q.model.options.fine_tuning.offload_activations = "streams=false"; }},
    {"in backward",
     [](LowerQuestion& q) { q.model.options.fine_tuning.optimizer_in_backward = "true"; }},
    {"for-loop",
     [](LowerQuestion& q) { q.wishes.implementation = OptimizerImplementation::for_loop; }},
    {"foreach",
     [](LowerQuestion& q) { q.wishes.implementation = OptimizerImplementation::foreach; }},
    {"fused", [](LowerQuestion& q) { q.wishes.implementation = OptimizerImplementation::fused; }},
    {"accumulation", [](LowerQuestion& q) { q.wishes.accumulation = 3; }},
    {"replicas", [](LowerQuestion& q) { q.wishes.parallel = {.gpus = 2}; }},
    {"zero 1", [](LowerQuestion& q) { q.wishes.parallel = {.gpus = 4, .zero = 1}; }},
    {"zero 2", [](LowerQuestion& q) { q.wishes.parallel = {.gpus = 4, .zero = 2}; }},
    {"zero 3", [](LowerQuestion& q) { q.wishes.parallel = {.gpus = 4, .zero = 3}; }},
    {"zero 3 offloaded",
     [](LowerQuestion& q) { q.wishes.parallel = {.gpus = 4, .zero = 3, .offload = Offload::all}; }},
    {"fsdp", [](LowerQuestion& q) { q.wishes.parallel = {.gpus = 4, .fsdp = {.on = true}}; }},
    {"fsdp of the root",
     [](LowerQuestion& q) {
       q.wishes.parallel = {.gpus = 4, .fsdp = {.on = true, .by_block = false}};
     }},
    {"fsdp offloaded",
     [](LowerQuestion& q) {
       q.wishes.parallel = {.gpus = 4, .fsdp = {.on = true}, .offload = Offload::all};
     }},
    {"nhwc", [](LowerQuestion& q) { q.wishes.layout = TensorLayout::channels_last; }},
    {"benchmark", [](LowerQuestion& q) { q.wishes.convolutions.benchmark = true; }},
    {"deterministic", [](LowerQuestion& q) { q.wishes.convolutions.deterministic = true; }},
    {"without tf32", [](LowerQuestion& q) { q.wishes.convolutions.tf32 = false; }},
    {"inference", [](LowerQuestion& q) { q.wishes.mode = Mode::inference; }},
    {"ideal", [](LowerQuestion& q) { q.runtime = Runtime::ideal; }},
    {"stowage", [](LowerQuestion& q) { q.runtime = Runtime::stowage; }},
    {"tensorflow", [](LowerQuestion& q) { q.runtime = Runtime::tensorflow; }},
    {"theano", [](LowerQuestion& q) { q.runtime = Runtime::theano; }},
};

constexpr Precision all_precisions[] = {
    Precision::fp32,     Precision::fp64,     Precision::fp16,       Precision::bf16,
    Precision::amp_fp16, Precision::amp_bf16, Precision::mixed_fp16, Precision::mixed_bf16};

std::vector<std::string> catalogue_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(testing::source_path("/configs/models")))) {
    names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

struct Combination {
  std::string model;
  const StepSetting* setting = nullptr;
  std::string optimizer;
  Precision precision = Precision::fp32;

  [[nodiscard]] std::string words() const {
    return fmt::format("{}, {}, {}, {}", model, setting->name, optimizer, to_string(precision));
  }
};

/// With two blocks where the model takes their number, else whole.
Result<LowerAnswer> lowered(const Combination& of) {
  LowerQuestion question;
  question.model.source = of.model;
  question.model.configs = {testing::source_path("/configs")};
  question.model.options.precision = of.precision;
  question.wishes.optimizer = of.optimizer;
  of.setting->set(question);
  question.model.options.arguments = {{"layers", "2"}};
  auto small = answer(question);
  if (small) return small;
  question.model.options.arguments.clear();
  return answer(question);
}

/// Whether the step can be had; what is written of it must then read as the same.
bool comes_back(const Combination& of) {
  const auto made = lowered(of);
  if (!made) return false;
  CAPTURE(of.words());
  const StepDocument& document = made->document;
  const std::string text = write_step(document);
  const auto read = read_step(std::make_shared<const SourceText>(SourceText{"step.json", text}));
  if (!read) {
    FAIL_CHECK(render(read.error()));
    return false;
  }
  CHECK(write_step(*read) == text);
  CHECK(*read->graph == *document.graph);
  CHECK((read->evaluation == nullptr) == (document.evaluation == nullptr));
  const auto sized = size_storages(read->graph, 2);
  const auto before = size_storages(document.graph, 2);
  REQUIRE(sized.has_value() == before.has_value());
  if (sized) CHECK(sized->storage_bytes == before->storage_bytes);
  return true;
}

}  // namespace

TEST_CASE(
    "a step of every model, optimizer, precision and setting is read back as it was written") {
  const std::vector<std::string> models = catalogue_models();
  const std::vector<std::string_view> optimizers = optimizer_names();
  std::set<std::string> read_back;
  const auto try_it = [&](const Combination& of) {
    if (!comes_back(of)) return false;
    read_back.insert({"model " + of.model, "optimizer " + of.optimizer,
                      fmt::format("setting {}", of.setting->name),
                      fmt::format("precision {}", to_string(of.precision))});
    return true;
  };
  const auto combination = [&](std::size_t i, const std::string& model) {
    return Combination{model, &step_settings[(i + i / models.size()) % std::size(step_settings)],
                       std::string(optimizers[i % optimizers.size()]),
                       all_precisions[i % std::size(all_precisions)]};
  };
  // Twice, each model with the next setting the second time.
  for (std::size_t i = 0; i < 2 * models.size(); ++i) {
    Combination of = combination(i, models[i % models.size()]);
    if (try_it(of)) continue;
    of.precision = Precision::fp32;  // not with this setting, or not in this precision
    if (try_it(of)) continue;
    of.setting = &step_settings[0];
    if (try_it(of)) continue;
    of.optimizer = "sgd";
    try_it(of);
  }
  // What did not come up with a model of its turn comes up with a small one.
  std::vector<std::string> never;
  const auto require = [&](const std::string& what, const auto& change) {
    if (read_back.contains(what)) return;
    for (const char* const model : {"gpt2", "llama-3.2-1b", "mlp", "resnet18"}) {
      Combination of{model, &step_settings[0], "adam", Precision::fp32};
      change(of);
      if (try_it(of)) return;
    }
    never.push_back(what);
  };
  for (const StepSetting& setting : step_settings) {
    require(fmt::format("setting {}", setting.name),
            [&](Combination& of) { of.setting = &setting; });
  }
  for (const std::string_view name : optimizers) {
    require(fmt::format("optimizer {}", name), [&](Combination& of) { of.optimizer = name; });
  }
  for (const Precision precision : all_precisions) {
    require(fmt::format("precision {}", to_string(precision)),
            [&](Combination& of) { of.precision = precision; });
  }
  for (const std::string& model : models) {
    if (!read_back.contains("model " + model)) never.push_back("model " + model);
  }
  CHECK(fmt::format("{}", fmt::join(never, ", ")) == "");
}

}  // namespace stowage
