// ResidencyProblem: which operation runs where, and which storage stays where through which gap.
//
// The planner's own statement, free of models and kernels. Time is the schedule: operation i runs
// at step i. An item (a storage) is touched by operations; a gap lies between two consecutive
// touches. All costs are seconds; the objective adds them up (no overlap: planner/plan/lanes.hpp
// simulates that afterwards).
//
// THE DEFINITION of cost and memory, which evaluate() computes naively and every solver must agree
// with. Per item, touches c_0 < c_1 < ... in step order. At each touch `on_gpu` says whether a GPU
// copy exists during that step; in each gap `resident` says whether it stays.
//   - An operation on the GPU needs on_gpu at each of its touches. An operation on the CPU needs a
//     valid host copy for each read; a touch that it writes is not on_gpu (of a reading touch of
//     the CPU a GPU copy may stay beside).
//   - resident in a gap implies on_gpu at both its ends. on_gpu at a reading touch without
//   residency
//     in the gap before costs one h2d (a fetch), and needs a valid host copy. A write-only touch
//     fetches nothing; residency in the gap before it is allowed and saves nothing.
//   - A version starts at each writing touch; a touch that reads and writes is the last reader of
//     the version before and the producer of the next, and its memory counts once. Written on the
//     GPU, a version's host copy exists only after one d2h, paid once per version however many need
//     it (CPU readers, fetches). Written on the CPU, its host copy is valid at no cost and its GPU
//     copy exists after a fetch.
//   - `host_at_start`: the version that the item holds before its first write is valid on the host
//     without cost (inputs; whatever is never written).
//   - `wraps`: the last touch's gap goes round the step's end to the first touch of the next step;
//     the version written last is the one read first, and costs its d2h like any other. An item
//     that wraps and is never written has host_at_start; one that wraps and is written has not.
//   - Memory at step t on the GPU: the bytes of every item that has on_gpu at a touch at t or is
//     resident in a gap strictly containing t, plus, if operation t runs on the GPU, its engine's
//     workspace and its temporaries. A wrapping gap strictly contains the steps after the last
//     touch and those before the first.
//   - A gap that is pinned `resident` is resident, one that is pinned `dropped` is not.
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
  Bytes padding = {};  ///< of `bytes` what no copy moves: the end of the last granule
  std::vector<GapPin> gap_pins = {};  ///< by gap; empty: all free. Only gaps to a touch that reads
                                      ///< and between touches that no operation on the CPU writes
                                      ///< may be pinned resident
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
  bool consistent = false;    ///< the definition's implications and the pins hold
  std::string inconsistency;  ///< the first that does not
  double cost_seconds = 0;
  double compute_seconds = 0;  ///< on both devices
  double cpu_seconds = 0;      ///< of these, on the CPU
  double upload_seconds = 0;
  double download_seconds = 0;
  Bytes h2d_bytes, d2h_bytes;
  std::vector<Bytes> memory;  ///< by step
  Bytes peak;
  std::int32_t peak_step = 0;
};

/// What is wrong with a problem as such, the first of it: no engine, a time that is negative or not
/// finite, touches out of order, a first touch that reads what no side has, host_at_start against
/// the rule above. Empty: nothing.
[[nodiscard]] std::string ill_formed(const ResidencyProblem& problem);

/// The definition, naively. O(touches + steps). Precondition: the problem is well formed.
[[nodiscard]] Evaluation evaluate(const ResidencyProblem& problem, const Placement& placement);

/// What a second of each lane counts: each does one thing after the other, beside the others.
struct LaneWeights {
  double gpu = 1;
  double cpu = 1;
  double upload = 1;
  double download = 1;
};
/// The same problem, where every time counts as much as its lane does.
[[nodiscard]] ResidencyProblem weighted(ResidencyProblem problem, const LaneWeights& weights);

struct ProblemOptions {
  bool compute_on_gpu = true;      ///< pin forward and backward to the GPU; updates stay free
  bool all_on_gpu = false;         ///< pin updates too (the min-pcie proposal)
  bool updates_on_gpu = false;     ///< pin updates alone
  const StepPins* pins = nullptr;  ///< the user's, which go before all of these; null: none
  const std::vector<Device>* devices = nullptr;  ///< by operation, pinned there; null: none is
  // What stays on the GPU in every gap between two operations that are pinned there.
  bool keep_activations = false;  ///< what forward and backward make, and inputs
  bool keep_weights = false;      ///< parameters, their copies and buffers
  bool keep_state = false;        ///< optimizer state and gradients
};
/// The problem of a step (the `stowage` or `pytorch` lowering). Storages that no node touches are
/// left out; temporaries and workspaces go to their operation. All have the bytes of their places
/// in an arena, each rounded up to its granules: less than these no packing takes.
[[nodiscard]] ResidencyProblem make_problem(const SizedStep& step, const Rates& rates,
                                            const ProblemOptions& options);

/// The least memory any placement with these pins needs: the largest over steps of the operation's
/// own items, least workspace and temporaries, and of what is pinned to stay.
struct Floor {
  Bytes bytes;
  std::int32_t step = 0;
};
[[nodiscard]] Floor memory_floor(const ResidencyProblem& problem);
/// The same at each step: only what is pinned to stay where the operation may run on the CPU.
[[nodiscard]] std::vector<Bytes> memory_floors(const ResidencyProblem& problem);

}  // namespace stowage
