// What `lower` answers with: steps that every reader takes, refused where `check` refuses.
#include "answers/sizing/lower.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "answers/sizing/check.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

/// A model of the catalogue, with fewer blocks where it takes their number.
ModelQuestion small_model(const std::string& name, FineTuningTexts tuning = {},
                          Precision precision = Precision::fp32) {
  ModelQuestion model;
  model.source = name;
  model.configs = {testing::source_path("/configs")};
  model.options.precision = precision;
  model.options.fine_tuning = std::move(tuning);
  if (name == "gpt2" || name == "mixtral-8x7b") model.options.arguments = {{"layers", "2"}};
  return model;
}

/// True: it was lowered, and what is read back is the same.
bool is_read_back(const LowerQuestion& question) {
  const auto lowered = answer(question);
  if (!lowered) return false;
  const StepDocument& document = lowered->document;
  const std::string text = write_step(document);
  const auto read = read_step(std::make_shared<const SourceText>(SourceText{"step.json", text}));
  if (!read) {
    FAIL_CHECK(render(read.error()));
    return false;
  }
  CHECK(*read->graph == *document.graph);
  REQUIRE((read->evaluation == nullptr) == (document.evaluation == nullptr));
  if (document.evaluation) CHECK(*read->evaluation == *document.evaluation);
  return true;
}

/// What is said against a step; "": nothing.
std::string refusal_of(const LowerQuestion& question) {
  const auto lowered = answer(question);
  return lowered ? "" : render(lowered.error());
}

std::string check_refusal_of(const LowerQuestion& question) {
  CheckQuestion check;
  check.step.model = question.model;
  check.step.wishes = question.wishes;
  check.step.process.runtime = question.runtime;
  check.step.asks_cudnn = false;
  check.card = {.cuda_total = 24_GiB, .configs = question.model.configs};
  check.batch = question.batch;
  const auto checked = answer(check);
  return checked ? "" : render(checked.error());
}

FineTuningTexts offloaded(std::string how) {
  FineTuningTexts texts;
  texts.offload_activations = std::move(how);
  return texts;
}

FineTuningTexts checkpointed(std::string which) {
  FineTuningTexts texts;
  texts.checkpoint = std::move(which);
  return texts;
}

}  // namespace

TEST_CASE("a step of every optimizer and implementation is read back as it was lowered") {
  FineTuningTexts in_backward;
  in_backward.optimizer_in_backward = "true";
  int lowered = 0;
  for (const OptimizerRow& row : optimizer_table()) {
    CAPTURE(row.name);
    for (const auto implementation :
         {OptimizerImplementation::usual, OptimizerImplementation::for_loop,
          OptimizerImplementation::foreach, OptimizerImplementation::fused}) {
      LowerQuestion question{.model = small_model("mlp")};
      question.wishes.optimizer = std::string(row.name);
      question.wishes.implementation = implementation;
      lowered += static_cast<int>(is_read_back(question));
      question.wishes.accumulation = 3;
      lowered += static_cast<int>(is_read_back(question));
      question.wishes.accumulation.reset();
      for (const Precision precision : {Precision::fp32, Precision::mixed_bf16}) {
        question.model = small_model("mlp", in_backward, precision);
        lowered += static_cast<int>(is_read_back(question));
      }
    }
  }
  CHECK(lowered > 100);
}

TEST_CASE("a step whose activations leave, run again or are cast is read back as it was lowered") {
  FineTuningTexts both = offloaded("all");
  both.checkpoint = "selective=attention";
  FineTuningTexts chunks = offloaded("min_bytes=4096,stash=2");
  chunks.chunked_loss = "4";
  const std::vector<FineTuningTexts> tunings{
      {}, offloaded("all"), offloaded("streams=false"), checkpointed("all"), both, chunks};
  int lowered = 0;
  for (const char* const name : {"gpt2", "mixtral-8x7b", "vit_tiny_patch16_224", "resnet18"}) {
    CAPTURE(name);
    for (const FineTuningTexts& tuning : tunings) {
      for (const Precision precision : {Precision::fp32, Precision::amp_bf16, Precision::bf16}) {
        LowerQuestion question{.model = small_model(name, tuning, precision)};
        lowered += static_cast<int>(is_read_back(question));
        question.wishes.optimizer = "adafactor";
        question.wishes.accumulation = 2;
        lowered += static_cast<int>(is_read_back(question));
      }
    }
  }
  CHECK(lowered > 80);
}

TEST_CASE("a step that check refuses is not lowered, and the same is said") {
  std::vector<LowerQuestion> questions;
  const auto add = [&](const auto& change) {
    LowerQuestion question{.model = small_model("mlp")};
    question.runtime = Runtime::theano;
    change(question);
    questions.push_back(std::move(question));
  };
  add([](LowerQuestion& asked) { asked.model.options.precision = Precision::amp_bf16; });
  add([](LowerQuestion& asked) { asked.model.options.precision = Precision::mixed_bf16; });
  add([](LowerQuestion& asked) { asked.model.options.fine_tuning.checkpoint = "all"; });
  add([](LowerQuestion& asked) { asked.wishes.accumulation = 2; });
  add([](LowerQuestion& asked) { asked.wishes.parallel.gpus = 8; });
  add([](LowerQuestion& asked) { asked.wishes.convolutions.benchmark = true; });
  add([](LowerQuestion& asked) { asked.wishes.convolutions.deterministic = true; });
  add([](LowerQuestion& asked) {
    asked.wishes.implementation = OptimizerImplementation::for_loop;
  });
  add([](LowerQuestion& asked) {
    asked.runtime = Runtime::tensorflow;
    asked.wishes.parallel = {.gpus = 2, .zero = 1};
  });
  for (std::size_t i = 0; i < questions.size(); ++i) {
    CAPTURE(i);
    const std::string refused = refusal_of(questions[i]);
    CHECK(refused != "");
    CHECK(refused == check_refusal_of(questions[i]));
  }
}

}  // namespace stowage
