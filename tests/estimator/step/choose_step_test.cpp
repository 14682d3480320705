// The step that is meant: the description's, with its user's wishes over it.
#include "estimator/step/choose_step.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

ModelGraph model(const std::string& train, const ModelOptions& options = {}) {
  const std::string text =
      "model: m\n"
      "inputs: {x: {shape: [batch, 4]}, y: {shape: [batch, 4]}}\n"
      "layers: [linear: {name: a, from: x, features: 4}]\n"
      "loss: {mse: {from: [a, y]}}\n"
      "train: {" +
      train + "}\n";
  auto graph =
      load_model(std::make_shared<const SourceText>(SourceText{"test.yaml", text}), options);
  REQUIRE(graph.has_value());
  return *std::move(graph);
}

ModelGraph lossless() {
  return testing::described(
      "model: m\ninputs: {x: {shape: [batch, 4]}}\nlayers: [linear: {features: 4}]\n");
}

ChosenStep chosen(const ModelGraph& graph, const StepWishes& wishes = {}) {
  auto step = choose_step(graph, wishes);
  REQUIRE(step.has_value());
  return *std::move(step);
}

std::string refusal(const ModelGraph& graph, const StepWishes& wishes) {
  const auto step = choose_step(graph, wishes);
  return step ? "" : render(step.error());
}

}  // namespace

TEST_CASE("without wishes a step is what its description says") {
  const ChosenStep step =
      chosen(model("optimizer: adamw, learning_rate: 0.5, implementation: fused, accumulation: 6, "
                   "zero_grad: to_zero, augment: 1, prefetch: 2"));
  CHECK(step.lowering.mode == Mode::train);
  CHECK(step.lowering.optimizer.name == "adamw");
  CHECK(step.lowering.optimizer.learning_rate == 0.5);
  CHECK(step.lowering.optimizer.implementation == OptimizerImplementation::fused);
  CHECK(step.lowering.step == StepSettings{ZeroGrad::to_zero, 1, 2});
  CHECK(step.accumulation == 6);
  CHECK(step.lowering.micro_batches == 1);
  CHECK(step.warnings.empty());
}

TEST_CASE("another optimizer comes with its usual settings") {
  const ModelGraph graph = model("optimizer: adamw, learning_rate: 0.5, implementation: fused");
  const ChosenStep step = chosen(graph, {.optimizer = "momentum", .accumulation = 1});
  CHECK(step.lowering.optimizer.name == "sgd");
  CHECK(step.lowering.optimizer.momentum > 0);
  CHECK(step.lowering.optimizer.implementation == OptimizerImplementation::usual);
  CHECK(step.lowering.micro_batches == 1);
  const ChosenStep other = chosen(graph, {.implementation = OptimizerImplementation::for_loop});
  CHECK(other.lowering.optimizer.learning_rate == 0.5);
  CHECK(other.lowering.optimizer.implementation == OptimizerImplementation::for_loop);
}

TEST_CASE("master weights follow from the precision") {
  const auto masters = [](const ModelOptions& options, bool gradients) {
    return chosen(model("", options), {.master_gradients = gradients})
        .lowering.optimizer.master_weights;
  };
  CHECK(masters({}, false) == MasterWeights::none);
  CHECK(masters({.precision = Precision::bf16}, false) == MasterWeights::none);
  CHECK(masters({.precision = Precision::mixed_bf16}, false) == MasterWeights::weights);
  CHECK(masters({.precision = Precision::mixed_fp16}, true) ==
        MasterWeights::weights_and_gradients);
  CHECK(refusal(model("", {.precision = Precision::amp_bf16}), {.master_gradients = true}) ==
        "error: gradients are kept in fp32 beside amp-bf16 parameters only under the precisions "
        "mixed-fp16 and mixed-bf16\n");
}

TEST_CASE("ZeRO keeps fp32 master weights of 16-bit parameters, as DeepSpeed does by default") {
  const auto masters = [](Precision precision, const StepWishes& wishes) {
    return chosen(model("", {.precision = precision}), wishes).lowering.optimizer.master_weights;
  };
  const StepWishes ddp{.parallel = {.gpus = 4}};
  for (int stage = 1; stage <= 3; ++stage) {
    const StepWishes zero{.parallel = {.gpus = 4, .zero = stage}};
    CHECK(masters(Precision::bf16, zero) == MasterWeights::weights);
    CHECK(masters(Precision::fp16, zero) == MasterWeights::weights);
    CHECK(masters(Precision::fp32, zero) == MasterWeights::none);
    CHECK(masters(Precision::amp_bf16, zero) == MasterWeights::none);
  }
  CHECK(masters(Precision::bf16, ddp) == MasterWeights::none);
  CHECK(masters(Precision::bf16, {.parallel = {.gpus = 4, .zero = 2}, .master_gradients = true}) ==
        MasterWeights::weights_and_gradients);
}

