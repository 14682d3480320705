#include "gpu_probe/cudnn/device_text.hpp"

#include "gpu_probe/cudnn/library.hpp"

namespace stowage {

namespace {

constexpr std::int64_t longest_text = 1 << 16;

std::string text_of(const CudnnLibrary& library, const CudnnDescriptor& device) {
  std::string text(longest_text, '\0');
  std::int64_t length = 0;
  library.check(library.get_attribute(device.get(), CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                      CUDNN_TYPE_CHAR, longest_text, &length, text.data()),
                "reading the device's text");
  text.resize(static_cast<std::size_t>(length));
  return text.substr(0, text.find('\0'));
}

}  // namespace

Result<std::string> cudnn_device_text(int ordinal) {
  const auto library = cudnn_library();
  if (!library) return tl::unexpected(library.error());
  try {
    CudnnDescriptor device(**library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    device.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32,
               static_cast<std::int32_t>(ordinal));
    device.finalize("the device's properties");
    return text_of(**library, device);
  } catch (const LibraryFailure& error) {
    return failure(error.what());
  }
}

}  // namespace stowage
