// In-process stages of `stowage check`, for gpt2 and resnet50: reading the description, lowering
// it, sizing it, lifetimes and peak.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <iostream>

#include "estimator/memory/lifetimes.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/step/lower.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"

namespace stowage {
namespace {

constexpr std::int64_t batch = 8;
constexpr double compute_capability = 8.6;

template <typename T>
T value_of(Result<T> result) {
  if (!result) {
    std::cerr << render(result.error());
    std::exit(2);
  }
  return std::move(*result);
}

FoundModel found(const std::string& model) {
  return value_of(find_model(model, STOWAGE_SOURCE_DIR "/configs/models"));
}

Result<ModelGraph> read(const FoundModel& model) { return load_model(model.source, model.options); }

std::shared_ptr<const StepGraph> graph_of(const std::string& model) {
  return std::make_shared<const StepGraph>(
      value_of(lower(value_of(read(found(model))), {.kernels = KernelSet::pytorch})));
}

void read_description(benchmark::State& state, const std::string& model) {
  const FoundModel text = found(model);
  for (auto _ : state) benchmark::DoNotOptimize(value_of(read(text)));
}

void lower_model(benchmark::State& state, const std::string& model) {
  const ModelGraph graph = value_of(read(found(model)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(value_of(lower(graph, {.kernels = KernelSet::pytorch})));
  }
}

// With the rule for workspaces: cuDNN's own time is bench/whole_process.sh's business.
void size(benchmark::State& state, const std::string& model) {
  const auto graph = graph_of(model);
  for (auto _ : state) {
    const auto source = rule_workspace_source(compute_capability);
    benchmark::DoNotOptimize(value_of(size_step(graph, batch, *source)));
  }
}

void find_peak(benchmark::State& state, const std::string& model) {
  const auto source = rule_workspace_source(compute_capability);
  const SizedStep step = value_of(size_step(graph_of(model), batch, *source));
  for (auto _ : state) {
    const StepMemory memory = step_memory(step, {});
    const auto intervals = lifetimes(memory.uses, memory.steps);
    benchmark::DoNotOptimize(peak(live_bytes(intervals, memory.steps)));
  }
}

BENCHMARK_CAPTURE(read_description, gpt2, "gpt2")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(read_description, resnet50, "resnet50")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(lower_model, gpt2, "gpt2")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(lower_model, resnet50, "resnet50")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(size, gpt2, "gpt2")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(size, resnet50, "resnet50")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(find_peak, gpt2, "gpt2")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(find_peak, resnet50, "resnet50")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stowage

BENCHMARK_MAIN();
