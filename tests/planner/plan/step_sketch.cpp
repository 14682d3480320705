#include "tests/planner/plan/step_sketch.hpp"

#include <algorithm>
#include <utility>

namespace stowage {

std::int32_t StepSketch::storage(std::string name, Bytes bytes, Life life) {
  Item item;
  item.name = std::move(name);
  item.bytes = bytes;
  item.h2d_seconds = h2d_seconds(rates_, bytes);
  item.d2h_seconds = d2h_seconds(rates_, bytes);
  problem_.items.push_back(std::move(item));
  life_.push_back(life);
  return static_cast<std::int32_t>(problem_.items.size()) - 1;
}

void StepSketch::operation(std::string name, Pin pin, std::initializer_list<std::int32_t> reads,
                           std::initializer_list<std::int32_t> writes, double flops) {
  const auto step = static_cast<std::int32_t>(problem_.operations.size());
  double bytes = 0;
  const auto touch = [&](std::int32_t index, bool is_write) {
    Item& item = problem_.items[static_cast<std::size_t>(index)];
    bytes += static_cast<double>(item.bytes.count());
    if (item.touches.empty() || item.touches.back().step != step) {
      item.touches.push_back({step, false, false});
    }
    (is_write ? item.touches.back().writes : item.touches.back().reads) = true;
  };
  for (const std::int32_t index : reads) touch(index, false);
  for (const std::int32_t index : writes) touch(index, true);
  const auto time = [&](double flop_rate, double bandwidth) {
    return std::max(flops / flop_rate, bandwidth > 0 ? bytes / bandwidth : 0);
  };
  Operation operation;
  operation.name = std::move(name);
  operation.engines = {{rates_.gpu_launch + time(rates_.gpu_flops, rates_.gpu_bandwidth), Bytes()}};
  operation.cpu_seconds = rates_.cpu_launch + time(rates_.cpu_flops, rates_.cpu_bandwidth);
  operation.pin = pin;
  problem_.operations.push_back(std::move(operation));
}

ResidencyProblem StepSketch::problem() const {
  ResidencyProblem result = problem_;
  for (std::size_t i = 0; i < result.items.size(); ++i) {
    Item& item = result.items[i];
    const bool written = std::any_of(item.touches.begin(), item.touches.end(),
                                     [](const Touch& touch) { return touch.writes; });
    item.wraps = life_[i] == Life::state;
    item.host_at_start = item.wraps ? !written : life_[i] == Life::input;
  }
  return result;
}

Rates round_rates() {
  Rates rates;
  rates.gpu_flops = 10e12;
  rates.gpu_launch = 0;
  rates.cpu_flops = 0.1e12;
  rates.cpu_launch = 0;
  rates.h2d_bandwidth = rates.d2h_bandwidth = 10e9;
  rates.h2d_latency = rates.d2h_latency = 0;
  return rates;
}

namespace {

// A layer of the sketch that multiplies by a weight: what its backward and its update need.
struct Linear {
  std::string name;
  std::int32_t weight, gradient, first_moment, second_moment;
  std::int32_t x, y;
  double flops;
};

struct Transformer {
  StepSketch& step;
  std::int64_t tokens;
  std::vector<Linear> linears;

  Bytes floats(std::int64_t count) const { return Bytes(4 * count); }

  std::int32_t linear(const std::string& name, std::int32_t x, std::int64_t in, std::int64_t out) {
    const Bytes size = floats(in * out);
    Linear layer;
    layer.name = name;
    layer.weight = step.storage(name + ".weight", size, Life::state);
    layer.gradient = step.storage(name + ".weight.grad", size);
    layer.first_moment = step.storage(name + ".m", size, Life::state);
    layer.second_moment = step.storage(name + ".v", size, Life::state);
    layer.x = x;
    layer.y = step.storage(name, floats(tokens * out));
    layer.flops = 2.0 * static_cast<double>(tokens) * static_cast<double>(in * out);
    step.operation(name + ".forward", Pin::gpu, {x, layer.weight}, {layer.y}, layer.flops);
    linears.push_back(layer);
    return layer.y;
  }

  std::int32_t pointwise(const std::string& name, std::int32_t x, std::int64_t width) {
    const std::int32_t y = step.storage(name, floats(tokens * width));
    step.operation(name + ".forward", Pin::gpu, {x}, {y});
    return y;
  }
};

}  // namespace

ResidencyProblem transformer_step(int layers, std::int64_t width, std::int64_t tokens,
                                  std::int64_t vocabulary, const Rates& rates) {
  StepSketch step(rates);
  Transformer net{step, tokens, {}};
  const std::int32_t input = step.storage("input", Bytes(4 * tokens * width), Life::input);
  std::int32_t x = net.pointwise("embedded", input, width);
  for (int layer = 0; layer < layers; ++layer) {
    const std::string at = "h" + std::to_string(layer) + ".";
    x = net.pointwise(at + "norm1", x, width);
    x = net.linear(at + "qkv", x, width, 3 * width);
    x = net.pointwise(at + "attention", x, width);
    x = net.linear(at + "proj", x, width, width);
    x = net.pointwise(at + "norm2", x, width);
    x = net.linear(at + "fc1", x, width, 4 * width);
    x = net.pointwise(at + "gelu", x, 4 * width);
    x = net.linear(at + "fc2", x, 4 * width, width);
  }
  x = net.linear("head", x, width, vocabulary);
  std::int32_t flowing = step.storage("loss.grad", Bytes(4 * tokens * vocabulary));
  step.operation("loss", Pin::gpu, {x}, {flowing});
  for (std::size_t i = net.linears.size(); i-- > 0;) {
    const Linear& layer = net.linears[i];
    const std::int32_t dx = step.storage(
        layer.name + ".dx", i == 0 ? Bytes(4 * tokens * width) : Bytes(4 * tokens * width));
    step.operation(layer.name + ".backward.filter", Pin::gpu, {layer.x, flowing}, {layer.gradient},
                   layer.flops);
    step.operation(layer.name + ".backward.data", Pin::gpu, {flowing, layer.weight}, {dx},
                   layer.flops);
    flowing = dx;
    if (i > 0) {
      const std::int32_t through = step.storage(layer.name + ".through", Bytes(4 * tokens * width));
      step.operation(layer.name + ".between", Pin::gpu, {dx, net.linears[i - 1].y}, {through});
      flowing = through;
    }
  }
  for (const Linear& layer : net.linears) {
    step.operation("update." + layer.name, Pin::free,
                   {layer.weight, layer.gradient, layer.first_moment, layer.second_moment},
                   {layer.weight, layer.first_moment, layer.second_moment});
  }
  return step.problem();
}

}  // namespace stowage
