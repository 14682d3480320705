// CudnnSession: asks cuDNN's heuristics on behalf of a GPU that is only described.
//
// NVIDIA documents this as deviceless ahead-of-time compilation: no GPU, no driver and no handle
// are needed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// Not thread-safe.
class CudnnSession {
 public:
  virtual ~CudnnSession() = default;
  /// The engines that PyTorch's filters allow and whose plans can be built, in the order in which
  /// PyTorch tries them; of each workspace size the first only. They come from the INSTANT list
  /// and, unless that has an engine without workspace, from the FALLBACK list. With
  /// settings.benchmark all engines of both lists are built. The list may be empty. Errors: cuDNN's
  /// own words.
  [[nodiscard]] virtual Result<WorkspaceAnswer> engines(const ConvolutionQuery& query) = 0;
  /// The first engine of heuristics A, which PyTorch asks through cudnn-frontend, with the
  /// workspace that cuDNN states for it. The workspace that the frontend adds is not in it. The
  /// plan is not built: such engines are compiled at run time, and loading them takes a driver.
  /// Errors: cuDNN's own words; it has no engine; it is older than 9.16, for which the frontend
  /// describes attention in another way.
  [[nodiscard]] virtual Result<WorkspaceAnswer> attention_engines(const AttentionQuery& query) = 0;
};

/// Loads cuDNN and tells it of the device (Card::cudnn_device_json). Errors: cuDNN is not installed
/// or too old, or refuses the text.
[[nodiscard]] Result<std::unique_ptr<CudnnSession>> open_cudnn_session(const std::string& device);

/// A hash of the sources that ask cuDNN and choose among its answers: kept answers are used only
/// with the hash that they were made with.
[[nodiscard]] std::string cudnn_sources_hash();

/// The version of the installed cuDNN, "9.19.0". Loads it. Errors: not installed, too old.
[[nodiscard]] Result<std::string> cudnn_version();

}  // namespace stowage
