// CudnnConvolutions: convolutions on a CUDA stream by cuDNN.
//
// A convolution runs on the engine that the plan names, with the knobs that it names, if this cuDNN
// is of the version that the plan was made with and has that engine for this card. Otherwise cuDNN
// is asked again, and the first of its engines is taken whose workspace is no larger than the
// plan's. The execution plan of an engine is built once and kept.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gpu_probe/cuda/convolution_call.hpp"
#include "gpu_probe/cuda/remarks.hpp"
#include "gpu_probe/cudnn/engine_plan.hpp"
#include "gpu_probe/cudnn/handle.hpp"

namespace stowage {

class CudnnConvolutions {
 public:
  /// The handle outlives this.
  explicit CudnnConvolutions(const CudnnHandle& cudnn) : cudnn_(cudnn) {}

  /// Queues the convolution, without its bias. Errors: cuDNN's own words; every engine needs a
  /// larger workspace than the call has.
  [[nodiscard]] Result<void> run(const CalledConvolution& called, const KernelCall& call,
                                 void* stream);

  /// Why other engines ran than the plan's.
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_.all(); }

 private:
  /// With the call's engine and the bytes of its workspace.
  using Question = std::tuple<ConvolutionQuery, std::string, std::int64_t>;

  // These throw LibraryFailure.
  [[nodiscard]] const CudnnPlan& chosen(const ConvolutionQuery& query, const KernelCall& call);
  [[nodiscard]] CudnnDescriptor plan_of(const ConvolutionQuery& query, const KernelCall& call,
                                        const CudnnDescriptor& graph);
  [[nodiscard]] CudnnDescriptor first_that_fits(const ConvolutionQuery& query,
                                                const CudnnDescriptor& graph, Bytes workspace);
  void execute(const CudnnPlan& chosen, const CalledConvolution& called, const KernelCall& call,
               void* stream);

  const CudnnHandle& cudnn_;
  std::map<Question, CudnnPlan> chosen_;
  Remarks remarks_;
};

}  // namespace stowage
