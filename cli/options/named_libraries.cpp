#include "cli/options/named_libraries.hpp"

#include <fmt/format.h>

#include "gpu_probe/driver/library_places.hpp"

namespace stowage {

Result<void> use_named_libraries(const Arguments& arguments) {
  if (const auto folder = arguments.text("cudnn")) {
    if (!has_cudnn(*folder)) {
      return failure(command_line_error(
          fmt::format("--cudnn: there is no {} in '{}'", cudnn_file, *folder),
          "cuDNN's root, its lib/ or the Python environment that it is installed in"));
    }
    use_cudnn_in(*folder);
  }
  if (const auto folder = arguments.text("cuda-libraries")) {
    if (!has_nvidia_libraries(*folder)) {
      return failure(command_line_error(
          fmt::format("--cuda-libraries: neither cuDNN nor cuBLAS nor NVRTC is in '{}'", *folder),
          "a toolkit's root, its lib64/ or a Python environment with PyTorch"));
    }
    use_nvidia_libraries_in(*folder);
  }
  return {};
}

}  // namespace stowage
