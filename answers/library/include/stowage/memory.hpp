// What a process takes of a card, row by row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stowage {

/// What takes room at the peak beside tensors, or a class of tensors.
struct MemoryRow {
  std::string name;  ///< "activation", "CUDA context"
  std::int64_t bytes = 0;
  std::string source;  ///< where the figure is from; empty: counted
};

struct TensorRow {
  std::string name;   ///< "layer1.0.conv1"
  std::string layer;  ///< whose it is; empty: no layer's
  std::string kind;   ///< "activation", "parameter", "optimizer_state"
  std::int64_t bytes = 0;
};

/// A time of the process, and the most that it takes then.
struct PhaseRow {
  std::string name;  ///< "after loading", "first step", "steady steps"
  std::int64_t tensor_bytes = 0, device_bytes = 0;
};

/// The peak of a step on a card. The classes add up to tensor_bytes, and with the runtime's rows to
/// device_bytes.
struct MemoryPeak {
  std::string device;  ///< the card's name
  bool fits = false;
  std::int64_t device_bytes = 0;  ///< what the process takes of the card
  std::int64_t tensor_bytes = 0;
  std::int64_t total_bytes = 0;      ///< of the card, as CUDA shows it
  std::int64_t available_bytes = 0;  ///< total, less what is in use and what must stay free
  std::int64_t headroom_bytes = 0;   ///< available - device; negative: what is missing
  std::string at;                    ///< the kernel that runs at the peak
  std::string culprit;               ///< why it does not fit; empty: it does
  std::string workspaces;            ///< "cudnn", "rule", "none": where these are from
  std::vector<MemoryRow> classes;    ///< of tensors
  std::vector<MemoryRow> runtime;    ///< allocator, context, libraries
  std::vector<TensorRow> tensors;    ///< that are live, the largest first
  std::vector<PhaseRow> phases;
};

}  // namespace stowage
