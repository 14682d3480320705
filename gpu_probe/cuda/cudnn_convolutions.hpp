// Convolutions on a stream, by cuDNN.
//
// The engine is the one that the plan names, with its knobs, where this is the cuDNN that the plan
// asked and it has the engine for this card; else cuDNN is asked again, and the first of its
// engines is taken whose workspace fits into the plan's. Plans of engines are made once each.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gpu_probe/cuda/convolution_call.hpp"
#include "gpu_probe/cudnn/library.hpp"

namespace stowage {

class CudnnConvolutions {
 public:
  /// In the current context. The library outlives this. Errors: cuDNN's own words.
  [[nodiscard]] static Result<std::unique_ptr<CudnnConvolutions>> open(const CudnnLibrary& library);
  explicit CudnnConvolutions(const CudnnLibrary& library) : library_(library) {}
  CudnnConvolutions(const CudnnConvolutions&) = delete;
  CudnnConvolutions& operator=(const CudnnConvolutions&) = delete;
  ~CudnnConvolutions();

  /// Queues it, without the bias. Errors: cuDNN's own words; none of its engines is content with
  /// the call's workspace.
  [[nodiscard]] Result<void> run(const CalledConvolution& called, const KernelCall& call,
                                 void* stream);

  /// Where the plan's engine was not taken, and why; each once.
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  struct Chosen {
    CudnnDescriptor graph, plan;
  };
  using Question = std::tuple<ConvolutionQuery, std::string, std::int64_t>;

  // These throw LibraryFailure.
  [[nodiscard]] const Chosen& chosen(const ConvolutionQuery& query, const KernelCall& call);
  [[nodiscard]] CudnnDescriptor plan_of(const ConvolutionQuery& query, const KernelCall& call,
                                        const CudnnDescriptor& graph);
  [[nodiscard]] CudnnDescriptor first_that_fits(const ConvolutionQuery& query,
                                                const CudnnDescriptor& graph, Bytes workspace);
  void execute(const Chosen& chosen, const CalledConvolution& called, const KernelCall& call,
               void* stream);
  void remark(std::string text);

  const CudnnLibrary& library_;
  void* handle_ = nullptr;
  std::map<Question, Chosen> chosen_;
  std::vector<std::string> remarks_;
};

}  // namespace stowage
