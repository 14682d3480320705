// A step file holds all of a step: what is read back equals what was written.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "estimator/document/make_document.hpp"
#include "estimator/document/readable_step.hpp"
#include "estimator/document/step_document.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/recorded_step.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

using testing::described;
using testing::shipped;

std::vector<std::string> shipped_models() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::source_path("/configs/models"))) {
    names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

StepDocument document_of(const ModelGraph& model, const StepWishes& wishes,
                         const DocumentParts& parts = {}) {
  const auto chosen = choose_step(model, wishes);
  REQUIRE(chosen);
  const Runtime runtime =
      wishes.kernels == KernelSet::pytorch ? Runtime::pytorch : Runtime::stowage;
  auto document = make_document(model, *chosen, runtime, std::nullopt, parts);
  if (!document) FAIL(render(document.error()));
  return *std::move(document);
}

StepDocument read_back(const std::string& text) {
  auto document = read_step(std::make_shared<const SourceText>(SourceText{"step.json", text}));
  if (!document) FAIL(render(document.error()));
  return *std::move(document);
}

void check_round_trip(const StepDocument& document) {
  const std::string text = write_step(document);
  const StepDocument read = read_back(text);
  CHECK(*read.graph == *document.graph);
  REQUIRE((read.evaluation == nullptr) == (document.evaluation == nullptr));
  if (document.evaluation) CHECK(*read.evaluation == *document.evaluation);
  CHECK(read.layers == document.layers);
  CHECK(read.result_bytes == document.result_bytes);
  CHECK(write_step(read) == text);
}

}  // namespace

TEST_CASE("a step file of every model and kernel set is read back as it was") {
  for (const std::string& name : shipped_models()) {
    CAPTURE(name);
    const ModelGraph model = shipped(name);
    for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
      for (const Mode mode : {Mode::train, Mode::inference}) {
        if (mode == Mode::train && !model.loss.valid()) continue;
        CAPTURE(to_string(kernels));
        CAPTURE(to_string(mode));
        check_round_trip(document_of(model, {.mode = mode, .kernels = kernels}));
      }
    }
  }
}

TEST_CASE("settings are read back as they were") {
  const ModelGraph resnet = shipped("resnet18"),
                   gpt2 = shipped("gpt2", {.precision = Precision::amp_bf16});
  const std::vector<StepWishes> wishes{
      {.optimizer = "adamw", .accumulation = 5, .compute_capability = 9.0},
      {.optimizer = "adam", .implementation = OptimizerImplementation::fused},
      {.parallel = {.gpus = 8, .zero = 3}, .convolutions = {.tf32 = false, .benchmark = true}},
      {.optimizer = "momentum", .accumulation = 2, .kernels = KernelSet::stowage}};
  for (const StepWishes& wish : wishes) {
    check_round_trip(document_of(gpt2, wish));
    check_round_trip(document_of(resnet, wish));
  }
  check_round_trip(document_of(resnet, {.layout = TensorLayout::channels_last}));
}

TEST_CASE("what goes beside the graph is read back as it was") {
  StepDocument document = document_of(shipped("mlp"), {});
  document.written_by = "another \"program\" \\ 2";
  document.source = "here";
  document.seq = 77;
  document.batch = 16;
  document.warnings = {
      {.severity = Severity::warning,
       .message = "layer 'a' is unused",
       .span = {std::make_shared<const SourceText>(SourceText{"a.yaml", ""}), 3, 5},
       .hint = "remove it"}};
  const StepDocument read = read_back(write_step(document));
  CHECK(read.written_by == document.written_by);
  CHECK(read.source == "here");
  CHECK(read.seq == 77);
  CHECK(read.batch == 16);
  CHECK_FALSE(read.fixed_batch);
  CHECK(read.precision == Precision::fp32);
  CHECK(render(read.warnings) == "a.yaml:3:5: warning: layer 'a' is unused\n  remove it\n");
}

TEST_CASE("the modules that ran are read back as they were") {
  StepDocument document = document_of(shipped("mlp"), {});
  const TensorView input = document.graph->inputs.front();
  document.modules = {{.path = "MLP", .is_sequence = true, .inputs = {{0, input, NodeId{3}}}},
                      {.path = "0", .is_sequence = false, .inputs = {}}};
  CHECK(read_back(write_step(document)).modules == document.modules);
  check_round_trip(document);
}

TEST_CASE("a step recorded at one batch is read back as it was") {
  for (const char* name : {"resnet18", "gpt2", "lstm-lm"}) {
    for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
      CAPTURE(name);
      CAPTURE(to_string(kernels));
      const StepDocument step =
          testing::recorded(document_of(shipped(name), {.kernels = kernels}), 3);
      check_round_trip(step);
      CHECK(read_back(write_step(step)).fixed_batch);
      CHECK(read_back(write_step(step)).batch == 3);
    }
  }
}

// A plan of gpt2-xl with 4 micro-batches had 2.5 MB when it did not hold its step.
TEST_CASE("the step of a large model with micro-batches is a small file") {
  const ModelGraph model = shipped("gpt2-xl");
  for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
    ChosenStep chosen = *choose_step(model, {.kernels = kernels});
    chosen.lowering.micro_batches = 4;
    const Runtime runtime = kernels == KernelSet::pytorch ? Runtime::pytorch : Runtime::stowage;
    const auto document = make_document(model, chosen, runtime, std::nullopt);
    REQUIRE(document);
    CHECK(document->graph->nodes.size() > 10'000);
    CHECK(write_step(*document).size() < 3 * 2'500'000);
  }
}

TEST_CASE("micro-batches are written once and read back each") {
  for (const char* name : {"resnet18", "gpt2", "lstm-lm", "unet"}) {
    const ModelGraph model = shipped(name);
    for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
      CAPTURE(name);
      CAPTURE(to_string(kernels));
      std::size_t size_of_three = 0;
      for (const int micro_batches : {2, 3, 4, 40}) {
        ChosenStep chosen = *choose_step(model, {.optimizer = "adam", .kernels = kernels});
        chosen.lowering.micro_batches = micro_batches;
        const auto document =
            make_document(model, chosen, Runtime::pytorch, std::nullopt, {.evaluation = false});
        REQUIRE(document);
        StepDocument step = *document;
        step.runtime = kernels == KernelSet::pytorch ? Runtime::pytorch : Runtime::stowage;
        check_round_trip(step);
        const std::size_t size = write_step(step).size();
        if (micro_batches == 3) size_of_three = size;
        if (micro_batches == 40) CHECK(size < size_of_three * 3 / 2);
      }
    }
  }
}

TEST_CASE("a step is written only if it can be read") {
  StepDocument document = document_of(shipped("mlp"), {});
  CHECK(write_readable_step(document).value() == write_step(document));
  StepGraph twice = *document.graph;
  twice.storages[1].name = twice.storages[0].name;
  document.graph = std::make_shared<const StepGraph>(std::move(twice));
  std::string refused;
  try {
    (void)write_readable_step(document);
  } catch (const std::logic_error& error) {
    refused = error.what();
  }
  CHECK(refused.starts_with("a step was made that cannot be read: line "));
  CHECK(refused.ends_with(
      fmt::format(": the step: two storages are called '{}'", document.graph->storages[0].name)));
}

}  // namespace stowage
