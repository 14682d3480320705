// The whole cuda path on pretended libraries: a driver whose device is the host's memory and whose
// kernels are the bodies themselves, an NVRTC that returns their names, and a cuBLAS and a cuDNN
// that follow their definitions. Each is asked rightly if planned steps end with the host's
// results. Nothing here runs on a GPU.
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "gpu_probe/run/executor.hpp"
#include "gpu_probe/run/tolerance.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "tests/gpu_probe/cuda/pretended_cuda.hpp"
#include "tests/gpu_probe/run/operator_models.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

FakeLanes& driver() { return pretended_driver(); }
FakeBlas& blas() { return pretended_cublas(); }
FakeCudnn& cudnn() { return pretended_cudnn(); }

std::string failures_of_path(const RunReport& report) {
  std::string text;
  for (const Check& check : report.checks) {
    if (!check.passed) text += check.name + ": " + check.detail + "\n";
  }
  return text;
}

// The pretended device sums in float32, the host in float64.
constexpr double float32_tolerance = 2e-4;

/// A plan whose convolutions name an engine of this cuDNN, an engine of another version, or none.
Plan plan_with_engines(const StepGraph& graph, std::uint64_t seed) {
  Plan plan = random_plan(graph, 2, seed);
  const std::array<const char*, 4> names{"cudnn 9.19.0 eng3 k2=1 k5=0", "cudnn 9.18.1 eng3", "rule",
                                         ""};
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (graph.nodes[i].convolution >= 0) plan.nodes[i].engine = names[(i + seed) % names.size()];
  }
  return plan;
}

}  // namespace

TEST_CASE("planned steps on pretended libraries of CUDA end where the host's do") {
  struct Case {
    const char* model;
    LoweringSettings settings;
    std::int64_t steps;
  };
  for (const Case& tried :
       {Case{mlp, sgd_momentum(), 1}, Case{mlp, sgd_momentum(2), 3},
        Case{small_cnn, sgd_momentum(), 2}, Case{small_resnet, sgd_momentum(), 1},
        Case{small_gpt2, sgd_momentum(), 1}, Case{small_gpt2, adamw(), 1},
        Case{small_resnet, adamw(), 1}, Case{small_unet, sgd_momentum(2), 1}}) {
    const StepGraph graph = step_of(tried.model, tried.settings);
    CAPTURE(graph.model);
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      CAPTURE(seed);
      const CudaSetup setup = pretended_setup();
      {
        auto backend = open_cuda_backend(setup);
        REQUIRE(backend.has_value());
        const auto report = run_plan(plan_with_engines(graph, seed), **backend,
                                     {.steps = tried.steps, .tolerance = float32_tolerance});
        if (!report) FAIL(report.error().front().message);
        CHECK(report->backend == "cuda: Fake");
        CHECK(failures_of_path(*report) == "");
      }
      CHECK(driver().launches > 40);
      CHECK(blas().products + cudnn().executed > 10);
      CHECK(driver().live == 0);
      CHECK(driver().wrong_calls == 0);
      CHECK(blas().handles == 0);
      CHECK(cudnn().live == 0);
    }
  }
}

namespace {

/// The largest relative difference between the results of a plan's step and of the host's.
double distance_from_host(const StepGraph& graph, std::uint64_t seed) {
  auto backend = open_cuda_backend(pretended_setup());
  REQUIRE(backend.has_value());
  const auto report = run_plan(plan_with_engines(graph, seed), **backend,
                               {.steps = 1, .tolerance = gpu_tolerance(graph)});
  const std::string refusal = report ? "" : report.error().front().message;
  CHECK(refusal == "");
  if (!report) return 0;
  CHECK(failures_of_path(*report) == "");
  double worst = 0;
  for (const MeasuredDifference& entry : report->measured.differences) {
    worst = std::max(worst, entry.difference.relative);
  }
  return worst;
}

}  // namespace

TEST_CASE("steps in every precision on pretended libraries end near the host's") {
  std::size_t turn = 0;
  for (const Precision precision :
       {Precision::fp64, Precision::fp16, Precision::bf16, Precision::amp_fp16, Precision::amp_bf16,
        Precision::mixed_fp16, Precision::mixed_bf16}) {
    double worst = 0;
    for (const char* const model :
         {mlp, small_cnn, small_resnet, small_gpt2, small_unet, small_lstm}) {
      const bool is_turn = ++turn % 3 == 0;  // the two slowest models take turns
      if ((model == small_resnet || model == small_gpt2) && !is_turn) continue;
      LoweringSettings settings = turn % 2 == 0 ? sgd_momentum(2) : adamw();
      if (has_master_weights(precision)) {
        settings.optimizer.master_weights = MasterWeights::weights;
      }
      const StepGraph graph = step_of(model, settings, precision);
      INFO(graph.model, " in ", std::string(to_string(precision)));
      worst = std::max(worst, distance_from_host(graph, 3));
    }
    MESSAGE("largest relative difference from the host's in ", std::string(to_string(precision)),
            ": ", worst);
  }
}

