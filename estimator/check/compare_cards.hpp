// compare_cards: whether steps fit cards, and their largest batches: one answer a step and a card.
//
//   CardCase (a step on a card) -> find_batch, and a check at the batch that is asked about
//                               -> CardAnswer
//
// A case's answer is that of find_batch for it alone: cards that run the same step share no more
// than runs of the allocator whose result is the same for all (shared_replays.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/card/card.hpp"
#include "estimator/check/batch_search.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "estimator/step/step_graph.hpp"
#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

struct CardCase {
  std::shared_ptr<const StepGraph> graph;
  Card card;
  CheckSettings settings;
  std::optional<std::int64_t> batch;  ///< that is asked about; none: the recommended one
  std::optional<Bytes> margin;        ///< usual_margin() where it is not given
  bool any_batch = true;              ///< false: the step has sizes at `batch` alone
  bool alone = false;                 ///< its source may not be asked while another one is
};

struct CardAnswer {
  bool fits = false;           ///< at `needed_at`
  Bytes needed;                ///< what the process takes of the card at `needed_at`
  std::int64_t needed_at = 0;  ///< the case's batch; else the recommended one; 1 where none fits
  Bytes available;             ///< total - in use - reserve
  Bytes headroom;              ///< available - needed; negative: what is missing
  std::int64_t largest = 0;    ///< as BatchReport has these
  std::int64_t recommended = 0;
  bool keeps_margin = true;
  bool all_tried = true;
  bool unlimited = false;
  WorkspaceOrigin workspaces = WorkspaceOrigin::none;
};

/// By case. `sources`: by case; cases that ask theirs anything do not share it. Cases that are
/// `alone` run one after the other, in their order; the others on all threads.
/// Errors of a case: as size_step's.
[[nodiscard]] std::vector<Result<CardAnswer>> compare_cards(
    const std::vector<CardCase>& cases, const std::vector<WorkspaceSource*>& sources);

}  // namespace stowage
