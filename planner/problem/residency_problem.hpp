// ResidencyProblem: which operation runs where, and which storage stays on the GPU through which
// gap.
//
// The planner's own statement, free of models and kernels. Time is the schedule: operation i runs
// at step i. An item (a storage) is touched by operations; a gap lies between two consecutive
// touches. All costs are seconds, and the objective is their sum (without overlap:
// planner/plan/lanes.hpp simulates that afterwards).
//
// THE DEFINITION of cost and memory, which evaluate() computes naively and every solver must agree
// with. An item has touches c_0 < c_1 < ... in step order. At each touch `on_gpu` says whether a
// GPU copy exists during that step; in each gap `resident` says whether the copy stays.
//   - An operation on the GPU needs on_gpu at each of its touches. An operation on the CPU needs a
//     valid host copy for each read. A touch that the CPU writes is not on_gpu; at a touch that the
//     CPU only reads a GPU copy may stay.
//   - resident in a gap implies on_gpu at both its ends. on_gpu at a reading touch without
//     residency in the gap before it costs one h2d (a fetch) and needs a valid host copy. A
//     write-only touch fetches nothing; residency in the gap before it is allowed and saves
//     nothing.
//   - A version starts at each writing touch. A touch that reads and writes is the last reader of
//     one version and the producer of the next, and its memory counts once. Written on the GPU, a
//     version's host copy exists only after one d2h, paid once per version however many need it
//     (CPU readers, fetches). Written on the CPU, its host copy is valid at no cost and its GPU
//     copy exists after a fetch.
//   - `host_at_start`: the version that the item holds before its first write is valid on the host
//     at no cost (inputs; whatever is never written).
//   - `wraps`: the last touch's gap goes round the step's end to the first touch of the next step;
//     the version written last is the one read first, and costs its d2h like any other. An item
//     that wraps and is never written has host_at_start; one that wraps and is written has not.
//   - Memory at step t on the GPU: the bytes of every item that has on_gpu at a touch at t or is
//     resident in a gap strictly containing t, plus, if operation t runs on the GPU, its engine's
//     workspace and its temporaries. A wrapping gap strictly contains the steps after the last
//     touch and those before the first.
//   - A gap that is pinned `resident` is resident; a gap that is pinned `dropped` is not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/memory/sized_step.hpp"
#include "planner/problem/rates.hpp"

namespace stowage {

enum class Device : std::uint8_t { cpu, gpu };
enum class Pin : std::uint8_t { free, gpu, cpu };
enum class GapPin : std::uint8_t { free, resident, dropped };
struct StepPins;

struct EngineCost {
  double seconds = 0;
  Bytes workspace;
};

struct Operation {
  std::string name;
  std::vector<EngineCost> engines;  ///< on the GPU; never empty
  double cpu_seconds = 0;
  Bytes temporaries;  ///< on the GPU, beside the workspace
  Pin pin = Pin::free;
};

struct Touch {
  std::int32_t step = 0;
  bool reads = false;
  bool writes = false;
};

struct Item {
  std::string name;
  Bytes bytes;                 ///< of its place on the GPU
  std::vector<Touch> touches;  ///< ascending, one a step, never empty
  bool wraps = false;
  bool host_at_start = false;
  double h2d_seconds = 0;
  double d2h_seconds = 0;
  Bytes padding = {};  ///< the part of `bytes` that no copy moves: the end of the last granule
  /// By gap; empty: all free. A gap may be pinned resident only if it leads to a touch that reads
  /// and neither of its touches is written on the CPU.
  std::vector<GapPin> gap_pins = {};
};
[[nodiscard]] GapPin gap_pin(const Item& item, std::int32_t gap);

struct ResidencyProblem {
  std::vector<Operation> operations;  ///< operation i at step i
  std::vector<Item> items;
  std::vector<StorageId> storage_of;  ///< by item; empty in synthetic problems
};

/// Gap i of an item lies between touches i and i+1; for `wraps`, the last one goes round.
struct Placement {
  std::vector<Device> device;               ///< by operation
  std::vector<std::int32_t> engine;         ///< by operation; the GPU engine, 0 on the CPU
  std::vector<std::vector<bool>> on_gpu;    ///< by item, touch
  std::vector<std::vector<bool>> resident;  ///< by item, gap (touches - 1, + 1 if it wraps)
  bool operator==(const Placement&) const = default;
};

struct Evaluation {
  bool consistent = false;    ///< the implications of the definition and the pins hold
  std::string inconsistency;  ///< the first one that does not hold
  double cost_seconds = 0;
  double compute_seconds = 0;  ///< on both devices
  double cpu_seconds = 0;      ///< the part of them on the CPU
  double upload_seconds = 0;
  double download_seconds = 0;
  Bytes h2d_bytes, d2h_bytes;
  std::vector<Bytes> memory;  ///< by step
  Bytes peak;
  std::int32_t peak_step = 0;
};

/// The first mistake in a problem: no engine, a time that is negative or not finite, touches out of
/// order, a first touch that reads a value which neither side has, host_at_start against the rule
/// above. Empty: the problem is well formed.
[[nodiscard]] std::string ill_formed(const ResidencyProblem& problem);

/// Computes the definition naively. O(touches + steps). Precondition: the problem is well formed.
[[nodiscard]] Evaluation evaluate(const ResidencyProblem& problem, const Placement& placement);

/// The weight of a second on each lane. A lane does one thing after the other, beside the other
/// lanes.
struct LaneWeights {
  double gpu = 1;
  double cpu = 1;
  double upload = 1;
  double download = 1;
};
/// The problem with every time multiplied by the weight of its lane.
[[nodiscard]] ResidencyProblem weighted(ResidencyProblem problem, const LaneWeights& weights);

struct ProblemOptions {
  bool compute_on_gpu = true;      ///< pin forward and backward to the GPU; updates stay free
  bool all_on_gpu = false;         ///< pin updates too (the min-pcie proposal)
  bool updates_on_gpu = false;     ///< pin updates, but not the rest
  const StepPins* pins = nullptr;  ///< the user's pins, which override all of these; null: none
  const std::vector<Device>* devices = nullptr;  ///< by operation: pinned there; null: no pins
  // What stays on the GPU in every gap between two operations that are pinned to the GPU.
  bool keep_activations = false;  ///< what forward and backward make, and inputs
  bool keep_unsaved = false;      ///< of these, all but what autograd alone keeps for backward
  bool keep_weights = false;      ///< parameters, their copies and buffers
  bool keep_state = false;        ///< optimizer state and gradients
};
/// The problem of a step (the `stowage` or `pytorch` lowering). Storages that no node touches are
/// left out; temporaries and workspaces belong to their operation. Every size is that of a place in
/// an arena, rounded up to whole granules: no packing needs less.
[[nodiscard]] ResidencyProblem make_problem(const SizedStep& step, const Rates& rates,
                                            const ProblemOptions& options);

/// The least memory that any placement with these pins needs: the largest need of any step. A step
/// needs its operation's own items, least workspace and temporaries, and whatever is pinned to stay
/// through it.
struct Floor {
  Bytes bytes;
  std::int32_t step = 0;
};
[[nodiscard]] Floor memory_floor(const ResidencyProblem& problem);
/// That need by step. A step whose operation may run on the CPU needs only what is pinned to stay.
[[nodiscard]] std::vector<Bytes> memory_floors(const ResidencyProblem& problem);

}  // namespace stowage
