#include "gpu_probe/cudnn/described_device.hpp"

namespace stowage {
namespace {

// Adds the width of the memory's bus, without which cuDNN 9.28 refuses a device text; the cards'
// texts, of earlier versions, lack it. cuDNN's answers were the same for widths of 64 to 8192 bits
// (resnet50 on an A100).
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
