#include "planner/validate_pytorch/host_stays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "estimator/step/saved_storages.hpp"
#include "planner/validate_pytorch/module_span.hpp"

namespace stowage {

namespace {

/// What the nodes do with each storage.
struct StorageUses {
  NodeId last_write;    ///< none: no node writes it
  NodeId last_forward;  ///< that touches it
  NodeId first_later;   ///< of backward or the update that touches it
};

std::vector<StorageUses> uses_by_storage(const StepGraph& step) {
  std::vector<StorageUses> uses(step.storages.size());
  for (std::size_t n = 0; n < step.nodes.size(); ++n) {
    const KernelNode& node = step.nodes[n];
    const NodeId id = NodeId::of(n);
    const auto touch = [&](StorageId storage) {
      StorageUses& of = uses[storage.index()];
      if (runs_in_forward(node)) {
        of.last_forward = id;
      } else if (!of.first_later.valid()) {
        of.first_later = id;
      }
    };
    for (const TensorView& view : node.reads) touch(view.storage);
    for (const TensorView& view : node.writes) {
      touch(view.storage);
      uses[view.storage.index()].last_write = id;
    }
  }
  return uses;
}

class FindStays {
 public:
  FindStays(const PytorchPlan& plan, const PlanPlaces& places, const StepGraph& step,
            const SavedCalls& calls)
      : plan_(plan), places_(places), step_(step), calls_(calls), uses_(uses_by_storage(step)) {}

  HostStays run() && {
    std::vector<StayOnHost> stays;
    for (std::size_t i = 0; i < plan_.offload.size(); ++i) {
      if (const auto stay = stay_of(i)) stays.push_back(*stay);
    }
    std::size_t tensors = 0;
    for (const OffloadedStorage& storage : plan_.offload) tensors += storage.saved.size();
    return {.stays = std::move(stays),
            .tensors = verdict("saved tensors", wrong_tensors_,
                               fmt::format("{} tensors of {} storages, as the step saves them",
                                           tensors, plan_.offload.size())),
            .owners =
                verdict("freed memory", wrong_owners_, "nothing but autograd holds what is let go"),
            .order = verdict("order of copies", wrong_order_,
                             fmt::format("{} copies there and back", plan_.offload.size()))};
  }

 private:
  [[nodiscard]] std::int64_t count() const {
    return wrong_tensors_.count + wrong_owners_.count + wrong_order_.count;
  }

  std::optional<StayOnHost> stay_of(std::size_t i) {
    const std::int64_t before = count();
    const auto storage = storage_of(i);
    if (!storage) return std::nullopt;
    check_owner(i, *storage);
    const auto stay = points_of(i, *storage);
    return count() == before ? stay : std::nullopt;
  }

  /// The storage in which the entry's tensors lie.
  std::optional<StorageId> storage_of(std::size_t i) {
    const OffloadedStorage& entry = plan_.offload[i];
    std::optional<StorageId> storage;
    for (std::size_t t = 0; t < entry.saved.size(); ++t) {
      const SavedName& name = entry.saved[t];
      const auto found = calls_.find(name.key);
      if (!found) {
        places_.note(wrong_tensors_, {"offload", i, "saved", t, "key"},
                     "the step saves no tensor '{}'", name.key);
        continue;
      }
      const TensorView& view = calls_.all()[*found].view;
      if (view.type != name.type) {
        places_.note(wrong_tensors_, {"offload", i, "saved", t, "dtype"},
                     "'{}' is of {}, not of {}", name.key, to_string(view.type),
                     to_string(name.type));
      }
      if (view.shape != name.shape) {
        places_.note(wrong_tensors_, {"offload", i, "saved", t, "shape"},
                     "'{}' has the shape {}, not {}", name.key, to_string(view.shape),
                     to_string(name.shape));
      }
      if (storage && *storage != view.storage) {
        places_.note(wrong_tensors_, {"offload", i, "saved", t, "key"},
                     "'{}' lies in another storage than '{}'", name.key, entry.saved.front().key);
      }
      if (!storage) storage = view.storage;
    }
    if (storage) check_whole(i, *storage);
    return storage;
  }

  void check_whole(std::size_t i, StorageId storage) {
    const OffloadedStorage& entry = plan_.offload[i];
    for (const std::size_t own : calls_.within(storage)) {
      const std::string& key = calls_.all()[own].key;
      if (std::ranges::find(entry.saved, key, &SavedName::key) != entry.saved.end()) continue;
      places_.note(wrong_tensors_, {"offload", i, "saved"}, "'{}' lies in the same storage", key);
    }
    const Affine bytes = step_.storage(storage).bytes;
    if (bytes == entry.bytes) return;
    places_.note(wrong_tensors_, {"offload", i, "bytes"},
                 "the storage of '{}' has {} bytes, not {}", entry.saved.front().key,
                 bytes.to_string(), entry.bytes.to_string());
  }

