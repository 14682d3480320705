// Small and random residency problems with the steps they stand for, for tests of the planner.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <random>
#include <string>

#include "estimator/memory/sized_step.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// The step that make_problem would have made this problem of: one node an operation, one storage
/// an item, then one an operation's temporaries. Fills the problem's storage_of.
inline SizedStep step_of(ResidencyProblem& problem) {
  auto graph = std::make_shared<StepGraph>();
  SizedStep step;
  problem.storage_of.clear();
  for (const Item& item : problem.items) {
    Storage storage;
    storage.name = item.name;
    storage.bytes = item.bytes.count();
    if (item.wraps) storage.persistence = Persistence::persistent;
    if (item.host_at_start && !item.wraps) storage.persistence = Persistence::from_host;
    problem.storage_of.push_back(StorageId::of(graph->storages.size()));
    graph->storages.push_back(storage);
    step.storage_bytes.push_back(item.bytes);
  }
  for (const Operation& operation : problem.operations) {
    KernelNode node;
    node.name = operation.name;
    if (operation.temporaries > Bytes()) {
      Storage storage;
      storage.name = operation.name + ".temporary";
      storage.storage_class = StorageClass::temporary;
      storage.bytes = operation.temporaries.count();
      node.temporaries.push_back(StorageId::of(graph->storages.size()));
      graph->storages.push_back(storage);
      step.storage_bytes.push_back(operation.temporaries);
    }
    std::vector<Engine> engines;
    for (std::size_t k = 0; k < operation.engines.size(); ++k) {
      engines.push_back({fmt::format("engine {}", k), operation.engines[k].workspace});
    }
    step.engines.emplace_back(std::move(engines));
    step.flops.push_back(0);
    step.bytes_moved.push_back(0);
    graph->nodes.push_back(std::move(node));
  }
  step.graph = graph;
  step.batch = 1;
  return step;
}

class RandomProblems {
 public:
  explicit RandomProblems(unsigned seed) : random_(seed) {}

  /// Inputs, weights, trained parameters and activations under random operations.
  ResidencyProblem problem(std::size_t operations, std::size_t items) {
    ResidencyProblem problem;
    for (std::size_t i = 0; i < operations; ++i) {
      Operation operation;
      operation.name = fmt::format("op{}", i);
      for (std::size_t k = 0; k < 1 + below(2); ++k) {
        operation.engines.push_back({1e-6 * static_cast<double>(1 + below(50)), bytes(3000)});
      }
      operation.cpu_seconds = 1e-6 * static_cast<double>(1 + below(500));
      if (below(4) == 0) operation.temporaries = bytes(2000);
      problem.operations.push_back(operation);
    }
    for (std::size_t i = 0; i < items; ++i) {
      problem.items.push_back(item(i, operations));
    }
    return problem;
  }

  /// Consistent by the definition of ResidencyProblem, otherwise anything.
  Placement placement(const ResidencyProblem& problem) {
    Placement placement;
    for (const Operation& operation : problem.operations) {
      const bool cpu = below(4) == 0;
      placement.device.push_back(cpu ? Device::cpu : Device::gpu);
      placement.engine.push_back(cpu ? 0
                                     : static_cast<std::int32_t>(below(operation.engines.size())));
    }
    for (const Item& item : problem.items) {
      std::vector<bool> on_gpu, resident;
      for (const Touch& touch : item.touches) {
        const bool cpu = placement.device[static_cast<std::size_t>(touch.step)] == Device::cpu;
        on_gpu.push_back(!cpu || (!touch.writes && below(2) == 0));
      }
      const std::size_t gaps = item.touches.size() - (item.wraps ? 0 : 1);
      for (std::size_t gap = 0; gap < gaps; ++gap) {
        resident.push_back(on_gpu[gap] && on_gpu[(gap + 1) % on_gpu.size()] && below(2) == 0);
      }
      placement.on_gpu.push_back(on_gpu);
      placement.resident.push_back(resident);
    }
    return placement;
  }

  std::size_t below(std::size_t n) { return random_() % n; }

 private:
  Bytes bytes(std::size_t largest) { return Bytes(static_cast<std::int64_t>(below(largest))); }

  Item item(std::size_t index, std::size_t operations) {
    Item item;
    item.name = fmt::format("item{}", index);
    item.bytes = bytes(5000) + 1_B;
    item.h2d_seconds = 1e-6 * static_cast<double>(1 + below(60));
    item.d2h_seconds = 1e-6 * static_cast<double>(1 + below(60));
    const std::size_t kind = below(4);
    item.wraps = kind >= 2;
    item.host_at_start = kind == 0 || kind == 2;
    for (std::size_t step = 0; step < operations; ++step) {
      if (below(3) == 0) item.touches.push_back({static_cast<std::int32_t>(step), true, false});
    }
    if (item.touches.empty()) {
      item.touches.push_back({static_cast<std::int32_t>(below(operations)), true, false});
    }
    if (kind == 1) item.touches.front() = {item.touches.front().step, false, true};
    if (kind % 2 == 1) {  // activations and trained parameters are written again now and then
      for (std::size_t i = kind == 1 ? 1 : 0; i < item.touches.size(); ++i) {
        item.touches[i].writes = below(3) == 0;
        item.touches[i].reads = !item.touches[i].writes || i == 0 || below(2) == 0;
      }
      if (kind == 3) item.touches.back().writes = true;
    }
    return item;
  }

  std::mt19937 random_;
};

}  // namespace stowage
