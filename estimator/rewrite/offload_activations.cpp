#include "estimator/rewrite/offload_activations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "estimator/rewrite/node_insertion.hpp"
#include "estimator/rewrite/renumber.hpp"
#include "estimator/step/offloaded_bytes.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/saved_storages.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

/// One call of the hook that packs, in forward's order.
struct Pack {
  std::size_t at = 0;  ///< the forward node that it follows; of a region: that it precedes
  OperatorId op;
  int region = -1;  ///< whose input it is, or -1
  TensorView view;
  std::size_t saved = 0;  ///< of StepGraph::saved
  int times = 1;          ///< how often autograd saves it, one after the other: a second save
                          ///< stays on the GPU
  bool offloaded = false;
  bool stashed = false;      ///< still in the stash when backward begins
  StorageId stash, fetched;  ///< what the stash keeps; what backward reads
};

/// A backward node of autograd that unpacks offloaded tensors.
struct Unpacking {
  std::size_t first = 0, last = 0;  ///< of its kernels
  std::vector<std::size_t> packs;
};

bool same_elements(const TensorView& a, const TensorView& b) {
  return a.type == b.type && a.offset == b.offset && a.shape == b.shape && a.strides == b.strides;
}

/// What a view of a storage is in the copies of what was saved of that storage. A copy has the
/// saved elements alone, one behind the other: a part of the storage lies in it from its start on.
TensorView fetched_view(const TensorView& view, const std::vector<const Pack*>& packs) {
  const auto same = std::find_if(packs.rbegin(), packs.rend(),
                                 [&](const Pack* pack) { return same_elements(pack->view, view); });
  const Pack& pack = same == packs.rend() ? *packs.back() : **same;
  const bool is_whole = is_contiguous(pack.view) && pack.view.offset == Affine(0);
  if (is_whole) {
    TensorView fetched = view;
    fetched.storage = pack.fetched;
    return fetched;
  }
  return contiguous_view(pack.fetched, view.shape, view.type);
}

class Offloading {
 public:
  Offloading(StepGraph step, const OffloadedPart& part, const OffloadSettings& settings)
      : step_(std::move(step)),
        settings_(settings),
        region_of_(step_.origins.size(), -1),
        unhooked_(step_.origins.size()),
        last_forward_(step_.origins.size(), nowhere),
        first_of_region_(part.regions.size(), nowhere),
        old_storages_(step_.storages.size()) {
    for (std::size_t r = 0; r < part.regions.size(); ++r) {
      for (const OperatorId op : part.regions[r].operators) {
        region_of_[op.index()] = static_cast<int>(r);
      }
    }
    for (const OperatorId op : part.unhooked) unhooked_[op.index()] = true;
  }

  StepGraph run() && {
    find_forward();
    find_packs();
    pack_all();
    find_unpackings();
    unpack_all();
    put_together();
    return std::move(step_);
  }

 private:
  void find_forward();
  void find_packs();
  void pack_all();
  void find_unpackings();
  void unpack_all();
  void read_fetched();
  void put_together();
  [[nodiscard]] std::size_t last_backward() const;
  [[nodiscard]] TensorView saved_view(const SavedTensor& saved, std::size_t again) const;
  [[nodiscard]] int times_saved(const SavedTensor& saved) const;
  void evict(std::int64_t until, std::size_t at);
  void offload(Pack& pack);
  StorageId add_storage(const Pack& pack, std::string_view part, StorageClass storage_class);
  [[nodiscard]] KernelNode copy_node(const Pack& pack, std::string_view part,
                                     std::string_view kernel, Phase phase) const;

  StepGraph step_;
  const OffloadSettings& settings_;
  std::vector<int> region_of_;                // by OperatorId
  std::vector<bool> unhooked_;                // by OperatorId
  std::vector<std::size_t> last_forward_;     // by OperatorId: its last node
  std::vector<std::size_t> first_of_region_;  // by region: its first node
  std::size_t old_storages_;
  std::vector<Pack> packs_;
  std::vector<Unpacking> unpackings_;
  std::deque<std::pair<std::int64_t, std::size_t>> stash_;  // number of the save, of packs_
  std::multimap<std::size_t, KernelNode> before_, behind_;  // new nodes, by one that is there
};

