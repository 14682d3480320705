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
  /// The engine configurations that PyTorch's filters leave and that can be built, in the order in
  /// which PyTorch tries them, the first of each workspace size: the INSTANT list, then, unless
  /// that has an engine without workspace, the FALLBACK list. With settings.benchmark all of both
  /// lists are built. No engines: there are none. Errors: cuDNN's own words.
  [[nodiscard]] virtual Result<WorkspaceAnswer> engines(const ConvolutionQuery& query) = 0;
  /// The first engine of heuristics A, which is what PyTorch asks through cudnn-frontend, with the
  /// workspace that cuDNN states for it, without what the frontend adds. It is not built: these
  /// engines are compiled at run time, and loading them takes a driver. Errors: cuDNN's own words;
  /// it has no engine; it is older than 9.16, for which the frontend describes attention otherwise.
  [[nodiscard]] virtual Result<WorkspaceAnswer> attention_engines(const AttentionQuery& query) = 0;
};

/// Loads cuDNN and tells it of the device (Card::cudnn_device_json). Errors: not built with cuDNN,
/// not installed, too old, a device text that it refuses.
[[nodiscard]] Result<std::unique_ptr<CudnnSession>> open_cudnn_session(const std::string& device);

/// A hash of the sources that ask cuDNN and choose among its answers, so that no answer outlives
/// them; "" where the program was built without cuDNN.
[[nodiscard]] std::string cudnn_asker();

/// The version of the cuDNN that is installed, "9.19.0"; errors as above. Loads it.
[[nodiscard]] Result<std::string> cudnn_version();

}  // namespace stowage
