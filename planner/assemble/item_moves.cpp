#include "planner/assemble/item_moves.hpp"

#include <algorithm>
#include <cassert>

namespace stowage {
namespace {

class ItemMoveBuilder {
 public:
  ItemMoveBuilder(const ResidencyProblem& problem, const Placement& placement, std::int32_t index,
                  ItemMoves& moves)
      : item_(problem.items[static_cast<std::size_t>(index)]),
        placement_(placement),
        index_(index),
        steps_(static_cast<std::int32_t>(problem.operations.size())),
        touches_(item_.touches.size()),
        moves_(moves) {
    for (std::size_t i = 0; i < touches_; ++i) {
      if (item_.touches[i].writes) last_write_ = static_cast<std::int32_t>(i);
    }
  }

  void make() {
    make_stays();
    make_host_copies();
    make_downloads();
  }

 private:
  [[nodiscard]] bool on_cpu(std::size_t touch) const {
    const auto step = static_cast<std::size_t>(item_.touches[touch].step);
    return placement_.device[step] == Device::cpu;
  }
  [[nodiscard]] bool written_on_cpu(std::size_t touch) const {
    return item_.touches[touch].writes && on_cpu(touch);
  }
  [[nodiscard]] bool on_gpu(std::size_t touch) const {
    return placement_.on_gpu[static_cast<std::size_t>(index_)][touch];
  }
  /// Whether a useful GPU copy lasts through the gap after a touch.
  [[nodiscard]] bool stays_after(std::size_t touch) const {
    const std::size_t next = (touch + 1) % touches_;
    if (touch + 1 == touches_ && !item_.wraps) return false;
    return placement_.resident[static_cast<std::size_t>(index_)][touch] && on_gpu(touch) &&
           on_gpu(next) && !written_on_cpu(touch) && !written_on_cpu(next);
  }
  [[nodiscard]] bool stays_before(std::size_t touch) const {
    return stays_after((touch + touches_ - 1) % touches_);
  }
  [[nodiscard]] bool used_on_gpu(std::size_t touch) const {
    if (!on_cpu(touch)) {
      assert(on_gpu(touch));
      return true;
    }
    return stays_before(touch) || stays_after(touch);
  }

  void make_stays() {
    stay_of_.assign(touches_, -1);
    starts_stay_.assign(touches_, false);
    const bool wraps = stays_after(touches_ - 1);
    for (std::size_t i = 0; i < touches_; ++i) {
      if (!used_on_gpu(i)) continue;
      const std::int32_t step = item_.touches[i].step;
      const bool continues = i > 0 && stays_before(i);
      if (!continues) {
        const bool from_previous = i == 0 && wraps;
        starts_stay_[i] = !from_previous;
        moves_.stays.push_back({index_, {from_previous ? 0 : step, 0}, from_previous, false});
      }
      stay_of_[i] = static_cast<std::int32_t>(moves_.stays.size()) - 1;
      GpuStay& stay = moves_.stays.back();
      stay.to_next = i + 1 == touches_ && wraps;
      stay.steps.end = stay.to_next ? steps_ : step + 1;
    }
  }

  /// The host copy of a version (the touch that writes it; -1: from before the step). Made when
  /// first needed.
  std::int32_t copy_of(std::int32_t version) {
    const auto slot = static_cast<std::size_t>(version + 1);
    if (copy_[slot] >= 0) return copy_[slot];
    HostCopy copy{.item = index_};
    if (version < 0) {
      copy.at_start = true;
      copy.to_next = item_.wraps && last_write_ < 0;
      // Another version wraps: the one written last must be on the host when the step ends.
      if (item_.wraps && last_write_ >= 0) {
        moves_.copies[static_cast<std::size_t>(copy_of(last_write_))].to_next = true;
      }
    } else if (on_cpu(static_cast<std::size_t>(version))) {
      copy.begin = item_.touches[static_cast<std::size_t>(version)].step;
      copy.users.push_back(copy.begin);
    }
    moves_.copies.push_back(std::move(copy));
    copy_[slot] = static_cast<std::int32_t>(moves_.copies.size()) - 1;
    return copy_[slot];
  }

  void make_host_copies() {
    copy_.assign(touches_ + 1, -1);
    first_need_.assign(touches_ + 1, steps_);
    std::int32_t version = -1;
    std::int32_t previous_stay = -1;
    for (std::size_t i = 0; i < touches_; ++i) {
      const Touch& touch = item_.touches[i];
      std::int32_t& need = first_need_[static_cast<std::size_t>(version + 1)];
      if (touch.reads && starts_stay_[i]) {
        const std::int32_t copy = copy_of(version);
        moves_.copies[static_cast<std::size_t>(copy)].uploads.push_back(
            static_cast<std::int32_t>(moves_.uploads.size()));
        moves_.uploads.push_back({.stay = stay_of_[i],
                                  .need = touch.step,
                                  .earliest = written_before(i),
                                  .previous_stay = previous_stay});
        need = std::min(need, touch.step);
      }
      if (touch.reads && on_cpu(i)) {
        HostCopy& copy = moves_.copies[static_cast<std::size_t>(copy_of(version))];
        copy.users.push_back(touch.step);
        need = std::min(need, touch.step);
      }
      if (touch.writes) {
        version = static_cast<std::int32_t>(i);
        if (on_cpu(i)) copy_of(version);
      }
      if (stay_of_[i] >= 0) previous_stay = stay_of_[i];
    }
  }

  /// Boundary after the last write before a touch; 0: none in this step.
  [[nodiscard]] std::int32_t written_before(std::size_t touch) const {
    for (std::size_t i = touch; i-- > 0;) {
      if (item_.touches[i].writes) return item_.touches[i].step + 1;
    }
    return 0;
  }

  void make_downloads() {
    for (std::size_t i = 0; i < touches_; ++i) {
      const std::int32_t copy = copy_[i + 1];
      if (copy < 0 || on_cpu(i)) continue;
      std::int32_t latest = first_need_[i + 1];
      for (std::size_t j = i + 1; j < touches_; ++j) {
        if (item_.touches[j].writes) latest = std::min(latest, item_.touches[j].step);
      }
      const auto download = static_cast<std::int32_t>(moves_.downloads.size());
      moves_.downloads.push_back({stay_of_[i], item_.touches[i].step + 1, latest});
      HostCopy& filled = moves_.copies[static_cast<std::size_t>(copy)];
      filled.download = download;
      for (const std::int32_t upload : filled.uploads) {
        moves_.uploads[static_cast<std::size_t>(upload)].download = download;
      }
    }
  }

  const Item& item_;
  const Placement& placement_;
  std::int32_t index_, steps_;
  std::size_t touches_;
  std::int32_t last_write_ = -1;
  ItemMoves& moves_;
  std::vector<std::int32_t> stay_of_;     // by touch; -1: not on the GPU
  std::vector<bool> starts_stay_;         // by touch; and was not there when the step started
  std::vector<std::int32_t> copy_;        // by version + 1
  std::vector<std::int32_t> first_need_;  // by version + 1: the first step that needs a host copy
};

}  // namespace

ItemMoves make_moves(const ResidencyProblem& problem, const Placement& placement) {
  ItemMoves moves;
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    ItemMoveBuilder(problem, placement, static_cast<std::int32_t>(i), moves).make();
  }
  return moves;
}

}  // namespace stowage