void Offloading::find_forward() {
  for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
    const KernelNode& node = step_.nodes[n];
    if (node.phase == Phase::backward || node.phase == Phase::update || !node.op.valid()) continue;
    last_forward_[node.op.index()] = n;
    if (const int region = region_of_[node.op.index()]; region >= 0) {
      std::size_t& first = first_of_region_[static_cast<std::size_t>(region)];
      if (first == nowhere) first = n;
    }
  }
}

// The list of saved tensors has only their storages. Their views are those of the operator's
// kernels; if a storage is saved twice, the second one is its next view.
TensorView Offloading::saved_view(const SavedTensor& saved, std::size_t again) const {
  std::vector<TensorView> views;
  const auto look = [&](const std::vector<TensorView>& arguments) {
    for (const TensorView& view : arguments) {
      if (view.storage != saved.storage) continue;
      if (std::find(views.begin(), views.end(), view) == views.end()) views.push_back(view);
    }
  };
  const std::size_t last = last_forward_[saved.op.index()];
  for (std::size_t n = last; n != nowhere && step_.nodes[n].op == saved.op; --n) {
    look(step_.nodes[n].reads);
    look(step_.nodes[n].writes);
  }
  if (!views.empty()) return views[std::min(again, views.size() - 1)];
  const Affine bytes = step_.storage(saved.storage).bytes;
  return contiguous_view(saved.storage, {bytes}, DataType::uint8);
}

// An operator that PyTorch runs as several (a norm of transformers') lists a tensor once; autograd
// saves it for each of its products and powers.
int Offloading::times_saved(const SavedTensor& saved) const {
  const auto is_it = [&](const TensorView& view) { return view.storage == saved.storage; };
  std::ptrdiff_t times = 0;
  for (std::size_t n = last_forward_[saved.op.index()];
       n != nowhere && step_.nodes[n].op == saved.op; --n) {
    const KernelNode& node = step_.nodes[n];
    if (node.kernel == Kernel::multiply) times += std::ranges::count_if(node.reads, is_it);
    if (node.kernel == Kernel::unary_forward) {
      times += std::ranges::any_of(node.reads, is_it) || std::ranges::any_of(node.writes, is_it);
    }
  }
  return static_cast<int>(std::max<std::ptrdiff_t>(times, 1));
}

void Offloading::find_packs() {
  std::map<StorageId, int> entered;  // by what enters regions: how many
  for (const SavedTensor& saved : step_.saved) {
    if (saved.role == region_input_role) ++entered[saved.storage];
  }
  std::map<std::pair<OperatorId, StorageId>, std::size_t> times;
  for (std::size_t i = 0; i < step_.saved.size(); ++i) {
    const SavedTensor& saved = step_.saved[i];
    if (!saved.op.valid() || unhooked_[saved.op.index()]) continue;
    const int region = region_of_[saved.op.index()];
    if (region >= 0) {
      const std::size_t first = first_of_region_[static_cast<std::size_t>(region)];
      if (saved.role != region_input_role || entered[saved.storage] > 1 || first == nowhere)
        continue;
      Pack pack{.at = first, .op = saved.op, .region = region, .saved = i};
      pack.view =
          contiguous_view(saved.storage, {step_.storage(saved.storage).bytes}, DataType::uint8);
      packs_.push_back(std::move(pack));
      continue;
    }
    if (last_forward_[saved.op.index()] == nowhere) continue;
    Pack pack{.at = last_forward_[saved.op.index()], .op = saved.op, .saved = i};
    pack.view = saved_view(saved, times[{saved.op, saved.storage}]++);
    pack.times = times_saved(saved);
    packs_.push_back(std::move(pack));
  }
  std::stable_sort(packs_.begin(), packs_.end(), [](const Pack& a, const Pack& b) {
    return std::pair(a.at, a.region < 0) < std::pair(b.at, b.region < 0);
  });
}

StorageId Offloading::add_storage(const Pack& pack, std::string_view part,
                                  StorageClass storage_class) {
  Storage storage{.name = dotted(unnumbered(step_.storage(pack.view.storage).name), part),
                  .storage_class = storage_class,
                  .bytes = byte_count(pack.view),
                  .op = step_.storage(pack.view.storage).op};
  step_.storages.push_back(std::move(storage));
  return StorageId::of(step_.storages.size() - 1);
}

