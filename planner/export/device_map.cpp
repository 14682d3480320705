// accelerate's dispatch_model(model, device_map): a name of the map covers the module of that name
// and all below it; modules on "cpu" bring their weights to the GPU while they run
// (accelerate/big_modeling.py, hooks.py, of accelerate 1.15.0).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "planner/export/layer_placement.hpp"
#include "planner/export/plan_text.hpp"
#include "planner/export/settings_tree.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

/// "layer1.0.conv1" of "layer1.0.conv1.weight".
std::string module_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? parameter : parameter.substr(0, dot);
}

/// Modules that have weights, with whether all of them stay on the GPU. Modules that share a weight
/// go together.
class ModulePlaces {
 public:
  explicit ModulePlaces(const Plan& plan) : plan_(plan), stays_(resident_throughout(plan)) {
    const StepGraph& graph = *plan.step.graph;
    for (std::size_t i = 0; i < graph.storages.size(); ++i) {
      if (is_weight(graph.storages[i])) add(graph.storages[i].name, stays_[i]);
    }
    for (const KernelNode& node : graph.nodes) note_shared(node);
    spread_over_shared();
    // What leaves with its module leaves, whatever the plan has.
    for (std::size_t i = 0; i < graph.storages.size(); ++i) {
      if (is_weight(graph.storages[i])) stays_[i] = on_gpu_.at(module_of(graph.storages[i].name));
    }
  }

  [[nodiscard]] const std::map<std::string, bool>& on_gpu() const { return on_gpu_; }
  [[nodiscard]] const std::vector<bool>& stays() const { return stays_; }
  [[nodiscard]] Bytes bytes(bool on_gpu) const {
    Bytes sum;
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      if (is_weight(plan_.step.graph->storages[i]) && stays_[i] == on_gpu) {
        sum += plan_.bytes(StorageId{static_cast<std::int32_t>(i)});
      }
    }
    return sum;
  }

 private:
  static bool is_weight(const Storage& storage) {
    return storage.storage_class == StorageClass::parameter ||
           storage.storage_class == StorageClass::buffer;
  }

  void add(const std::string& parameter, bool stays) {
    const auto [place, is_new] = on_gpu_.emplace(module_of(parameter), stays);
    if (!is_new) place->second = place->second && stays;
  }

  /// A layer that reads a weight of another one shares it.
  void note_shared(const KernelNode& node) {
    const std::string layer(plan_.step.graph->layer(node.op));
    if (layer.empty()) return;
    for (const TensorView& view : node.reads) {
      const Storage& storage = plan_.storage(view.storage);
      if (!is_weight(storage)) continue;
      const std::string owner = module_of(storage.name);
      if (owner == layer || owner.starts_with(layer + '.') || layer.starts_with(owner + '.'))
        continue;
      on_gpu_.emplace(layer, true);
      shared_.emplace(owner, layer);
    }
  }

  void spread_over_shared() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [owner, user] : shared_) {
        bool &a = on_gpu_.at(owner), &b = on_gpu_.at(user);
        if (a == b) continue;
        a = b = false;
        changed = true;
      }
    }
  }

  const Plan& plan_;
  std::vector<bool> stays_;
  std::map<std::string, bool> on_gpu_;
  std::set<std::pair<std::string, std::string>> shared_;
};

/// The tree of modules' names: a name covers all below it where they are on one device.
struct ModuleTree {
  std::map<std::string, std::unique_ptr<ModuleTree>> children;
  std::optional<bool> own;  ///< of a module that has weights itself

  void add(const std::string& path, bool on_gpu) {
    const std::size_t dot = path.find('.');
    auto& child = children[path.substr(0, dot)];
    if (!child) child = std::make_unique<ModuleTree>();
    if (dot == std::string::npos) {
      child->own = on_gpu;
    } else {
      child->add(path.substr(dot + 1), on_gpu);
    }
  }

  /// The device of all below; nullopt: of both.
  [[nodiscard]] std::optional<bool> common() const {
    std::optional<bool> found = own;
    for (const auto& [name, child] : children) {
      const auto below = child->common();
      if (!below || (found && *found != *below)) return std::nullopt;
      found = below;
    }
    return found;
  }

  void write(const std::string& path, SettingsTree& map) const {
    if (const auto device = common()) {
      map.add(path, *device ? SettingsTree(0) : SettingsTree("cpu"));
      return;
    }
    for (const auto& [name, child] : children) {
      child->write(path.empty() ? name : fmt::format("{}.{}", path, name), map);
    }
  }
};

/// A module with weights of its own and parts on another device: no name covers the one without the
/// other.
bool has_mixed_owner(const ModuleTree& tree) {
  if (tree.own && !tree.common()) return true;
  return std::ranges::any_of(tree.children,
                             [](const auto& row) { return has_mixed_owner(*row.second); });
}

}  // namespace

Result<PlanText> device_map(const Plan& plan) {
  if (const std::string mismatch = two_sides_mismatch(plan.machine); !mismatch.empty()) {
    return failure("a plan for another machine than one GPU and its host is not exported: " +
                   mismatch);
  }
  if (plan.step.graph->settings.mode == Mode::train) {
    return failure("a device_map is of an inference, and the plan trains");
  }
  const ModulePlaces places(plan);
  ModuleTree tree;
  for (const auto& [module, on_gpu] : places.on_gpu()) tree.add(module, on_gpu);
  if (has_mixed_owner(tree)) {
    return failure(
        "a module has weights of its own on one device and parts on the other: a "
        "device_map has no name for that");
  }
  SettingsTree map = SettingsTree::Members{}, limits, whole;
  tree.write("", map);
  limits.add("0", places.bytes(true));
  limits.add("cpu", places.bytes(false));
  whole.add("device_map", std::move(map));
  whole.add("max_memory", std::move(limits));
  PlanText text{.body = json_text(whole), .gpu_peak = peak_without_plan(plan, places.stays())};
  text.remarks = {
      "the names are the plan's: those of the model's own modules where a config.json or a "
      "recording "
      "was planned",
      "weights on the host are brought for each call of their module, when it begins: accelerate "
      "copies none ahead",
      "max_memory's keys are numbers in Python: int(key) of \"0\""};
  const LayerPlacement layers = layer_placement(plan);
  const auto on_cpu =
      std::ranges::count(layers.layers, Device::cpu, &std::pair<std::string, Device>::second);
  if (on_cpu > 0) {
    text.remarks.push_back(fmt::format(
        "{} layers that the plan computes on the CPU: accelerate computes them on the GPU",
        on_cpu));
  }
  return text;
}

}  // namespace stowage
