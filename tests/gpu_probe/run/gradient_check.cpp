#include "tests/gpu_probe/run/gradient_check.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "gpu_probe/host/host_kernels.hpp"
#include "gpu_probe/run/initial_values.hpp"
#include "gpu_probe/run/node_call.hpp"
#include "gpu_probe/run/resident_step.hpp"

namespace stowage::test {
namespace {

using Vector = std::vector<double>;

float element(const std::byte* data, std::size_t i) {
  float value = 0;
  std::memcpy(&value, data + i * sizeof value, sizeof value);
  return value;
}

/// The loss after the parameter has been moved by `length` times `direction`.
double loss_of(const StepGraph& graph, std::int64_t batch, StorageId moved, const Vector& direction,
               double length) {
  std::vector<std::vector<std::byte>> values = initial_values(graph, batch);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i].resize(static_cast<std::size_t>(graph.storages[i].bytes.at(batch)));
  }
  std::byte* const parameter = values[moved.index()].data();
  for (std::size_t i = 0; i < direction.size(); ++i) {
    const auto value = static_cast<float>(element(parameter, i) + length * direction[i]);
    std::memcpy(parameter + i * sizeof value, &value, sizeof value);
  }
  for (const KernelNode& node : graph.nodes) {
    if (node.phase != Phase::forward && node.phase != Phase::loss) break;
    const NodeArguments arguments =
        arguments_of(node, batch, [&](StorageId id) { return values[id.index()].data(); });
    const auto done = run_host_kernel({.kernel = node.kernel,
                                       .device = Device::cpu,
                                       .attributes = &node.attributes,
                                       .reads = arguments.reads,
                                       .writes = arguments.writes,
                                       .engine = {},
                                       .workspace = nullptr,
                                       .workspace_bytes = {}});
    REQUIRE(done.has_value());
  }
  return element(values[graph.losses.front().storage.index()].data(), 0);
}

double length_of(const Vector& v) {
  double squares = 0;
  for (const double x : v) squares += x * x;
  return std::sqrt(squares);
}

}  // namespace

std::vector<GradientCheck> check_gradients(const StepGraph& graph, std::int64_t batch,
                                           double length) {
  const auto results = run_resident_step(graph, batch);
  REQUIRE(results.has_value());
  std::vector<std::pair<StorageId, Vector>> gradients;
  double longest = 0;
  for (std::size_t s = 0; s < graph.storages.size(); ++s) {
    const Storage& storage = graph.storages[s];
    if (storage.storage_class != StorageClass::parameter) continue;
    const TensorView& view = graph.gradients[storage.parameter.index()];
    if (!view.storage.valid()) continue;
    const auto& bytes = results->at(view.storage);
    Vector gradient(bytes.size() / sizeof(float));
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = element(bytes.data(), i);
    longest = std::max(longest, length_of(gradient));
    if (length_of(gradient) > 0) gradients.emplace_back(StorageId::of(s), std::move(gradient));
  }
  std::mt19937_64 random(7);
  std::vector<GradientCheck> checks;
  for (const auto& [storage, gradient] : gradients) {
    const double size = length_of(gradient), scale = std::max(size, longest / 10);
    const double step = 1 / std::sqrt(static_cast<double>(gradient.size()));
    Vector along = gradient, drawn = gradient;
    double expected = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      along[i] = gradient[i] / size;
      drawn[i] = (random() & 1) != 0 ? step : -step;
      expected += gradient[i] * drawn[i];
    }
    const auto slope = [&, moved = storage](const Vector& direction) {
      return (loss_of(graph, batch, moved, direction, length) -
              loss_of(graph, batch, moved, direction, -length)) /
             (2 * length);
    };
    checks.push_back({graph.storage(storage).name, std::abs(slope(along) - size) / scale,
                      std::abs(slope(drawn) - expected) / scale});
  }
  return checks;
}

}  // namespace stowage::test
