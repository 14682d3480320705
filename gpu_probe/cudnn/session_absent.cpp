// CudnnSession where the build found no cuDNN headers.
#include "gpu_probe/cudnn/device_text.hpp"
#include "gpu_probe/cudnn/session.hpp"

namespace stowage {

Result<std::unique_ptr<CudnnSession>> open_cudnn_session(const std::string&) {
  return failure("this program was built without cuDNN");
}

std::string cudnn_asker() { return ""; }

Result<std::string> cudnn_device_text(int) {
  return failure("this program was built without cuDNN");
}

Result<std::string> cudnn_version() { return failure("this program was built without cuDNN"); }

}  // namespace stowage
