#include "estimator/check/check.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

/// Two engines for every convolution: a greedy one, and one that wants nothing.
class TwoEngines : public WorkspaceSource {
 public:
  explicit TwoEngines(Bytes greedy) : greedy_(greedy) {}
  WorkspaceAnswer engines(const ConvolutionQuery&) override {
    ++asked;
    return {.engines = {{"greedy", greedy_}, {"frugal", Bytes(0)}},
            .origin = WorkspaceOrigin::rule};
  }
  int asked = 0;

 private:
  Bytes greedy_;
};

Card card_of(Bytes total) {
  Card card = generic_card(total);
  card.context = 100_MiB;
  return card;
}

SizedStep sized(const std::string& name, KernelSet kernels, std::int64_t batch,
                WorkspaceSource& source, OptimizerSettings optimizer = {}) {
  const auto graph = testing::lowered(testing::shipped(name),
                                      {.kernels = kernels, .optimizer = std::move(optimizer)});
  auto step = size_step(graph, batch, source);
  REQUIRE(step.has_value());
  return *std::move(step);
}

}  // namespace

TEST_CASE("the footprint's rows and classes sum to the peak, in every runtime") {
  TwoEngines source(3_MiB);
  for (const std::string name : {"mnist-cnn", "resnet18", "gpt2"}) {
    for (const Runtime runtime : runtimes) {
      CAPTURE(name);
      CAPTURE(to_string(runtime));
      const SizedStep step = sized(name, kernel_set_of(runtime), 2, source, {.name = "adam"});
      const CheckReport report = check(step, card_of(80_GiB), {.runtime = runtime});
      Bytes rows, classes, runtime_rows;
      for (const FootprintRow& row : report.footprint.rows) rows += row.bytes;
      for (const Bytes bytes : report.footprint.by_class) classes += bytes;
      for (const RuntimeRow& row : report.runtime_rows) runtime_rows += row.bytes;
      CHECK(rows == report.tensor_bytes());
      CHECK(classes == report.tensor_bytes());
      CHECK(report.tensor_bytes() + runtime_rows == report.device_bytes);
      CHECK(report.reserved_bytes() >= report.tensor_bytes());
      CHECK(report.headroom == report.available_bytes - report.device_bytes);
      CHECK(report.fits);
      CHECK(report.phases.back().device_bytes == report.device_bytes);
    }
  }
}

TEST_CASE("tensor bytes never shrink as the batch grows") {
  TwoEngines source(Bytes(0));
  for (const std::string name : {"mlp", "mnist-cnn", "unet"}) {
    Bytes before;
    for (const std::int64_t batch : {1, 2, 3, 4, 7, 8, 16, 33}) {
      const CheckReport report = check(sized(name, KernelSet::pytorch, batch, source),
                                       card_of(80_GiB), {.runtime = Runtime::ideal});
      CHECK(report.tensor_bytes() > before);
      before = report.tensor_bytes();
    }
  }
}

TEST_CASE("an engine that does not fit is replaced by one that does, and named") {
  TwoEngines greedy(1_GiB);
  const SizedStep step = sized("mnist-cnn", KernelSet::pytorch, 4, greedy);
  const CheckReport roomy = check(step, card_of(4_GiB), {});
  CHECK(roomy.fits);
  CHECK(roomy.fallbacks.empty());
  CHECK(roomy.tensor_bytes() > 1_GiB);
  const CheckReport tight = check(step, card_of(512_MiB), {});
  CHECK(tight.fits);
  REQUIRE(tight.fallbacks.size() == 8);  // three forwards, two data and three filter gradients
  CHECK(tight.fallbacks[0].node == "conv1.forward");
  CHECK(tight.fallbacks[0].first.name == "greedy");
  CHECK(tight.fallbacks[0].taken.name == "frugal");
  CHECK(tight.tensor_bytes() < 100_MiB);
}

TEST_CASE("a step that does not fit names what needs the room") {
  TwoEngines source(Bytes(0));
  const SizedStep step = sized("vgg16", KernelSet::pytorch, 1, source);
  const CheckReport report = check(step, card_of(1_GiB), {});
  CHECK_FALSE(report.fits);
  CHECK(report.headroom < Bytes(0));
  CHECK(report.culprit.find("fc1.weight") != std::string::npos);
}

