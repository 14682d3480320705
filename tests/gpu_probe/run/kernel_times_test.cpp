#include "gpu_probe/run/kernel_times.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "tests/gpu_probe/run/small_models.hpp"
#include "tests/gpu_probe/run/wrapped_backend.hpp"

namespace stowage {
namespace {

SizedStep sized(const char* text) {
  auto step = size_storages(std::make_shared<const StepGraph>(test::step_of(text)), 4);
  REQUIRE(step.has_value());
  return *std::move(step);
}

/// Counts its calls, and refuses one of them.
class CountingBackend final : public test::WrappedBackend {
 public:
  int refused = -1;
  int calls = 0;
  Bytes arena;
  Result<void> allocate(const ArenaSizes& sizes) override {
    arena = sizes.gpu;
    return WrappedBackend::allocate(sizes);
  }
  Result<Ticket> run(const KernelCall& call) override {
    if (calls++ == refused) return failure("cuLaunchKernel fails with error 700");
    return WrappedBackend::run(call);
  }
};

}  // namespace

TEST_CASE("every kind of call of a step is timed once, with all its arguments there") {
  for (const char* model :
       {test::mlp, test::small_cnn, test::small_resnet, test::small_gpt2, test::small_unet}) {
    const SizedStep step = sized(model);
    CountingBackend backend;
    const auto times = time_kernels(step, backend, 1_MiB, 1_GiB);
    REQUIRE_MESSAGE(times.has_value(), times.error().front().message);
    CHECK(times->left_out == 0);
    CHECK(times->times.size() > 5);
    CHECK(times->times.size() <= step.graph->nodes.size());
    CHECK(backend.calls == 6 * std::ssize(times->times));
    for (const KernelTime& time : times->times) CHECK(time.seconds > 0);
  }
}

TEST_CASE("calls that are alike are one, and what needs too much room is left out") {
  const char* const twice =
      "model: m\ninputs: {x: {shape: [batch, 64]}, y: {shape: [batch, 64]}}\nlayers:\n"
      "  - linear: {name: a, from: x, features: 64, bias: false}\n"
      "  - linear: {name: b, features: 64, bias: false}\n"
      "  - linear: {name: c, features: 64, bias: false}\n"
      "loss:\n  mse: {from: [c, y]}\n";
  const SizedStep step = sized(twice);
  CountingBackend backend;
  const auto all = time_kernels(step, backend, 0_B, 1_GiB);
  REQUIRE(all.has_value());
  std::int64_t forwards = 0;
  for (const KernelTime& time : all->times) {
    forwards += step.graph->nodes[time.node.index()].kernel == Kernel::linear_forward ? 1 : 0;
  }
  CHECK(forwards == 1);
  const auto some = time_kernels(step, backend, 0_B, 10_KiB);  // a weight alone is 16 KiB
  REQUIRE(some.has_value());
  CHECK(some->left_out > 0);
  CHECK(some->left_out + std::ssize(some->times) == std::ssize(all->times));
  CHECK(backend.arena <= 10_KiB);
}

TEST_CASE("a kernel that fails is named") {
  const SizedStep step = sized(test::mlp);
  CountingBackend backend;
  backend.refused = 0;
  const auto times = time_kernels(step, backend, 0_B, 1_GiB);
  REQUIRE(!times.has_value());
  CHECK(times.error().front().message ==
        "node '" + step.graph->nodes[0].name + "': cuLaunchKernel fails with error 700");
}

}  // namespace stowage
