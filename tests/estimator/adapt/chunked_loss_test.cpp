// The output layer and the loss in chunks. That the step is torchtune's is in
// tests/estimator/reference.
#include "estimator/adapt/chunked_loss.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "estimator/adapt/adapt.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/step/choose_step.hpp"

namespace stowage {

namespace {

const std::string language_model = R"(model: words
inputs: {tokens: {shape: [batch, 10], dtype: int64}, labels: {shape: [batch, 10], dtype: int64}}
layers:
  - embedding: {name: table, from: tokens, count: 50, features: 8}
  - linear: {name: head, features: 50, bias: false}
  - reshape: {name: logits, shape: [batch * 10, 50]}
  - reshape: {name: targets, from: labels, shape: [batch * 10]}
loss: {cross_entropy: {from: [logits, targets]}}
)";

Result<ModelGraph> chunked(const std::string& chunks, const std::string& text = language_model) {
  return load_adapted(std::make_shared<const SourceText>(SourceText{"words.yaml", text}),
                      {.precision = Precision::bf16, .fine_tuning = {.chunked_loss = chunks}});
}

ModelGraph chunked_model(const std::string& chunks) {
  auto model = chunked(chunks);
  if (!model) FAIL(render(model.error()));
  return *std::move(model);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

std::string refusal_of(const std::string& text) {
  const auto model = chunked("2", text);
  return model ? std::string() : model.error().front().message;
}

std::vector<std::int64_t> rows_of(const ModelGraph& model) {
  std::vector<std::int64_t> rows;
  for (const Operator& op : model.operators) {
    if (op.row->name != "linear") continue;
    rows.push_back(model.tensor(op.outputs.front()).type.shape[1].constant);
  }
  return rows;
}

}  // namespace

TEST_CASE("chunks are cut as torch.chunk cuts, and share the output layer's weight") {
  CHECK(rows_of(chunked_model("2")) == std::vector<std::int64_t>{5, 5});
  CHECK(rows_of(chunked_model("4")) == std::vector<std::int64_t>{3, 3, 3, 1});
  CHECK(rows_of(chunked_model("6")) == std::vector<std::int64_t>{2, 2, 2, 2, 2});
  CHECK(rows_of(chunked_model("1")) == std::vector<std::int64_t>{10});
  const ModelGraph model = chunked_model("4");
  CHECK(parameter_count(model) == 2 * 50 * 8);
  CHECK(render(model.warnings) == "note: the loss is computed in 4 chunks of 3 rows a sample\n");
  double weight = 0;
  for (const Operator& op : model.operators) {
    if (op.row->is_loss && op.attributes.has("weight")) weight += op.attributes.real("weight");
  }
  CHECK(weight == doctest::Approx(1));
}

TEST_CASE("a loss in chunks is lowered for either kernel set, micro-batches too") {
  for (const std::string chunks : {"1", "3", "4,compiled"}) {
    for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
      for (const int micro_batches : {1, 2}) {
        CAPTURE(chunks);
        const auto step =
            lower_step(chunked_model(chunks), {.kernels = kernels, .micro_batches = micro_batches});
        if (!step) FAIL(render(step.error()));
        CHECK(step->gradients.size() == 2);
      }
    }
  }
}

TEST_CASE("a model's own shift by one position goes with the loss that the chunks replace") {
  const std::string copies =
      replaced(replaced(language_model, "  - reshape: {name: logits, shape: [batch * 10, 50]}",
                        "  - cast: {name: wide, dtype: float32}\n"
                        "  - slice: {name: earlier, axis: 1, length: 9}\n"
                        "  - contiguous: {name: shift_logits}\n"
                        "  - reshape: {name: logits, shape: [batch * 9, 50]}"),
               "  - reshape: {name: targets, from: labels, shape: [batch * 10]}",
               "  - slice: {name: later, from: labels, axis: 1, start: 1}\n"
               "  - reshape: {name: targets, from: later, shape: [batch * 9]}");
  const auto model = chunked("2", copies);
  if (!model) FAIL(render(model.error()));
  CHECK(rows_of(*model) == std::vector<std::int64_t>{5, 5});
  for (const Operator& op : model->operators) CHECK(op.row->name != "slice");
  // Any other cut is the model's business.
  CHECK(refusal_of(replaced(copies, "axis: 1, length: 9", "axis: 1, start: 1")) ==
        "a loss in chunks reads an output layer's result, reshaped or shifted by one position at "
        "most, and here it reads that of 'earlier'");
}

TEST_CASE("a compiled chunk saves logits in their own format and two numbers a row") {
  const auto step = lower_step(chunked_model("2,compiled"), {.kernels = KernelSet::pytorch});
  REQUIRE(step);
  std::vector<std::string> saved;
  for (const SavedTensor& one : step->saved) {
    if (step->layer(one.op) != "loss.chunk0") continue;
    saved.push_back(one.role + " " + step->storage(one.storage).bytes.to_string());
  }
  // tests/reference/compiled_loss.json: bfloat16 logits, int64 labels, twice float32 [rows, 1].
  CHECK(saved == std::vector<std::string>{"amax 20*batch", "input 500*batch", "target 40*batch",
                                          "logsumexp 20*batch"});
}

TEST_CASE("a loss that is no cross entropy of an output layer is refused") {
  CHECK(refusal_of(replaced(language_model, "cross_entropy", "nll")) ==
        "a loss in chunks is a cross entropy, and that of 'words' is nll");
  CHECK(refusal_of(replaced(language_model, "[logits, targets]",
                            "[logits, targets], label_smoothing: 0.1")) ==
        "a loss in chunks is a plain cross entropy, without label_smoothing and weight");
  CHECK(refusal_of(replaced(language_model, "  - reshape: {name: logits",
                            "  - tanh: {name: capped}\n  - reshape: {name: logits")) ==
        "a loss in chunks reads an output layer's result, reshaped or shifted by one position at "
        "most, and here it reads that of 'capped'");
  CHECK(refusal_of("model: classes\n"
                   "inputs: {x: {shape: [batch, 4]}, y: {shape: [batch], dtype: int64}}\n"
                   "layers: [{linear: {name: fc, from: x, features: 3}}]\n"
                   "loss: {cross_entropy: {from: [fc, y]}}\n") ==
        "a loss in chunks cuts sequences [batch, seq, features], and the output layer of 'classes' "
        "reads [batch, 4]");
}

TEST_CASE("settings of a training script suit neither an inference nor a plan's kernels") {
  const auto refused = [](const FineTuningTexts& texts, const StepWishes& wishes) {
    const auto model =
        load_adapted(std::make_shared<const SourceText>(SourceText{"words.yaml", language_model}),
                     {.fine_tuning = texts});
    REQUIRE(model);
    const auto step = choose_step(*model, wishes);
    return step ? std::string() : step.error().front().message;
  };
  CHECK(refused({.chunked_loss = "2"}, {.mode = Mode::inference}) ==
        "an inference has no use for a loss in chunks");
  CHECK(refused({.offload_activations = "all"}, {.kernels = KernelSet::stowage}) ==
        "offloading of activations is what a PyTorch script does; the kernel set 'stowage' runs "
        "plans, which move tensors and updates themselves");
  CHECK(refused({.optimizer_in_backward = "true"}, {.accumulation = 2}) ==
        "an optimizer in backward steps at each micro-batch: it does not accumulate");
  CHECK(refused({.optimizer_in_backward = "true"}, {}) == "");
}

}  // namespace stowage