KernelNode Offloading::copy_node(const Pack& pack, std::string_view part, std::string_view kernel,
                                 Phase phase) const {
  return {.name = dotted(unnumbered(step_.storage(pack.view.storage).name), part),
          .kernel = Kernel::foreign,
          .phase = phase,
          .op = pack.op,
          .foreign_kernel = Shared<std::string>(std::string(kernel))};
}

void Offloading::evict(std::int64_t until, std::size_t at) {
  while (!stash_.empty() && stash_.front().first <= until) {
    const Pack& pack = packs_[stash_.front().second];
    step_.nodes[at].holds.push_back(pack.stash);
    stash_.pop_front();
  }
}

void Offloading::offload(Pack& pack) {
  pack.offloaded = true;
  pack.stash = pack.view.storage;
  KernelNode node = copy_node(pack, "to_host", offload_kernel, Phase::forward);
  node.reads = {pack.view};
  const bool whole = is_contiguous(pack.view) && pack.view.offset == Affine(0);
  if (!whole) {
    pack.stash = add_storage(pack, "contiguous", StorageClass::saved_auxiliary);
    node.writes = {contiguous_view(pack.stash, pack.view.shape, pack.view.type)};
  }
  (pack.region < 0 ? behind_ : before_).emplace(pack.at, std::move(node));
}

void Offloading::pack_all() {
  using Key = std::pair<StorageId, Affine>;
  std::map<Key, std::size_t> tracked;  // the save that has it: in the stash, or left on the GPU
  std::int64_t number = 0;
  for (std::size_t i = 0; i < packs_.size(); ++i) {
    Pack& pack = packs_[i];
    number += i == 0 ? 1 : packs_[i - 1].times;
    const Storage& storage = step_.storage(pack.view.storage);
    const Key key{pack.view.storage, pack.view.offset};
    if (settings_.streams && tracked.contains(key)) {
      tracked[key] = i;
      continue;
    }
    const bool stays =
        storage.persistence == Persistence::persistent || storage.parameter.valid() ||
        byte_count(pack.view).real_at(1) < static_cast<double>(settings_.least_bytes);
    if (stays) continue;
    if (settings_.streams) {
      while (!stash_.empty() && stash_.front().first <= number - settings_.stash) {
        const std::size_t old = stash_.front().second;
        const Key old_key{packs_[old].view.storage, packs_[old].view.offset};
        if (const auto found = tracked.find(old_key);
            found != tracked.end() && found->second == old)
          tracked.erase(found);
        evict(stash_.front().first, pack.at);
      }
    }
    offload(pack);
    if (!settings_.streams) continue;
    stash_.emplace_back(number, i);
    tracked[key] = i;
  }
  for (const auto& [saved, i] : stash_) packs_[i].stashed = true;
}

void Offloading::find_unpackings() {
  std::map<OperatorId, std::vector<std::size_t>> of_operator;
  std::map<int, std::vector<std::size_t>> of_region;
  for (std::size_t i = 0; i < packs_.size(); ++i) {
    if (!packs_[i].offloaded) continue;
    if (packs_[i].region >= 0) {
      of_region[packs_[i].region].push_back(i);
    } else {
      of_operator[packs_[i].op].push_back(i);
    }
  }
  std::set<int> begun;
  std::map<OperatorId, std::size_t> open;  // of unpackings_
  std::map<int, std::size_t> open_region;
  std::map<int, OperatorId> trigger;  // by region: the operator whose node runs it again
  for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
    const KernelNode& node = step_.nodes[n];
    if (node.phase != Phase::backward || !node.op.valid()) continue;
    const int region = region_of_[node.op.index()];
    if (region >= 0) {
      const auto packs = of_region.find(region);
      if (packs == of_region.end()) continue;
      if (begun.insert(region).second) {
        open_region[region] = unpackings_.size();
        unpackings_.push_back({.first = n, .last = n, .packs = packs->second});
      }
      if (is_second_run(node)) continue;
      if (!trigger.contains(region)) trigger[region] = node.op;
      if (node.op == trigger[region]) unpackings_[open_region[region]].last = n;
      continue;
    }
    const auto packs = of_operator.find(node.op);
    if (packs == of_operator.end()) continue;
    const auto [found, fresh] = open.emplace(node.op, unpackings_.size());
    if (fresh) unpackings_.push_back({.first = n, .last = n, .packs = packs->second});
    unpackings_[found->second].last = n;
  }
}