TEST_CASE("where context and libraries find no room, that is what is said") {
  TwoEngines source(Bytes(0));
  const SizedStep step = sized("mlp", KernelSet::pytorch, 1, source);
  const CheckReport report = check(step, card_of(1_GiB), {.context = 1_GiB});
  CHECK_FALSE(report.fits);
  CHECK_FALSE(report.run.failure.has_value());
  CHECK(
      report.culprit ==
      "the CUDA context and the libraries' kernels alone take 1.1 GiB, of which 1.0 GiB are there");
}

TEST_CASE("what others use and what is to stay free is not available") {
  TwoEngines source(Bytes(0));
  const SizedStep step = sized("mlp", KernelSet::pytorch, 1, source);
  const CheckReport report =
      check(step, card_of(1_GiB), {.in_use = 100_MiB, .reserve = 24_MiB, .context = 61_MiB});
  CHECK(report.available_bytes == 900_MiB);
  const auto context =
      std::find_if(report.runtime_rows.begin(), report.runtime_rows.end(),
                   [](const RuntimeRow& row) { return row.name == "CUDA context"; });
  REQUIRE(context != report.runtime_rows.end());
  CHECK(context->bytes == 61_MiB);
  CHECK(context->source == "given");
}

TEST_CASE("the first step lacks the optimizer's state until its update") {
  TwoEngines source(Bytes(0));
  const SizedStep step = sized("vgg16", KernelSet::pytorch, 32, source, {.name = "adam"});
  const CheckReport report = check(step, card_of(80_GiB), {});
  REQUIRE(report.phases.size() == 3);
  CHECK(report.phases[0].name == "after loading");
  CHECK(report.phases[1].tensor_bytes < report.phases[2].tensor_bytes);
}

TEST_CASE("each distinct convolution is asked about once") {
  TwoEngines source(Bytes(0));
  (void)sized("keras-deep-16x16", KernelSet::pytorch, 1, source);
  // 26 layers, of which 21 are the same 1024-channel one: 6 shapes, 3 directions, less the first
  // layer's data gradient.
  CHECK(source.asked == 17);
}

TEST_CASE("cuBLAS keeps one workspace for forward and one for autograd's thread") {
  const auto training = testing::lowered(testing::shipped("mlp"), {.kernels = KernelSet::pytorch});
  const auto inference = testing::lowered(testing::shipped("mlp"),
                                          {.kernels = KernelSet::pytorch, .mode = Mode::inference});
  Card hopper = generic_card(80_GiB, 9.0);
  Card ampere = generic_card(80_GiB, 8.6);
  CHECK(runtime_buffers(*training, ampere, {.runtime = Runtime::pytorch}).size() == 2);
  CHECK(runtime_buffers(*inference, ampere, {.runtime = Runtime::pytorch}).size() == 1);
  CHECK(runtime_buffers(*training, ampere, {.runtime = Runtime::pytorch})[0].bytes ==
        Bytes(8'519'680));
  CHECK(runtime_buffers(*training, hopper, {.runtime = Runtime::pytorch})[0].bytes == 32_MiB);
  CHECK(runtime_buffers(*training, hopper, {.runtime = Runtime::ideal}).empty());
}

TEST_CASE("a batch that makes a dimension negative is refused with the layer") {
  const auto graph = testing::lowered(testing::described(R"(
model: m
inputs: {x: {shape: [batch - 5, 8]}}
layers:
  - linear: {from: x, features: 8}
)"),
                                      {.mode = Mode::inference});
  CHECK(size_storages(graph, 6).has_value());
  const auto step = size_storages(graph, 2);
  REQUIRE_FALSE(step.has_value());
  CHECK(step.error().front().message == "batch 2 makes 'x' (input) smaller than nothing");
}

TEST_CASE("a batch whose sizes leave 64 bits is refused with the layer") {
  TwoEngines source(Bytes(0));
  const auto graph = testing::lowered(testing::shipped("vgg16"), {.kernels = KernelSet::pytorch});
  const auto step = size_step(graph, 1'000'000'000'000, source);
  REQUIRE(!step.has_value());
  CHECK(render(step.error()).find("batch 1000000000000 makes '") != std::string::npos);
  CHECK(render(size_step(graph, 0, source).error()) == "error: batch 0 is not at least 1\n");
}

}  // namespace stowage
