// Attention on a stream, by cuDNN: what of it cuDNN has, which is float16 and bfloat16 without
// dropout (its masks are others than ours) and without the gradient of a bias.
//
// The engine is the one that the plan names where this is the cuDNN that the plan asked, else the
// first that cuDNN names. Beside the engine's own scratch the backward pass has two float32 tensors
// in the call's workspace (frontend_workspace). Where the workspace is too small, or cuDNN has no
// engine, the call is left to our own kernel, whose results have the same meaning.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/cudnn/library.hpp"
#include "gpu_probe/driver/cuda_functions.hpp"
#include "gpu_probe/kernels/rows/attention_call.hpp"

namespace stowage {

class CudnnAttention {
 public:
  /// In the current context. Both outlive this. Errors: cuDNN's own words.
  [[nodiscard]] static Result<std::unique_ptr<CudnnAttention>> open(const CudnnLibrary& library,
                                                                    const CudaDriver& driver);
  CudnnAttention(const CudnnLibrary& library, const CudaDriver& driver)
      : library_(library), driver_(driver) {}
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;
  ~CudnnAttention();

  /// Whether cuDNN could take the call, by its attributes and formats alone. KernelError where the
  /// call's shapes do not suit.
  [[nodiscard]] static bool suits(const KernelCall& call);

  /// Queues it; false: cuDNN does not take it, and a remark says why. Errors: cuDNN's own words, of
  /// an execution that fails. Precondition: suits(call).
  [[nodiscard]] Result<bool> run(const KernelCall& call, void* stream);

  /// Why calls were not taken; each once.
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  struct Chosen {
    CudnnDescriptor graph, plan;
  };
  using Question = std::tuple<AttentionQuery, std::string, std::int64_t>;

  /// Null: there is none; a remark says why.
  [[nodiscard]] const Chosen* chosen(const AttentionQuery& query, const KernelCall& call);
  // These throw LibraryFailure.
  [[nodiscard]] std::optional<Chosen> choice(const AttentionQuery& query, const KernelCall& call);
  [[nodiscard]] CudnnDescriptor plan_of(const AttentionQuery& query, const KernelCall& call,
                                        const CudnnDescriptor& graph);
  void execute(const Chosen& chosen, const AttentionQuery& query, const KernelCall& call,
               void* stream);
  void remark(std::string text);

  const CudnnLibrary& library_;
  const CudaDriver& driver_;
  void* handle_ = nullptr;
  std::map<Question, std::optional<Chosen>> chosen_;
  std::vector<std::string> remarks_;
};

/// The call as the question that plans ask about its node.
[[nodiscard]] AttentionQuery called_attention(const KernelCall& call);

}  // namespace stowage