TEST_CASE("every operator's step on pretended libraries ends near the host's") {
  constexpr std::array precisions{Precision::fp32, Precision::bf16, Precision::fp64,
                                  Precision::amp_fp16};
  std::size_t number = 0;
  for (const OperatorModel& model : operator_models()) {
    const Precision precision = precisions[++number % precisions.size()];
    INFO(std::string(model.name), " in ", std::string(to_string(precision)));
    const StepGraph graph = step_of(operator_description(model).c_str(), sgd_momentum(), precision);
    static_cast<void>(distance_from_host(graph, number));
  }
}

TEST_CASE("a convolution takes the plan's engine with its knobs, or asks again") {
  const StepGraph graph = step_of(small_cnn, sgd_momentum());
  const auto run = [&](const std::string& engine) {
    auto backend = open_cuda_backend(pretended_setup());
    REQUIRE(backend.has_value());
    Plan plan = resident_plan(graph, 2);
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
      if (graph.nodes[i].convolution >= 0) plan.nodes[i].engine = engine;
    }
    return execute(plan, **backend, {.clean = true});
  };
  REQUIRE(run("cudnn 9.19.0 eng3 k2=1 k5=0").has_value());
  CHECK(cudnn().last_engine == 3);
  CHECK(cudnn().knobs == 2);
  CHECK(cudnn().asked == 0);
  CHECK(cudnn().stream != nullptr);
  const long executed = cudnn().executed;
  CHECK(executed == 5);  // two layers; the first has no gradient of its input
  for (const char* other : {"cudnn 9.18.1 eng3", "rule", ""}) {
    REQUIRE(run(other).has_value());
    CHECK(cudnn().last_engine == 7);
    CHECK(cudnn().asked == executed);
  }
}

TEST_CASE("whichever call of cuDNN fails is named, and all is freed") {
  const StepGraph graph = step_of(small_cnn, sgd_momentum());
  const Plan plan = resident_plan(graph, 2);
  long failures = 0;
  for (long n = 1;; n += n < 40 ? 1 : 13) {
    const CudaSetup setup = pretended_setup();
    cudnn().fail_at = n;
    {
      auto backend = open_cuda_backend(setup);
      REQUIRE(backend.has_value());
      const auto done = execute(plan, **backend, {.clean = true});
      if (cudnn().calls >= n && !done) {
        ++failures;
        CHECK(done.error().front().message.find("cuDNN: ") != std::string::npos);
      }
    }
    CHECK(cudnn().live == 0);
    CHECK(driver().live == 0);
    if (cudnn().calls < n) break;
  }
  CHECK(failures > 40);
}

TEST_CASE("whichever call of cuBLAS fails is named, and all is freed") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  const Plan plan = resident_plan(graph, 2);
  long failures = 0;
  for (long n = 1;; ++n) {
    const CudaSetup setup = pretended_setup();
    blas().fail_at = n;
    {
      auto backend = open_cuda_backend(setup);
      REQUIRE(backend.has_value());
      const auto done = execute(plan, **backend, {.clean = true});
      if (blas().calls >= n) {
        ++failures;
        REQUIRE(!done.has_value());
        CHECK(done.error().front().message.find(": cublasLt") != std::string::npos);
        CHECK(done.error().front().message.ends_with(" fails with error 14"));
      }
    }
    CHECK(blas().handles == 0);
    CHECK(blas().descriptors == 0);
    CHECK(driver().live == 0);
    if (blas().calls < n) break;
  }
  CHECK(failures > 40);
}

TEST_CASE("an engine that wants more than the plan has room for is not taken") {
  const StepGraph graph = step_of(small_cnn, sgd_momentum());
  const CudaSetup setup = pretended_setup();
  cudnn().workspace = 4096;
  auto backend = open_cuda_backend(setup);
  REQUIRE(backend.has_value());
  const auto done = execute(resident_plan(graph, 2), **backend, {.clean = true});
  REQUIRE(!done.has_value());
  CHECK(done.error().front().message.ends_with(
      "cuDNN 9.19.0 has no engine here for a convolution with a workspace of 0 B"));
}

TEST_CASE("a library that is missing is named with the kernel that wants it") {
  const StepGraph graph = step_of(small_cnn, sgd_momentum());
  const auto refusal = [&](const CudaSetup& setup) {
    auto backend = open_cuda_backend(setup);
    REQUIRE(backend.has_value());
    const auto done = execute(resident_plan(graph, 2), **backend, {.clean = true});
    return done ? std::string() : done.error().front().message;
  };
  CudaSetup without = pretended_setup();
  without.libraries.nvrtc = {};
  CHECK(refusal(without).find("NVRTC, which compiles our kernels, does not load") !=
        std::string::npos);
  without = pretended_setup();
  without.libraries.cublas = {};
  CHECK(refusal(without).find("cuBLAS was not found") != std::string::npos);
  without = pretended_setup();
  without.libraries.cudnn = []() -> Result<const CudnnLibrary*> { return failure("no cuDNN"); };
  CHECK(refusal(without) == "node 'conv1.forward': no cuDNN");
}

}  // namespace stowage::test
