// show_step FILE OPTIMIZER: our step of a reference file, as JSON for diff_step.py: the tensors
// saved for backward, and node by node what is live and which storages appear and go.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "estimator/memory/lifetimes.hpp"
#include "estimator/memory/step_memory.hpp"
#include "tests/estimator/reference/known_differences.hpp"
#include "tests/estimator/reference/reference_step.hpp"

namespace stowage::reference {

namespace {

using nlohmann::ordered_json;

ordered_json saved_of(const SizedStep& step) {
  ordered_json rows = ordered_json::array();
  std::map<StorageId, std::string> uses;
  for (const SavedTensor& saved : step.graph->saved) {
    uses[saved.storage] += (uses[saved.storage].empty() ? "" : ", ") + saved.role;
  }
  for (const auto& [id, roles] : uses) {
    const Storage& storage = step.graph->storage(id);
    rows.push_back({to_string(storage.storage_class), step.bytes(id).count(), storage.name, roles});
  }
  return rows;
}

ordered_json nodes_of(const ReferenceModel& reference, const SizedStep& step) {
  const StepMemory memory = step_memory(step, {});
  const std::vector<Lifetime> lived = lifetimes(memory.uses, memory.steps);
  const std::vector<Bytes> live = live_bytes(lived, memory.steps);
  const std::vector<Bytes> accounted = accounted_live(reference, step, {}, live).live;
  ordered_json nodes = ordered_json::array();
  for (std::size_t i = 0; i < step.graph->nodes.size(); ++i) {
    const KernelNode& node = step.graph->nodes[i];
    nodes.push_back({{"phase", to_string(node.phase)},
                     {"name", node.name},
                     {"live", live[i].count()},
                     {"accounted", accounted[i].count()},
                     {"begin", ordered_json::array()},
                     {"end", ordered_json::array()}});
  }
  for (const Lifetime& lifetime : lived) {
    const MemoryEntry& entry = memory.entries[static_cast<std::size_t>(lifetime.use)];
    const std::string name = entry.storage.valid()
                                 ? step.graph->storage(entry.storage).name
                                 : step.graph->node(entry.node).name + " workspace";
    const ordered_json row{name, lifetime.bytes.count()};
    nodes[static_cast<std::size_t>(lifetime.steps.begin)]["begin"].push_back(row);
    if (lifetime.steps.end < memory.steps) {
      nodes[static_cast<std::size_t>(lifetime.steps.end)]["end"].push_back(row);
    }
  }
  return nodes;
}

void show(const std::string& file, const std::string& optimizer) {
  for (const ReferenceModel& reference : reference_models()) {
    if (reference.file != file) continue;
    const SizedStep step = traced_step(traced_model(reference), reference, optimizer);
    const ordered_json shown{{"saved", saved_of(step)}, {"nodes", nodes_of(reference, step)}};
    fmt::print("{}\n", shown.dump());
    return;
  }
  throw std::runtime_error("no reference file " + file);
}

}  // namespace

}  // namespace stowage::reference

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw std::runtime_error("usage: show_step FILE OPTIMIZER");
    stowage::reference::show(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "show_step: {}\n", error.what());
    return 2;
  }
}
