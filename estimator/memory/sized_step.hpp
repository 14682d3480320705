// SizedStep: a StepGraph at a batch size, in bytes, with the engines that its convolutions and
// cuDNN's attention may use.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"
#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

struct SizedStep {
  std::shared_ptr<const StepGraph> graph;
  std::int64_t batch = 0;            ///< of one micro-batch
  std::vector<Bytes> storage_bytes;  ///< by StorageId; what this GPU keeps (partition.hpp)
  /// By NodeId, in the order in which the runtime tries them; empty: the kernel wants no workspace.
  /// With settings.convolutions.benchmark: those that may win, the largest workspace first
  /// (benchmark_outcome with room for all), so that the first is the conservative end, and then
  /// the other plans.
  std::vector<Engines> engines;
  /// By NodeId; filled with settings.convolutions.benchmark alone: WorkspaceAnswer::benchmark, for
  /// benchmark_outcome with what is available.
  std::vector<Engines> benchmark;
  std::vector<double> flops;        ///< by NodeId; empty with SizedParts::memory
  std::vector<double> bytes_moved;  ///< the same; arguments read plus arguments written
  WorkspaceOrigin workspace_origin = WorkspaceOrigin::none;

  [[nodiscard]] Bytes bytes(StorageId id) const { return storage_bytes[id.index()]; }
  /// The workspace of the engine that the runtime takes first; 0 without engines.
  [[nodiscard]] Bytes first_workspace(NodeId id) const;
  /// The least workspace over the node's engines; 0 without engines.
  [[nodiscard]] Bytes least_workspace(NodeId id) const;
};

/// Of all storages of a class together, each rounded up to a multiple of `granularity`.
[[nodiscard]] Bytes class_bytes(const SizedStep& step, StorageClass storage_class,
                                Bytes granularity = Bytes(1));

/// What SizedStep::flops and bytes_moved say of a node; of the bytes without a storage that a fused
/// kernel does not make at this batch.
[[nodiscard]] double flops_of(const KernelNode& node, std::int64_t batch);
[[nodiscard]] double bytes_moved_by(const KernelNode& node, std::int64_t batch);

/// The question that a node with a convolution puts to a WorkspaceSource.
[[nodiscard]] ConvolutionQuery convolution_query(const StepGraph& graph, const KernelNode& node,
                                                 std::int64_t batch);

/// What the runtime may run that convolution with: a kernel of PyTorch's own (one engine without
/// workspace, origin none; `source` is not asked), or what `source` says.
[[nodiscard]] WorkspaceAnswer convolution_engines(const StepGraph& graph, const KernelNode& node,
                                                  const ConvolutionQuery& query,
                                                  WorkspaceSource& source);

/// The question of any node that puts one.
using WorkspaceQuery = std::variant<ConvolutionQuery, AttentionQuery>;

/// Whether a WorkspaceSource is asked about the node.
[[nodiscard]] bool wants_workspace(const KernelNode& node);

/// Precondition: wants_workspace(node).
[[nodiscard]] WorkspaceQuery workspace_query(const StepGraph& graph, const KernelNode& node,
                                             std::int64_t batch);
[[nodiscard]] WorkspaceAnswer workspace_engines(const StepGraph& graph, const KernelNode& node,
                                                const WorkspaceQuery& query,
                                                WorkspaceSource& source);

/// `memory`: without flops and bytes_moved, which no question about memory needs.
enum class SizedParts { all, memory };

/// Sizes every storage, without asking for workspaces (engines stay empty).
/// Errors as size_step's.
[[nodiscard]] Result<SizedStep> size_storages(std::shared_ptr<const StepGraph> graph,
                                              std::int64_t batch,
                                              SizedParts parts = SizedParts::all);

/// size_storages, and asks `source` once for each distinct convolution and call of attention.
/// Errors: batch < 1; a size below 0 (a dimension of `batch - 5`) or past largest_memory in all,
/// naming the layer ("batch 1000000000 makes layer ...").
[[nodiscard]] Result<SizedStep> size_step(std::shared_ptr<const StepGraph> graph,
                                          std::int64_t batch, WorkspaceSource& source,
                                          SizedParts parts = SizedParts::all);

}  // namespace stowage
