#include "gpu_probe/cudnn/described_device.hpp"

namespace stowage {
namespace {

// cuDNN 9.28 refuses a text without the width of the memory's bus, which the cards' texts, of
// earlier versions, do not have. Its answers were the same for 64 to 8192 bits (resnet50 on an
// A100).
std::string with_bus_width(std::string device) {
  const std::size_t first = device.find('{');
  if (first != std::string::npos && device.find("\"memoryBusWidth\"") == std::string::npos) {
    device.insert(first + 1, "\"memoryBusWidth\": 256, ");
  }
  return device;
}

}  // namespace

CudnnDescriptor described_device(const CudnnLibrary& library, const std::string& text) {
  CudnnDescriptor device(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set_text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, with_bus_width(text));
  device.finalize("the card's device text");
  return device;
}

}  // namespace stowage
