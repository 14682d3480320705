// CudnnAttention: attention on a CUDA stream by cuDNN, for the calls that cuDNN can take: float16
// and bfloat16, without dropout (cuDNN draws other masks than we do) and without the gradient of a
// bias.
//
// A call runs on the engine that the plan names, if this cuDNN is of the version that the plan was
// made with; otherwise on the first engine that cuDNN names. The backward pass keeps two float32
// tensors in the call's workspace beside the engine's own scratch (frontend_workspace). Where the
// workspace is too small, or cuDNN has no engine, our own kernel runs the call, whose results have
// the same meaning.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/cuda/remarks.hpp"
#include "gpu_probe/cudnn/engine_plan.hpp"
#include "gpu_probe/cudnn/handle.hpp"
#include "gpu_probe/driver/cuda_functions.hpp"
#include "gpu_probe/kernels/rows/attention_call.hpp"

namespace stowage {

class CudnnAttention {
 public:
  /// Both outlive this.
  CudnnAttention(const CudnnHandle& cudnn, const CudaDriver& driver)
      : cudnn_(cudnn), driver_(driver) {}

  /// Whether cuDNN could take the call, judged by its attributes and formats alone. Throws
  /// KernelError where the call's shapes do not fit each other.
  [[nodiscard]] static bool suits(const KernelCall& call);

  /// Queues the call and returns true; or returns false where cuDNN does not take it, and adds a
  /// remark. Errors: cuDNN's own words about an execution that fails. Precondition: suits(call).
  [[nodiscard]] Result<bool> run(const KernelCall& call, void* stream);

  /// Why calls were not taken, or ran on other engines than the plan's.
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_.all(); }

 private:
  /// With the call's engine and the bytes of its workspace.
  using Question = std::tuple<AttentionQuery, std::string, std::int64_t>;

  /// Null where cuDNN does not take the call; a remark says why.
  [[nodiscard]] const CudnnPlan* chosen(const AttentionQuery& query, const KernelCall& call);
  // These throw LibraryFailure.
  [[nodiscard]] std::optional<CudnnPlan> choice(const AttentionQuery& query,
                                                const KernelCall& call);
  [[nodiscard]] CudnnDescriptor plan_of(const AttentionQuery& query, const KernelCall& call,
                                        const CudnnDescriptor& graph);
  void execute(const CudnnPlan& chosen, const AttentionQuery& query, const KernelCall& call,
               void* stream);

  const CudnnHandle& cudnn_;
  const CudaDriver& driver_;
  std::map<Question, std::optional<CudnnPlan>> chosen_;  // none: cuDNN does not take the call
  Remarks remarks_;
};

/// The query that a plan asks about the call's node.
[[nodiscard]] AttentionQuery called_attention(const KernelCall& call);

}  // namespace stowage
