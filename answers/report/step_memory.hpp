// MemoryOverStep: what is on the GPU while each kernel of a step runs, by class and by tensor, and
// what the runtime's allocator holds of the card then.
//
//   SizedStep, Card, CheckSettings, RuntimeRun -> MemoryOverStep    of a step that a runtime runs
//   Plan                                       -> MemoryOverStep    of one side of a plan's arenas
//
// Sizes are those that the runtime takes, as in a check's footprint: at `peak` the sums are the
// footprint's. A step is the steady one, in which the optimizer's state is there. All ranges of
// nodes are half-open.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/step_range.hpp"
#include "estimator/card/card.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "estimator/runtime/runtime_run.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// Something that takes memory during a range of nodes: a storage, a kernel's workspace, or a
/// buffer of the runtime. One that is there twice (the last step's copy, while the new one is made)
/// is two.
struct LiveTensor {
  MemoryEntry entry;
  StepRange nodes;
  Bytes bytes;  ///< as the runtime rounds it
};

struct MemoryOverStep {
  std::shared_ptr<const StepGraph> graph;  ///< its nodes are the step's, in their order
  std::vector<RuntimeBuffer> buffers;
  std::vector<LiveTensor> tensors;  ///< by first node, then in the order of the storages
  /// By class and node.
  std::array<std::vector<Bytes>, storage_class_count> by_class;
  std::vector<Bytes> live;  ///< by node: the sum of the classes
  /// By node: the most that the allocator holds of the card while it runs. Of a runtime without an
  /// allocator, and of a plan: what is set aside for the step.
  std::vector<Bytes> reserved;
  std::int32_t peak = 0;  ///< the first node at which `live` is largest

  [[nodiscard]] std::int32_t nodes() const { return static_cast<std::int32_t>(live.size()); }
  /// 0 of a step without nodes.
  [[nodiscard]] Bytes peak_bytes() const;
};

/// `run`: of the same step on the same card with the same settings (CheckReport::run). Of several
/// replicas, one of them.
[[nodiscard]] MemoryOverStep memory_over_step(const SizedStep& step, const Card& card,
                                              const CheckSettings& settings, const RuntimeRun& run);

/// What a plan keeps in one of its memories: the GPU's arena, or one of the host's.
[[nodiscard]] MemoryOverStep memory_over_step(const Plan& plan, MemoryKind memory);

/// "conv1.weight", "conv1.forward workspace", "cuBLAS workspace"
[[nodiscard]] std::string name_of(const MemoryOverStep& memory, const LiveTensor& tensor);
/// The path of the layer that it belongs to; "": the model's or the runtime's.
[[nodiscard]] std::string_view layer_of(const MemoryOverStep& memory, const LiveTensor& tensor);
/// Where the layer stands in its source, "resnet18.yaml:12:9"; "": not known.
[[nodiscard]] std::string_view place_of(const MemoryOverStep& memory, const LiveTensor& tensor);

}  // namespace stowage