std::size_t Offloading::last_backward() const {
  std::size_t last = step_.nodes.size() - 1;
  while (step_.nodes[last].phase != Phase::backward) --last;
  return last;
}

/// Adds the copies back from the host before the backward nodes that read them, and holds them and
/// the stash as long as the hooks do.
void Offloading::unpack_all() {
  for (std::size_t u = 0; u < unpackings_.size(); ++u) {
    const Unpacking& unpacking = unpackings_[u];
    for (const std::size_t i : unpacking.packs) {
      Pack& pack = packs_[i];
      if (u == 0 && pack.stashed) {
        pack.fetched = pack.stash;
        continue;
      }
      pack.fetched = add_storage(pack, "fetched", step_.storage(pack.view.storage).storage_class);
      KernelNode node = copy_node(pack, "from_host", fetch_kernel, Phase::backward);
      node.writes = {contiguous_view(pack.fetched, pack.view.shape, pack.view.type)};
      before_.emplace(unpacking.first, std::move(node));
      // Tensors that a region's second run saves again outlive the stash anyway.
      if (!settings_.streams || pack.region >= 0) continue;
      const bool last = u + 1 == unpackings_.size();
      step_.nodes[last ? last_backward() : unpackings_[u + 1].last].holds.push_back(pack.fetched);
    }
  }
  if (!unpackings_.empty()) {
    for (const auto& [saved, i] : stash_) {
      step_.nodes[unpackings_.front().last].holds.push_back(packs_[i].stash);
    }
  }
  read_fetched();
  if (!settings_.streams) return;
  for (const Unpacking& unpacking : unpackings_) {
    for (const std::size_t i : unpacking.packs) {
      if (packs_[i].times > 1) step_.nodes[unpacking.last].holds.push_back(packs_[i].view.storage);
    }
  }
}

/// Lets backward read the copies instead of the originals.
void Offloading::read_fetched() {
  using Packs = std::vector<const Pack*>;
  std::map<std::pair<OperatorId, StorageId>, Packs> by_operator;
  std::map<std::pair<int, StorageId>, Packs> by_region;
  for (const Pack& pack : packs_) {
    if (!pack.offloaded || !pack.fetched.valid()) continue;
    if (pack.region >= 0) {
      by_region[{pack.region, pack.view.storage}].push_back(&pack);
    } else {
      by_operator[{pack.op, pack.view.storage}].push_back(&pack);
    }
  }
  for (KernelNode& node : step_.nodes) {
    if (node.phase != Phase::backward || !node.op.valid()) continue;
    const int region = region_of_[node.op.index()];
    const auto packs_of = [&](StorageId id) -> const Packs* {
      if (region >= 0) {
        const auto found = by_region.find({region, id});
        return found == by_region.end() ? nullptr : &found->second;
      }
      const auto found = by_operator.find({node.op, id});
      return found == by_operator.end() ? nullptr : &found->second;
    };
    for (TensorView& view : node.reads) {
      if (const Packs* const packs = packs_of(view.storage)) view = fetched_view(view, *packs);
    }
    for (StorageId& id : node.holds) {
      if (const Packs* const packs = packs_of(id)) id = packs->back()->fetched;
    }
  }
}

void Offloading::put_together() {
  std::set<std::size_t> gone;
  for (const Pack& pack : packs_) {
    if (pack.offloaded) gone.insert(pack.saved);
  }
  std::vector<SavedTensor> kept;
  for (std::size_t i = 0; i < step_.saved.size(); ++i) {
    if (!gone.contains(i)) kept.push_back(std::move(step_.saved[i]));
  }
  step_.saved = std::move(kept);
  insert_nodes(step_, std::move(before_), std::move(behind_));
  number_repetitions(step_.nodes);
  number_repetitions(step_.storages, old_storages_);
  into_micro_batch(step_, old_storages_);
}

}  // namespace

Result<StepGraph> with_offloaded_activations(StepGraph step, const OffloadedPart& part,
                                             const OffloadSettings& settings) {
  if (step.settings.mode != Mode::train) return failure("an inference saves nothing to offload");
  if (!traits(step.settings.kernels).library_optimizer) {
    return failure(fmt::format("the kernel set '{}' offloads nothing itself: a plan does",
                               traits(step.settings.kernels).name));
  }
  return Offloading(std::move(step), part, settings).run();
}

}  // namespace stowage
