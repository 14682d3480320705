// Memory over the step is the check's and the plan's, told by node.
#include "answers/report/step_memory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "answers/planning/plan.hpp"
#include "answers/sizing/check.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using testing::source_path;

namespace {

struct Checked {
  CheckAnswer answer;
  MemoryOverStep memory;
};

Checked checked(const std::string& model, Runtime runtime, Bytes card, std::int64_t batch) {
  CheckQuestion question;
  question.step.model.source = model;
  question.step.model.configs = {source_path("/configs")};
  question.step.asks_cudnn = false;
  question.step.process.runtime = runtime;
  question.card = {.cuda_total = card, .configs = {source_path("/configs")}};
  question.batch = batch;
  const auto setup = set_up_check(question);
  REQUIRE(setup);
  auto found = answer(question, *setup);
  REQUIRE(found);
  const auto step = setup->at_batch(batch);
  REQUIRE(step);
  MemoryOverStep memory =
      memory_over_step(*step, setup->card.card, found->settings, found->training.run);
  return {*std::move(found), std::move(memory)};
}

/// At each node the classes add up to what is live, and the tensors to the classes.
void check_sums(const MemoryOverStep& memory) {
  std::vector<Bytes> of_tensors(memory.live.size());
  for (const LiveTensor& tensor : memory.tensors) {
    REQUIRE(tensor.nodes.begin < tensor.nodes.end);
    for (std::int32_t node = tensor.nodes.begin; node < tensor.nodes.end; ++node) {
      of_tensors[static_cast<std::size_t>(node)] += tensor.bytes;
    }
  }
  CHECK(of_tensors == memory.live);
  for (std::size_t node = 0; node < memory.live.size(); ++node) {
    Bytes sum;
    for (const std::vector<Bytes>& one : memory.by_class) sum += one[node];
    REQUIRE(sum == memory.live[node]);
  }
}

}  // namespace

TEST_CASE("at the peak memory over the step is the check's footprint, class by class") {
  for (const Runtime runtime :
       {Runtime::pytorch, Runtime::tensorflow, Runtime::stowage, Runtime::ideal}) {
    for (const char* model : {"resnet18", "gpt2"}) {
      CAPTURE(model);
      const Checked of = checked(model, runtime, 64_GiB, 2);
      const CheckAnswer& found = of.answer;
      const MemoryOverStep& memory = of.memory;
      const CheckReport& report = found.training;
      REQUIRE(report.fits);
      check_sums(memory);
      CHECK(memory.peak == report.footprint.step);
      CHECK(memory.peak_bytes() == report.tensor_bytes());
      for (std::size_t c = 0; c < memory.by_class.size(); ++c) {
        CHECK(memory.by_class[c][static_cast<std::size_t>(memory.peak)] ==
              report.footprint.by_class[c]);
      }
      const auto at_peak = std::ranges::count_if(memory.tensors, [&](const LiveTensor& tensor) {
        return tensor.nodes.contains(memory.peak);
      });
      CHECK(at_peak <= std::ssize(report.footprint.rows));
      CHECK(std::ranges::max(memory.reserved) == report.reserved_bytes());
      CHECK(std::ranges::min(memory.reserved) > Bytes());
    }
  }
}

TEST_CASE("a step that does not fit is shown as it would be with room for all") {
  const Checked of = checked("resnet18", Runtime::pytorch, 1_GiB, 64);
  const CheckAnswer& found = of.answer;
  const MemoryOverStep& memory = of.memory;
  REQUIRE_FALSE(found.training.fits);
  check_sums(memory);
  CHECK(memory.peak_bytes() == found.training.tensor_bytes());
  CHECK(std::ranges::max(memory.reserved) == found.training.reserved_bytes());
}

TEST_CASE("what is reserved never falls below what is live where the allocator holds it all") {
  const Checked of = checked("mnist-cnn", Runtime::pytorch, 8_GiB, 32);
  const MemoryOverStep& memory = of.memory;
  for (std::size_t node = 0; node < memory.live.size(); ++node) {
    REQUIRE(memory.reserved[node] >= memory.live[node]);
  }
}

TEST_CASE("tensors of memory over the step have names, layers and places") {
  const Checked of = checked("resnet18", Runtime::pytorch, 64_GiB, 2);
  const MemoryOverStep& memory = of.memory;
  const auto weight = std::ranges::find(memory.tensors, "conv1.weight",
                                        [&](const LiveTensor& of) { return name_of(memory, of); });
  REQUIRE(weight != memory.tensors.end());
  CHECK(weight->entry.storage_class == StorageClass::parameter);
  CHECK(weight->nodes == StepRange{0, memory.nodes()});
  CHECK(layer_of(memory, *weight) == "conv1");
  CHECK(place_of(memory, *weight).find("resnet18.yaml:") != std::string_view::npos);
  CHECK(weight->bytes == Bytes(74 * 512LL));  // 37,632 of them asked for
}

TEST_CASE("a plan's arenas over the step are its totals") {
  PlanQuestion question;
  question.step.model.source = "mnist-cnn";
  question.step.model.configs = {source_path("/configs")};
  question.step.asks_cudnn = false;
  question.card = CardQuestion{.cuda_total = 8_GiB, .configs = {source_path("/configs")}};
  question.batch = WholeBatch(64);
  question.budget_share = 0.8;
  const auto found = answer(question);
  REQUIRE(found);
  REQUIRE(found->chosen);
  const Plan& plan = found->plans[*found->chosen];
  const MemoryOverStep on_gpu = memory_over_step(plan, MemoryKind::device);
  check_sums(on_gpu);
  CHECK(on_gpu.peak_bytes() == plan.totals.gpu_peak);
  CHECK(std::ranges::max(on_gpu.reserved) == plan.totals.arena);
  const MemoryOverStep pinned = memory_over_step(plan, MemoryKind::pinned);
  check_sums(pinned);
  CHECK(pinned.peak_bytes() <= plan.totals.host_peak);
  CHECK(pinned.peak_bytes() > Bytes());
}

}  // namespace stowage
