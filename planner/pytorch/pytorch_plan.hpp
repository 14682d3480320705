// PytorchPlan: what eager PyTorch does differently so that a step fits: the product of a plan for
// PyTorch, which `stowage.apply` carries out.
//
// Its names are those that a training script has: modules' paths and calls of autograd's hook for
// saved tensors. docs/apply.md has the file's format.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/data_type.hpp"
#include "estimator/base/shape.hpp"

namespace stowage {

/// A tensor that autograd saves, by the key of its call.
struct SavedName {
  std::string key;
  DataType type = DataType::float32;
  Shape shape;
  bool operator==(const SavedName&) const = default;
};

/// A storage that lies in pinned host memory between forward and backward. The copy there begins at
/// the call `start`, of its own; the memory is let go at the call `release`, of any tensor ("":
/// when backward begins), and taken again where backward asks for the tensor `fetch` ("": for one
/// of its own).
struct OffloadedStorage {
  std::vector<SavedName> saved;  ///< all tensors that lie in it; never empty
  Affine bytes;
  std::string start, release, fetch;
  bool operator==(const OffloadedStorage&) const = default;
};

/// A module whose parameters lie in pinned host memory. Before it runs, they are copied to one
/// piece of memory, in this order, each from a multiple of 512 bytes on.
struct StreamedModule {
  std::string module;                   ///< its path
  std::vector<std::string> parameters;  ///< their whole names; never empty
  Bytes bytes;                          ///< of the piece
  int uploads = 1;                      ///< in a pass: 2 where backward needs them as well
  bool operator==(const StreamedModule&) const = default;
};

/// An inference whose batch runs in so many equal parts. The first axis of each input that follows
/// the batch is cut, and the outputs are put together along theirs.
struct InferenceChunks {
  std::int64_t parts = 2;
  std::vector<Shape> inputs;  ///< that kernels read, as the model is given them
  Shape output;
  bool operator==(const InferenceChunks&) const = default;
};

/// What the plan's step was made of, so that it can be made again.
struct PlannedQuestion {
  std::string model;  ///< a file or a name of the catalogue, as it was named
  /// Settings of the model, the step and the card, as they were typed: {"gpu", {"rtx3060"}}; "" of
  /// a flag.
  std::map<std::string, std::vector<std::string>> settings;
  bool operator==(const PlannedQuestion&) const = default;
};

/// What PYTORCH_ALLOC_CONF says where a plan wants expandable segments.
inline constexpr std::string_view expandable_conf = "expandable_segments:True";

struct PytorchTotals {
  Bytes peak_allocated;      ///< torch.cuda.max_memory_allocated()
  Bytes peak_reserved;       ///< torch.cuda.max_memory_reserved(), of the simulated allocator
  Bytes device_bytes;        ///< reserved, the context and the libraries
  Bytes to_host, from_host;  ///< copied in a step
  Bytes pinned;              ///< of the host's memory, at most at a time
  double step_seconds = 0;   ///< simulated, copies beside compute
  double all_gpu_step_seconds = 0;  ///< with memory for everything
  double recomputed_seconds = 0;    ///< of the step: forward kernels that run again
  /// No plan that offloads saved tensors of this step within the card, or where some of it streams
  /// parameters, moves fewer bytes, or has a shorter step. Of a step with checkpointed modules:
  /// with the same modules.
  Bytes pcie_lower_bound;
  std::optional<double> step_lower_bound_seconds;
  bool operator==(const PytorchTotals&) const = default;
};

struct PytorchPlan {
  std::string stowage_version;
  std::string model;
  bool trains = true;                ///< else an inference
  bool names_are_recorded = false;   ///< else of a description: no script is known to have them
  std::int64_t batch = 0;            ///< of one micro-batch; of an inference the whole batch
  std::int64_t micro_batches = 1;    ///< whose gradients the script's loop adds up
  std::string precision, optimizer;  ///< "amp-bf16", "momentum"
  std::string step_hash;
  std::string card;
  Bytes available;         ///< of the card
  std::string pytorch;     ///< the release that was simulated
  std::int64_t saved = 0;  ///< calls of the hook in a step, with all modules as they are
  std::vector<OffloadedStorage> offload;
  std::vector<std::string> checkpoint;  ///< regions: modules' paths, "features[0:5]"
  std::vector<StreamedModule> stream;   ///< in the order in which they run
  std::optional<InferenceChunks> chunks;
  bool optimizer_on_cpu = false;  ///< its state and the updates; gradients go there as they come
  std::vector<std::string> cpu_parameters = {};  ///< whose updates those are; empty: all
  bool early_updates = false;        ///< each parameter is updated as soon as its gradient is whole
  bool expandable_segments = false;  ///< of the process' allocator: expandable_conf
  std::optional<PlannedQuestion> question = {};  ///< none: the model cannot be named again
  PytorchTotals totals;

  /// What the saved tensors of all micro-batches are that leave the GPU in a step.
  [[nodiscard]] Bytes offloaded_bytes() const {
    Bytes bytes;
    for (const OffloadedStorage& storage : offload) bytes += Bytes(storage.bytes.at(batch));
    return bytes * micro_batches;
  }
  [[nodiscard]] bool changes_nothing() const {
    return offload.empty() && checkpoint.empty() && stream.empty() && !chunks &&
           micro_batches == 1 && !optimizer_on_cpu && !early_updates && !expandable_segments;
  }
  bool operator==(const PytorchPlan&) const = default;
};

/// The environment variable that the plan's PyTorch reads settings of its allocator from.
[[nodiscard]] std::string_view allocator_variable(const PytorchPlan& plan);

}  // namespace stowage
