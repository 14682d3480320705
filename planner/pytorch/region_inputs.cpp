#include "planner/pytorch/region_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "planner/pytorch/saved_moments.hpp"

namespace stowage {

namespace {

bool is_in_forward(const KernelNode& node) {
  return node.phase == Phase::forward || node.phase == Phase::loss;
}

/// What a region's forward kernels read and did not make.
struct EnteringTensors {
  NodeId called_after;            ///< the last node before the region's first
  std::vector<TensorView> views;  ///< the first that reads each storage
};

class RegionInputs {
 public:
  RegionInputs(const StepGraph& step, const std::vector<RecordedModule>& modules,
               std::vector<ModuleRegion>& regions)
      : step_(step), regions_(regions), made_(step.storages.size(), -1) {
    for (const RecordedModule& module : modules) called_.emplace(module.path, &module);
  }

  void run() && {
    find_entering();
    if (called_.empty()) {
      if (!has_recorded_keys(step_)) set_described();
      return;
    }
    for (std::size_t r = 0; r < regions_.size(); ++r) {
      if (!regions_[r].is_inner) set_recorded(regions_[r], entering_[r]);
    }
  }

 private:
  void find_entering() {
    std::vector<int> region_of(step_.origins.size(), -1);
    for (std::size_t r = 0; r < regions_.size(); ++r) {
      if (regions_[r].is_inner) continue;
      for (const OperatorId op : regions_[r].region.operators) {
        region_of[op.index()] = static_cast<int>(r);
      }
    }
    entering_.resize(regions_.size());
    std::vector<std::int32_t> first(regions_.size(), -1);
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      const KernelNode& node = step_.nodes[n];
      if (!is_in_forward(node)) continue;
      const auto at = static_cast<std::int32_t>(n);
      const int region = node.op.valid() ? region_of[node.op.index()] : -1;
      if (region >= 0) {
        const auto r = static_cast<std::size_t>(region);
        if (first[r] < 0) {
          first[r] = at;
          entering_[r].called_after = NodeId{at - 1};
        }
        for (const TensorView& view : node.reads) add(view, first[r], entering_[r].views);
      }
      for (const TensorView& view : node.writes) {
        std::int32_t& made = made_[view.storage.index()];
        if (made < 0) made = at;
      }
    }
  }

  void add(const TensorView& view, std::int32_t first, std::vector<TensorView>& views) const {
    const Storage& storage = step_.storage(view.storage);
    const std::int32_t made = made_[view.storage.index()];
    if (storage.persistence != Persistence::transient || made < 0 || made >= first) return;
    if (std::ranges::find(views, view.storage, &TensorView::storage) == views.end()) {
      views.push_back(view);
    }
  }

  void set_recorded(ModuleRegion& region, const EnteringTensors& entering) const {
    const RecordedModule* const called = called_module(region.module);
    if (called == nullptr || !entering.called_after.valid()) return;
    for (const RecordedModule::Input& input : called->inputs) {
      const StorageId id = input.view.storage;
      const bool enters =
          std::ranges::find(entering.views, id, &TensorView::storage) != entering.views.end();
      if (!enters || !input.held_until.valid()) continue;
      region.region.inputs.push_back({.key = fmt::format("{}#input{}", region.module, input.number),
                                      .view = input.view,
                                      .packed_after = entering.called_after,
                                      .unpacked_before = {},
                                      .held_until = input.held_until});
    }
  }

  /// Whose call says what the region is given: that of the first child of "features[2:5]" does.
  [[nodiscard]] const RecordedModule* called_module(const std::string& region) const {
    const auto find = [&](const std::string& path) {
      const auto found = called_.find(path);
      return found == called_.end() ? nullptr : found->second;
    };
    const std::size_t bracket = region.find('[');
    if (bracket == std::string::npos) return find(region);
    const std::string sequence = region.substr(0, bracket);
    const std::string place = region.substr(bracket + 1, region.find(':', bracket) - bracket - 1);
    const RecordedModule* const child = find(sequence + "." + place);
    return child != nullptr ? child
                            : find(place);  // of the model itself, whose name begins no path
  }

  void set_described() {
    std::map<StorageId, int> regions;  // that each storage enters
    for (const EnteringTensors& entering : entering_) {
      for (const TensorView& view : entering.views) ++regions[view.storage];
    }
    for (std::size_t r = 0; r < regions_.size(); ++r) {
      std::vector<SavedCall>& inputs = regions_[r].region.inputs;
      for (const TensorView& view : entering_[r].views) {
        const bool is_activation =
            step_.storage(view.storage).storage_class == StorageClass::activation;
        if (!is_activation || regions[view.storage] > 1) continue;
        inputs.push_back({.key = fmt::format("{}#input{}", regions_[r].module, inputs.size()),
                          .view = view,
                          .packed_after = entering_[r].called_after,
                          .unpacked_before = {},
                          .held_until = {}});
      }
    }
  }

  const StepGraph& step_;
  std::vector<ModuleRegion>& regions_;
  std::map<std::string, const RecordedModule*> called_;
  std::vector<EnteringTensors> entering_;  // by region
  std::vector<std::int32_t> made_;         // by storage: the first node that writes it
};

}  // namespace

void set_region_inputs(const StepGraph& step, const std::vector<RecordedModule>& modules,
                       std::vector<ModuleRegion>& regions) {
  RegionInputs(step, modules, regions).run();
}

}  // namespace stowage
