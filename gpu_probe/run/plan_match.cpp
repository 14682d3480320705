#include "gpu_probe/run/plan_match.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stowage {

std::int64_t micro_batch_size(const Plan& plan) {
  return plan.inputs.batch / std::max(plan.inputs.lowering.micro_batches, 1);
}

namespace {

/// Ids and ranges that would lead outside the tables.
std::vector<std::string> range_mismatches(const Plan& plan) {
  std::vector<std::string> found;
  const auto storages = static_cast<std::int32_t>(plan.storages.size());
  const auto steps = static_cast<std::int32_t>(plan.nodes.size());
  const auto check = [&](const char* what, StorageId storage, std::int32_t begin, std::int32_t end,
                         bool may_be_empty) {
    const bool ordered = begin < end || (may_be_empty && begin == end);
    if (storage.value >= 0 && storage.value < storages && begin >= 0 && ordered && end <= steps) {
      return;
    }
    found.push_back(
        fmt::format("a {} of storage {} during [{}, {}) in a step of {} nodes and {} "
                    "storages",
                    what, storage.value, begin, end, steps, storages));
  };
  for (const Residence& r : plan.gpu) {
    check("GPU residence", r.storage, r.steps.begin, r.steps.end, false);
  }
  for (const Residence& r : plan.host) {
    check("host residence", r.storage, r.steps.begin, r.steps.end, false);
  }
  for (const Transfer& t : plan.transfers) check("transfer", t.storage, t.begin, t.end, true);
  return found;
}

}  // namespace

std::vector<std::string> mismatches(const Plan& plan, const StepGraph& graph) {
  if (plan.nodes.size() != graph.nodes.size()) {
    return {fmt::format("the plan has {} nodes, its description's step {}", plan.nodes.size(),
                        graph.nodes.size())};
  }
  if (plan.storages.size() != graph.storages.size()) {
    return {fmt::format("the plan has {} storages, its description's step {}", plan.storages.size(),
                        graph.storages.size())};
  }
  std::vector<std::string> found;
  const std::int64_t batch = micro_batch_size(plan);
  if (batch < 1 || batch * plan.inputs.lowering.micro_batches != plan.inputs.batch) {
    found.push_back(fmt::format("batch {} is not {} equal micro-batches", plan.inputs.batch,
                                plan.inputs.lowering.micro_batches));
    return found;
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].name == graph.nodes[i].name) continue;
    found.push_back(fmt::format("node {} is '{}' in the plan and '{}' in its description's step", i,
                                plan.nodes[i].name, graph.nodes[i].name));
  }
  for (std::size_t i = 0; i < plan.storages.size(); ++i) {
    const Bytes size(graph.storages[i].bytes.at(batch));
    if (plan.storages[i].name == graph.storages[i].name && plan.storages[i].bytes == size) continue;
    found.push_back(
        fmt::format("storage {} is '{}' of {} bytes in the plan and '{}' of {} in its "
                    "description's step",
                    i, plan.storages[i].name, plan.storages[i].bytes.count(),
                    graph.storages[i].name, size.count()));
  }
  const auto ranges = range_mismatches(plan);
  found.insert(found.end(), ranges.begin(), ranges.end());
  return found;
}

}  // namespace stowage
