#include "estimator/rewrite/saved_on_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "estimator/rewrite/host_copies.hpp"
#include "estimator/rewrite/node_insertion.hpp"
#include "estimator/rewrite/renumber.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

class SavedStaying {
 public:
  SavedStaying(StepGraph step, const std::vector<SavedStay>& stays)
      : step_(std::move(step)),
        stays_(stays),
        old_storages_(step_.storages.size()),
        stay_of_(step_.storages.size(), nullptr),
        fetched_(step_.storages.size()) {}

  Result<StepGraph> run() && {
    for (const SavedStay& stay : stays_) {
      if (auto wrong = problem_of(stay)) return failure(*std::move(wrong));
      stay_of_[stay.storage.index()] = &stay;
    }
    if (auto wrong = wrong_touch()) return failure(*std::move(wrong));
    for (const SavedStay& stay : stays_) add_copies(stay);
    read_fetched();
    put_together();
    return std::move(step_);
  }

 private:
  [[nodiscard]] std::optional<std::string> problem_of(const SavedStay& stay) const {
    const std::string& name = step_.storage(stay.storage).name;
    if (stay_of_[stay.storage.index()] != nullptr) {
      return fmt::format("'{}' has two stays on the host", name);
    }
    const bool ordered = stay.copied_after.valid() && stay.copied_after <= stay.released_after &&
                         stay.released_after < stay.fetched_before &&
                         stay.fetched_before.index() < step_.nodes.size();
    if (ordered) return std::nullopt;
    return fmt::format("the stay of '{}' on the host ends before it begins", name);
  }

  /// The first node that touches a storage while it is away, or writes to what was fetched.
  [[nodiscard]] std::optional<std::string> wrong_touch() const {
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      const KernelNode& node = step_.nodes[n];
      const NodeId at = NodeId::of(n);
      const auto stay_of = [&](const TensorView& view) { return stay_of_[view.storage.index()]; };
      for (const auto* views : {&node.reads, &node.writes}) {
        for (const TensorView& view : *views) {
          const SavedStay* const stay = stay_of(view);
          if (stay == nullptr || at <= stay->released_after || at >= stay->fetched_before) continue;
          return fmt::format("'{}' touches '{}', which is on the host then", node.name,
                             step_.storage(view.storage).name);
        }
      }
      for (const TensorView& view : node.writes) {
        const SavedStay* const stay = stay_of(view);
        if (stay == nullptr || at <= stay->copied_after) continue;
        return fmt::format("'{}' writes to '{}', which has been copied to the host", node.name,
                           step_.storage(view.storage).name);
      }
    }
    return std::nullopt;
  }

  void add_copies(const SavedStay& stay) {
    Storage fetched = step_.storage(stay.storage);
    fetched.name = dotted(unnumbered(fetched.name), "fetched");
    const StorageId copy = StorageId::of(step_.storages.size());
    step_.storages.push_back(std::move(fetched));
    fetched_[stay.storage.index()] = copy;
    const std::string owner = unnumbered(step_.storage(stay.storage).name);
    behind_.emplace(stay.copied_after.index(),
                    copy_to_host(step_, stay.storage, owner, Phase::forward));
    before_.emplace(stay.fetched_before.index(),
                    copy_from_host(step_, copy, owner, Phase::backward));
  }

  /// Nodes behind the fetch read and hold the copy; the original is held to its release.
  void read_fetched() {
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      KernelNode& node = step_.nodes[n];
      const auto move = [&](StorageId& id) {
        if (id.index() >= old_storages_ || stay_of_[id.index()] == nullptr) return;
        if (NodeId::of(n) >= stay_of_[id.index()]->fetched_before) id = fetched_[id.index()];
      };
      for (TensorView& view : node.reads) move(view.storage);
      for (StorageId& id : node.holds) move(id);
    }
    for (const SavedStay& stay : stays_) {
      step_.nodes[stay.released_after.index()].holds.push_back(stay.storage);
    }
  }

  void put_together() {
    insert_nodes(step_, std::move(before_), std::move(behind_));
    number_repetitions(step_.nodes);
    number_repetitions(step_.storages, old_storages_);
    into_micro_batch(step_, old_storages_);
  }

  StepGraph step_;
  const std::vector<SavedStay>& stays_;
  std::size_t old_storages_;
  std::vector<const SavedStay*> stay_of_;                   // by old storage
  std::vector<StorageId> fetched_;                          // by old storage
  std::multimap<std::size_t, KernelNode> before_, behind_;  // new nodes, by one that is there
};

}  // namespace

Result<StepGraph> with_saved_on_host(StepGraph step, const std::vector<SavedStay>& stays) {
  return SavedStaying(std::move(step), stays).run();
}

}  // namespace stowage
