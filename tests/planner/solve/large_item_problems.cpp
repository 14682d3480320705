#include "tests/planner/solve/large_item_problems.hpp"

#include <string>
#include <vector>

#include "tests/planner/plan/step_sketch.hpp"

namespace stowage {

namespace {

std::string numbered(const char* name, int i) { return name + std::to_string(i); }

}  // namespace

ResidencyProblem giant_embedding(const EmbeddingShape& shape) {
  Rates rates = round_rates();
  rates.gpu_bandwidth = 400e9;
  rates.cpu_bandwidth = 20e9;
  StepSketch step(rates);
  const auto table = step.storage("table", Bytes(shape.table), Life::state);
  const auto tokens = step.storage("tokens", Bytes(4096), Life::input);
  std::vector<std::int32_t> weight, value{step.storage("embedded", Bytes(shape.activation))};
  const double flops = 1e3 * static_cast<double>(shape.weight);
  step.operation("embed", Pin::free, {table, tokens}, {value[0]});
  for (int i = 0; i < shape.layers; ++i) {
    // Sizes differ, so that no two layers are worth the same.
    weight.push_back(step.storage(numbered("w", i), Bytes(shape.weight + std::int64_t{40'000} * i),
                                  Life::state));
    value.push_back(
        step.storage(numbered("y", i), Bytes(shape.activation + std::int64_t{90'000} * i)));
    step.operation(numbered("forward", i), Pin::free, {value[value.size() - 2], weight.back()},
                   {value.back()}, flops);
  }
  auto flowing = step.storage("loss", Bytes(shape.activation));
  step.operation("loss", Pin::free, {value.back()}, {flowing});
  for (int i = shape.layers; i-- > 0;) {
    const auto at = static_cast<std::size_t>(i);
    const auto next = step.storage(numbered("dx", i), Bytes(shape.activation));
    const auto gradient = step.storage(numbered("dw", i), Bytes(shape.weight));
    step.operation(numbered("backward", i), Pin::free, {value[at], weight[at], flowing},
                   {next, gradient}, 2 * flops);
    step.operation(numbered("update", i), Pin::free, {weight[at], gradient}, {weight[at]});
    flowing = next;
  }
  step.operation("embed.update", Pin::free, {table, tokens, flowing}, {table});
  return step.problem();
}

ResidencyProblem u_shape(int depth, std::int64_t bytes) {
  Rates rates = round_rates();
  rates.gpu_bandwidth = rates.cpu_bandwidth = 1e15;
  StepSketch step(rates);
  const auto size = [&](int level, int extra) {
    return Bytes((bytes >> level) + std::int64_t{1000} * extra);
  };
  std::vector<std::int32_t> down, up;
  auto flowing = step.storage("input", Bytes(bytes), Life::input);
  for (int i = 0; i < depth; ++i) {
    down.push_back(step.storage(numbered("down", i), size(i, i)));
    step.operation(numbered("down", i), Pin::free, {flowing}, {down.back()});
    flowing = step.storage(numbered("pooled", i), size(i + 2, 3 * i));
    step.operation(numbered("pool", i), Pin::free, {down.back()}, {flowing});
  }
  for (int i = depth; i-- > 0;) {
    up.push_back(step.storage(numbered("up", i), size(i, 7 * i)));
    step.operation(numbered("up", i), Pin::free, {down[static_cast<std::size_t>(i)], flowing},
                   {up.back()});
    flowing = up.back();
  }
  auto gradient = step.storage("loss", Bytes(bytes));
  step.operation("loss", Pin::gpu, {flowing}, {gradient});
  for (int i = 0; i < depth; ++i) {
    const auto next = step.storage(numbered("dup", i), size(i + 1, i));
    step.operation(
        numbered("up.backward", i), Pin::gpu,
        {up[static_cast<std::size_t>(depth - 1 - i)], gradient, down[static_cast<std::size_t>(i)]},
        {next});
    gradient = next;
  }
  for (int i = depth; i-- > 0;) {
    const auto next = step.storage(numbered("ddown", i), size(i, 5 * i));
    step.operation(numbered("down.backward", i), Pin::free,
                   {gradient, down[static_cast<std::size_t>(i)]}, {next});
    gradient = next;
  }
  return step.problem();
}

}  // namespace stowage