  /// Whether autograd alone holds the storage when the plan lets it go.
  void check_owner(std::size_t i, StorageId id) {
    const Storage& storage = step_.storage(id);
    const std::string& key = plan_.offload[i].saved.front().key;
    const auto held_by = [&](std::string_view whom) {
      places_.note(wrong_owners_, {"offload", i}, "'{}' lies in '{}', which {} holds", key,
                   storage.name, whom);
    };
    if (storage.persistence == Persistence::persistent) held_by("the model or its optimizer");
    const auto& variables = step_.micro_batch.variables;
    if (storage.persistence == Persistence::from_host ||
        step_.script_holds.of(id).outlives_step() ||
        std::ranges::find(variables, id, &ScriptVariable::storage) != variables.end()) {
      held_by("a variable of the script");
    }
    const bool is_kept = std::ranges::any_of(step_.saved, [&](const SavedTensor& saved) {
      return saved.storage == id &&
             ((saved.role == region_input_role && !saved.call) || saved.role == kept_result_role);
    });
    if (is_kept) held_by("torch.utils.checkpoint");
    const bool is_recorded = std::ranges::any_of(step_.saved, is_recorded_call);
    const bool is_saved_later = std::ranges::any_of(step_.saved, [&](const SavedTensor& saved) {
      return saved.storage == id && !saved.call && saved.role != region_input_role &&
             saved.role != kept_result_role;
    });
    if (is_recorded && is_saved_later) held_by("a later pass of the step");
  }

  /// The nodes of the entry's three calls.
  std::optional<StayOnHost> points_of(std::size_t i, StorageId id) {
    const OffloadedStorage& entry = plan_.offload[i];
    const StorageUses& uses = uses_[id.index()];
    StayOnHost stay{.storage = id, .at_backward = entry.release.empty()};
    const auto start = calls_.find(entry.start);
    if (!start) return std::nullopt;  // it is one of `saved`, and noted there
    NodeId held;
    for (const std::size_t own : calls_.within(id)) {
      const SavedTensorCall& call = calls_.all()[own];
      held = std::max(held, call.held);
      if (call.before.valid() && (!stay.needed.valid() || call.before < stay.needed)) {
        stay.needed = call.before;
      }
    }
    stay.copied = calls_.all()[*start].after;
    if (*start != calls_.within(id).back()) {
      places_.note(wrong_order_, {"offload", i, "start"},
                   "'{}' is not the last tensor that is saved of it", entry.start);
    } else if (!stay.copied.valid() || uses.last_write > stay.copied) {
      places_.note(wrong_order_, {"offload", i, "start"},
                   "the storage is written after the copy begins");
    }
    if (!stay.needed.valid()) {
      places_.note(wrong_order_, {"offload", i}, "backward asks for no tensor of it");
      return std::nullopt;
    }
    set_let_go(i, *start, std::max(uses.last_forward, held), stay);
    set_fetched(i, uses, stay);
    return stay;
  }

  /// `last`: the last node of forward that uses it, or during which the script has it.
  void set_let_go(std::size_t i, std::size_t start, NodeId last, StayOnHost& stay) {
    const std::string& release = plan_.offload[i].release;
    const NodeId backward = calls_.backward_begins();
    stay.let_go = NodeId{backward.value - 1};
    if (!release.empty()) {
      const auto call = calls_.find(release);
      if (!call) {
        places_.note(wrong_order_, {"offload", i, "release"}, "the step saves no tensor '{}'",
                     release);
        return;
      }
      stay.let_go = calls_.all()[*call].after;
      if (*call <= start || stay.let_go >= backward) {
        places_.note(wrong_order_, {"offload", i, "release"},
                     "'{}' is not saved between the copy's begin and backward", release);
        return;
      }
    }
    if (last <= stay.let_go) return;
    places_.note(wrong_order_, {"offload", i, "release"},
                 "'{}' uses the storage, or the script has it, "
                 "after it is let go",
                 step_.node(last).name);
  }

  void set_fetched(std::size_t i, const StorageUses& uses, StayOnHost& stay) {
    const std::string& fetch = plan_.offload[i].fetch;
    stay.fetched = stay.needed;
    if (!fetch.empty()) {
      const auto call = calls_.find(fetch);
      if (!call || !calls_.all()[*call].before.valid()) {
        places_.note(wrong_order_, {"offload", i, "fetch"}, "backward asks for no tensor '{}'",
                     fetch);
        return;
      }
      stay.fetched = calls_.all()[*call].before;
    }
    NodeId use = stay.needed;
    if (uses.first_later.valid()) use = std::min(use, uses.first_later);
    if (stay.fetched > use) {
      places_.note(wrong_order_, {"offload", i, "fetch"},
                   "'{}' uses the storage before it is fetched", step_.node(use).name);
    } else if (stay.fetched <= stay.let_go) {
      places_.note(wrong_order_, {"offload", i, "fetch"}, "it is fetched before it is let go");
    }
  }

  const PytorchPlan& plan_;
  const PlanPlaces& places_;
  const StepGraph& step_;
  const SavedCalls& calls_;
  std::vector<StorageUses> uses_;
  Violations wrong_tensors_, wrong_owners_, wrong_order_;
};

}  // namespace

HostStays find_host_stays(const PytorchPlan& plan, const PlanPlaces& places, const StepGraph& step,
                          const SavedCalls& calls) {
  return FindStays(plan, places, step, calls).run();
}

}  // namespace stowage