TEST_CASE("FSDP's shards are the master weights themselves") {
  const StepWishes fsdp{.parallel = {.gpus = 4, .fsdp = {.on = true}}};
  const ModelGraph mixed = model("", {.precision = Precision::mixed_bf16});
  CHECK(chosen(mixed, fsdp).lowering.optimizer.master_weights == MasterWeights::none);
  StepWishes with_gradients = fsdp;
  with_gradients.master_gradients = true;
  CHECK(refusal(mixed, with_gradients) ==
        "error: FSDP keeps gradients in the format of its shards\n"
        "  the format that they are summed in is reduce=fp32 or reduce=bf16\n");
}

TEST_CASE("ways to share a model out that do not go together are refused") {
  const auto with = [](const DataParallel& parallel) {
    return refusal(model(""), {.parallel = parallel});
  };
  CHECK(with({.gpus = 2, .zero = 3, .fsdp = {.on = true}}) ==
        "error: a model is sharded by ZeRO or by FSDP, not by both\n"
        "  ZeRO 3 and FSDP share out the same\n");
  CHECK(with({.gpus = 2, .offload = Offload::all}) ==
        "error: offload is ZeRO's and FSDP's: whole replicas stay on their GPUs\n"
        "  share the model out, or let a plan place it\n");
  CHECK(with({.gpus = 2, .fsdp = {.on = true}, .offload = Offload::optimizer}) ==
        "error: FSDP offloads parameters, gradients and optimizer state together, or nothing\n"
        "  offload all\n");
  CHECK(with({.gpus = 2, .zero = 2, .offload = Offload::all}) ==
        "error: ZeRO 2 keeps whole parameters on each GPU: stage 3 offloads them\n"
        "  offload the optimizer alone\n");
  CHECK(with({.zero = 2}) ==
        "error: ZeRO shares a model out among GPUs: one has nobody to share with\n"
        "  offload the optimizer, as a single GPU can, or say how many there are\n");
}

TEST_CASE("a single GPU runs ZeRO for what it offloads") {
  const StepWishes offloads{.parallel = {.zero = 2, .offload = Offload::optimizer}};
  const LoweringSettings settings =
      chosen(model("", {.precision = Precision::bf16}), offloads).lowering;
  CHECK(settings.parallel.runs_zero());
  CHECK(settings.optimizer.master_weights == MasterWeights::weights);
}

TEST_CASE("the card's capability reaches PyTorch's lowering alone") {
  CHECK(chosen(model(""), {.compute_capability = 7.0}).lowering.compute_capability == 7.0);
  CHECK(chosen(model(""), {.kernels = KernelSet::stowage, .compute_capability = 7.0})
            .lowering.compute_capability == LoweringSettings{}.compute_capability);
}

TEST_CASE("a model without a loss is not trained, and an inference says what it has no use for") {
  CHECK(refusal(lossless(), {.mode = Mode::train}) ==
        "error: the model 'm' has no loss, so that it cannot be trained\n"
        "  give its description a loss, or run the model forward alone\n");
  const ChosenStep plain = chosen(lossless());
  CHECK(plain.lowering.mode == Mode::inference);
  CHECK(plain.warnings.empty());
  const ChosenStep idle = chosen(model("accumulation: 4"),
                                 {.mode = Mode::inference, .optimizer = "adam", .accumulation = 3});
  CHECK(idle.lowering.micro_batches == 1);
  CHECK(idle.accumulation == 1);
  CHECK(render(idle.warnings) ==
        "warning: an inference has no use for an optimizer and accumulation\n");
}

TEST_CASE("an implementation that an optimizer does not have is refused") {
  CHECK(refusal(model(""),
                {.optimizer = "adam8bit", .implementation = OptimizerImplementation::foreach}) ==
        "error: adam8bit has no foreach implementation\n"
        "  bitsandbytes.optim.Adam8bit has fused\n");
  CHECK(refusal(model(""), {.optimizer = "adm"}) == "error: there is no optimizer 'adm'\n");
}

}  // namespace stowage
