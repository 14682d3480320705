// ProcessReplay: what a process that trains or infers takes, as its allocator's simulator has it.
//
// Parameters and buffers are loaded, the first step follows, and then steps until one of them asks
// the driver for nothing more. process_walk.hpp runs it; allocator_replay.hpp does so for PyTorch,
// tensorflow_replay.hpp for TensorFlow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/allocator/out_of_memory.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/runtime/workspace_range.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Bytes of one moment or the most during some time.
struct AllocatorLevels {
  Bytes allocated;  ///< in blocks handed out: max_memory_allocated()
  Bytes reserved;   ///< max_memory_reserved()
};

/// What a library takes of the card, outside the allocator, at its first call.
struct LibraryLoad {
  std::string name;  ///< "cuBLAS"
  Bytes bytes;
  NodeId first_use;
};

/// A library that found no room.
struct MissingLibrary {
  LibraryLoad library;
  Bytes free;  ///< what the card had left
};

/// [from, end); without an end: all from there on.
struct LimitRange {
  Bytes from;
  std::optional<Bytes> end = {};

  [[nodiscard]] bool contains(Bytes limit) const { return from <= limit && (!end || limit < *end); }
};

struct ProcessReplay {
  AllocatorLevels loaded;       ///< with parameters and buffers
  AllocatorLevels first_step;   ///< the most during it
  AllocatorLevels steady;       ///< the most during the last of the steps
  Bytes reserved;               ///< the most in all
  Bytes cached_at_peak;         ///< reserved and not allocated when that was reached
  bool steady_reached = false;  ///< the last step asked the driver for nothing
  /// Limits under which the process runs the same, event by event (allocator_replay.hpp).
  LimitRange same_limits = {};
  /// Workspaces with which it runs the same too, of nodes that have one and no choice (PyTorch's).
  std::map<std::size_t, WorkspaceRange> same_workspaces = {};
  std::int64_t releases = 0;  ///< times that the cache was given back to the driver
  int steps = 0;              ///< that were run; 0: there was no allocator to simulate
  std::vector<int> engine;    ///< by NodeId: taken in the last step; 0 where there is no choice

  struct Failure {
    NodeId node;   ///< none: while parameters and buffers are loaded
    int step = 0;  ///< from 1
    OutOfMemory out_of_memory = {};
    std::optional<MissingLibrary> library = {};  ///< it, and not the allocator, found no room

    /// What was asked of the driver.
    [[nodiscard]] Bytes tried() const {
      return library ? library->library.bytes : out_of_memory.tried;
    }
  };
  std::optional<Failure> failure;  ///< none: the process ran

  [[nodiscard]] bool completed() const { return !failure; }
  /// The most in blocks handed out, at any time.
  [[nodiscard]] Bytes most_allocated() const {
    return std::max({loaded.allocated, first_step.allocated, steady.allocated});
  }
};

inline constexpr int most_replayed_steps = 8;

}  // namespace stowage
