#include "gpu_probe/cuda/cudnn_attention.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "estimator/workspace/attention_workspace.hpp"
#include "gpu_probe/cudnn/attention_graph.hpp"
#include "gpu_probe/cudnn/engine_name.hpp"
#include "gpu_probe/cudnn/engine_plan.hpp"
#include "gpu_probe/cudnn/heuristics.hpp"
#include "gpu_probe/kernels/rows/strides.hpp"

namespace stowage {
namespace {

using kernels::AttentionCall;
using kernels::Sizes;
using Part = AttentionTensor;

AttentionQuery::Operand operand_of(const TensorArgument& tensor) {
  return {tensor.shape, kernels::row_major_strides(tensor.shape)};
}

/// The addresses of a graph's tensors.
class TensorAddresses {
 public:
  void add(Part part, void* data) {
    ids_.push_back(static_cast<std::int64_t>(part));
    data_.push_back(data);
  }
  void add(Part part, const TensorArgument& tensor) { add(part, tensor.data); }

  [[nodiscard]] CudnnDescriptor descriptor(const CudnnLibrary& library, void* workspace) const {
    return variant_pack(library, ids_, data_, workspace);
  }

 private:
  std::vector<std::int64_t> ids_;
  std::vector<void*> data_;
};

/// The size of the float32 sum of the query's gradient.
Bytes bytes_of_query_sum(const AttentionQuery& query) {
  return bytes_of(query.query.shape, DataType::float32);
}

/// The part of the workspace before the engine's own scratch, which is aligned as tensors are.
Bytes bytes_before_engine(const AttentionQuery& query) {
  constexpr Bytes alignment(16);
  return round_up(frontend_workspace(query), alignment);
}

}  // namespace

AttentionQuery called_attention(const KernelCall& call) {
  const AttentionCall a = kernels::attention_call(call);
  const bool forward = a.gradient == nullptr;
  AttentionQuery query{.direction = forward ? AttentionQuery::Direction::forward
                                            : AttentionQuery::Direction::backward,
                       .type = a.query->type,
                       .query = operand_of(*a.query),
                       .key = operand_of(*a.key),
                       .value = operand_of(*a.value),
                       .output = operand_of(*a.output),
                       .gradient = {},
                       .bias = {},
                       .causal = kernels::boolean(call, "causal", false),
                       .statistics = a.logsumexp != nullptr,
                       .dropout = kernels::real(call, "dropout", 0)};
  if (!forward) query.gradient = operand_of(*a.gradient);
  if (a.bias != nullptr) {
    const Sizes& q = query.query.shape;
    const Sizes scores{q[0], q[1], q[2], query.key.shape[2]};
    query.bias = {scores, kernels::broadcast_strides(a.bias->shape, scores)};
  }
  return query;
}

bool CudnnAttention::suits(const KernelCall& call) {
  const AttentionCall a = kernels::attention_call(call);
  return kernels::text(call, "implementation", "") == "cudnn" && element_size(a.query->type) == 2 &&
         kernels::real(call, "dropout", 0) == 0 &&
         (a.gradient == nullptr || call.writes.size() == 3) &&
         (a.logsumexp == nullptr || a.logsumexp->type == DataType::float32);
}

CudnnDescriptor CudnnAttention::plan_of(const AttentionQuery& query, const KernelCall& call,
                                        const CudnnDescriptor& graph) {
  const CudnnLibrary& library = cudnn_.library();
  const auto name = parse_engine_name(call.engine);
  if (name && name->version == library.version()) {
    try {
      return engine_plan(library, cudnn_.target(), graph, *name);
    } catch (const LibraryFailure& refusal) {
      remarks_.add(fmt::format("the engine '{}' is not to be had here ({}): cuDNN was asked again",
                               call.engine, refusal.what()));
    }
  }
  for (const CudnnDescriptor& configuration :
       engine_configurations(library, cudnn_.target(), graph, CUDNN_HEUR_MODE_A)) {
    CudnnDescriptor plan = unfinished_plan(library, cudnn_.target(), configuration);
    if (plan.try_finalize()) return plan;
  }
  throw LibraryFailure(fmt::format("cuDNN {} has no engine here for attention of {}",
                                   library.version(), kernels::shape_text(query.query.shape)));
}

std::optional<CudnnPlan> CudnnAttention::choice(const AttentionQuery& query,
                                                const KernelCall& call) {
  CudnnDescriptor graph = attention_graph(cudnn_.library(), query, cudnn_.target());
  CudnnDescriptor plan = plan_of(query, call, graph);
  const Bytes wanted = Bytes(workspace_of(plan)) + bytes_before_engine(query);
  if (wanted > call.workspace_bytes) {
    remarks_.add(fmt::format("cuDNN's attention takes {} here and the plan has {}: our own runs",
                             format_bytes(wanted), format_bytes(call.workspace_bytes)));
    return std::nullopt;
  }
  return CudnnPlan{std::move(graph), std::move(plan)};
}

const CudnnPlan* CudnnAttention::chosen(const AttentionQuery& query, const KernelCall& call) {
  Question question{query, call.engine, call.workspace_bytes.count()};
  auto found = chosen_.find(question);
  if (found == chosen_.end()) {
    found = chosen_.emplace(std::move(question), std::nullopt).first;
    try {
      if (auto made = choice(query, call)) found->second.emplace(std::move(*made));
    } catch (const LibraryFailure& refusal) {
      remarks_.add(fmt::format("{}: our own runs", refusal.what()));
    }
  }
  return found->second ? &*found->second : nullptr;
}

// Lists the graph's tensors by their ids. The backward pass has two float32 tensors at the
// beginning of the workspace: the query's gradient as it is summed up, which is filled with zeros
// first, and a number a row. The engine's own scratch is behind them.
void CudnnAttention::execute(const CudnnPlan& chosen, const AttentionQuery& query,
                             const KernelCall& call, void* stream) {
  const AttentionCall a = kernels::attention_call(call);
  // cuDNN reads these numbers when it queues the execution.
  auto scale = static_cast<float>(kernels::attention_scale(call));
  float hidden = std::numeric_limits<float>::lowest(), row_factor = 1;
  std::byte* workspace = call.workspace;
  TensorAddresses pack;
  pack.add(Part::query, *a.query);
  pack.add(Part::key, *a.key);
  pack.add(Part::value, *a.value);
  pack.add(Part::output, *a.output);
  pack.add(Part::scale, &scale);
  if (a.bias != nullptr) pack.add(Part::bias, *a.bias);
  if (query.causal) pack.add(Part::hidden, &hidden);
  if (query.statistics) pack.add(Part::statistics, *a.logsumexp);
  if (a.gradient != nullptr) {
    const Bytes sum = bytes_of_query_sum(query);
    pack.add(Part::gradient, *a.gradient);
    pack.add(Part::query_gradient, call.writes[0]);
    pack.add(Part::key_gradient, call.writes[1]);
    pack.add(Part::value_gradient, call.writes[2]);
    pack.add(Part::row_factor, &row_factor);
    pack.add(Part::query_sum, workspace);
    pack.add(Part::row_sum, workspace + sum.count());
    const auto address = static_cast<DevicePointer>(reinterpret_cast<std::uintptr_t>(workspace));
    const int error =
        driver_->queue_fill(address, 0, static_cast<std::size_t>(sum.count()), stream);
    if (error != 0) throw LibraryFailure(fmt::format("cuMemsetD8Async fails with error {}", error));
    workspace += bytes_before_engine(query).count();
  }
  cudnn_.execute(chosen.plan, pack.descriptor(cudnn_.library(), workspace), stream);
}

Result<bool> CudnnAttention::run(const KernelCall& call, void* stream) {
  const AttentionQuery query = called_attention(call);
  const CudnnPlan* const taken = chosen(query, call);
  if (taken == nullptr) return false;
  try {
    execute(*taken, query, call, stream);
    return true;
  } catch (const LibraryFailure& error) {
    return failure(error.what());
  }
}

}  // namespace stowage
