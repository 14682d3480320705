#include "planner/validate_pytorch/bound_of_updates.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "estimator/rewrite/parameter_updates.hpp"
#include "planner/validate_pytorch/hooked_graph.hpp"

namespace stowage {

namespace {

// torch's caching allocator hands out multiples of it.
constexpr std::int64_t allocated_unit = 512;

/// What a parameter's move takes off the GPU, and what crosses of it each way.
struct MovableParameter {
  std::int64_t freed = 0, crosses = 0;
  std::size_t number = 0;

  [[nodiscard]] double worth() const {
    return static_cast<double>(freed) / static_cast<double>(crosses);
  }
};

std::vector<MovableParameter> movable_parameters(const SizedStep& step) {
  const StepGraph& graph = *step.graph;
  std::vector<MovableParameter> all(graph.gradients.size());
  for (std::size_t p = 0; p < all.size(); ++p) all[p].number = p;
  for (const GradientOfParameter& one : gradients_of_parameters(graph)) {
    all[one.parameter.index()].crosses = step.bytes(one.gradient).count();
  }
  const auto updates = parameter_updates(graph);
  if (!updates) return {};
  for (std::size_t s = 0; s < graph.storages.size(); ++s) {
    const ParameterId owner = updates->owner[s];
    if (!owner.valid() || graph.storages[s].storage_class == StorageClass::parameter) continue;
    const std::int64_t bytes = step.storage_bytes[s].count();
    all[owner.index()].freed += (bytes + allocated_unit - 1) / allocated_unit * allocated_unit;
  }
  // What takes no more off than crosses of it is worth no more than a saved tensor.
  std::erase_if(all, [](const MovableParameter& one) {
    return one.crosses == 0 || one.freed <= one.crosses;
  });
  return all;
}

}  // namespace

Bytes bound_of_updates(const SizedStep& step, Bytes excess) {
  std::vector<MovableParameter> parameters = movable_parameters(step);
  std::ranges::sort(parameters, [](const MovableParameter& one, const MovableParameter& other) {
    return std::tuple(one.worth(), one.number) > std::tuple(other.worth(), other.number);
  });
  std::int64_t left = excess.count(), crossing = 0;
  for (const MovableParameter& one : parameters) {
    if (left < one.freed) {
      // The last one, in part.
      const double share = static_cast<double>(left) / static_cast<double>(one.freed);
      crossing += static_cast<std::int64_t>(share * static_cast<double>(one.crosses));
      left = 0;
      break;
    }
    crossing += one.crosses;
    left -= one.freed;
  }
  return Bytes(crossing + left) * 2;
}

}  // namespace stowage
