// WorkspaceRange: the workspace sizes of a node that leave PyTorch's allocator in the same state as
// the one with which it ran.
//
// A workspace is allocated and freed before anything else is:
//   - what the cache has a block for changes nothing: the block is split and merged again;
//   - what it has none for leaves a free segment, whose size is all that is left of the request.
// So where a workspace was served from the cache, all do that the largest block was enough for, and
// none at all; where the driver was asked, all for which it is asked for as much.
#pragma once

#include <optional>

#include "estimator/allocator/allocator_settings.hpp"
#include "estimator/base/bytes.hpp"

namespace stowage {

/// The largest free blocks of the allocator's two pools that a request could have.
struct LargestCached {
  Bytes small, large;
};

/// Precondition of all: the settings have no max_split_size, with which a block may be free and too
/// large.
class WorkspaceRange {
 public:
  /// A call with `workspace` > 0, which is the same at each call, and what was cached before it.
  void note(Bytes workspace, const LargestCached& cached, const AllocatorSettings& settings);

  /// Whether all calls would have gone alike with `workspace`; 0: with none.
  [[nodiscard]] bool contains(Bytes workspace, const AllocatorSettings& settings) const;

 private:
  std::optional<LargestCached> served_;  // the least of each, of calls that the cache served
  struct Asked {
    bool small = false;  // the pool
    Bytes above;         // the most that was cached in it
    Bytes segment;
  };
  std::optional<Asked> asked_;  // of the others
};

}  // namespace stowage
