// EngineProof: checks cuDNN's answers for a described device. Each engine is made again from its
// name alone, for the same operation graph, and finalised; its workspace must be the one that the
// plan has.
//
// Nothing here needs a GPU, and nothing runs on one: handles, addresses of tensors (variant packs)
// and execution need a device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "estimator/card/card.hpp"
#include "gpu_probe/cudnn/library.hpp"
#include "gpu_probe/cudnn/session.hpp"

namespace stowage::test {

/// Counts of the questions of one kind ("fp32", "forward").
struct ProofCounts {
  std::int64_t questions = 0;
  std::int64_t engines = 0;     ///< that plans may name
  std::int64_t made_again = 0;  ///< of those: made by name, with the stated workspace
  std::int64_t unanswered = 0;  ///< questions without an engine: their plans say "rule"
};

/// An engine that was not made again, or a question that has none.
struct ProofRefusal {
  std::string question;  ///< "bf16 forward x [8, 3, 64, 64] ..."
  std::string why;       ///< cuDNN's words, or ours
};

class EngineProof {
 public:
  /// Throws std::runtime_error where cuDNN is missing or refuses the device.
  explicit EngineProof(const Card& card);
  EngineProof(const EngineProof&) = delete;
  EngineProof& operator=(const EngineProof&) = delete;
  ~EngineProof();

  void ask(const ConvolutionQuery& query);
  /// An engine of attention is compiled when its plan is finalised, which takes a driver. So for
  /// attention only the configuration is finalised, which states its workspace.
  void ask(const AttentionQuery& query);

  using Kind = std::pair<std::string, std::string>;  ///< format, direction
  [[nodiscard]] const std::map<Kind, ProofCounts>& counts() const { return counts_; }
  [[nodiscard]] const std::vector<ProofRefusal>& refusals() const { return refusals_; }

 private:
  template <typename Query, typename MakeAgain>
  void prove(const Query& query, const Result<WorkspaceAnswer>& answer, MakeAgain make_again);

  const CudnnLibrary& library_;
  std::unique_ptr<CudnnSession> session_;
  CudnnDescriptor device_;
  std::map<Kind, ProofCounts> counts_;
  std::vector<ProofRefusal> refusals_;
};

}  // namespace stowage::test
