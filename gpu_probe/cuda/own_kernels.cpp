#include "gpu_probe/cuda/own_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gpu_probe/kernels/device_source.hpp"

namespace stowage {
namespace {

constexpr std::int64_t threads_a_block = 256;
// The most blocks along an axis that every device takes. A block goes on to further indices.
constexpr std::int64_t most_blocks = 65535;

}  // namespace

OwnKernels::OwnKernels(Nvrtc compiler, const OpenedDevice& device, std::string cache_folder)
    : compiler_(std::move(compiler)),
      driver_(device.driver),
      architecture_(architecture_text(device.compute_major, device.compute_minor)),
      cache_(std::move(cache_folder), compiler_.version(), architecture_) {}

OwnKernels::~OwnKernels() {
  for (void* const module : modules_) driver_->unload_module(module);
}

Result<void> OwnKernels::done(int error, const char* call) const {
  if (error == 0) return {};
  const char* text = nullptr;
  driver_->error_text(error, &text);
  return failure(
      fmt::format("{} fails with error {} ({})", call, error, text == nullptr ? "unknown" : text));
}

Result<void*> OwnKernels::load(const std::string& function) {
  auto kernel = cache_.find(function);
  if (!kernel) {
    auto compiled = compiler_.compile(std::span(&function, 1), architecture_);
    if (!compiled) return tl::unexpected(std::move(compiled.error()));
    kernel = std::move(*compiled);
    cache_.add(function, *kernel);
  }
  void* module = nullptr;
  if (auto ok = done(driver_->load_module(&module, kernel->cubin.data()), "cuModuleLoadData");
      !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  modules_.push_back(module);
  void* loaded = nullptr;
  if (auto ok = done(driver_->function_of(&loaded, module, kernel->names.front().c_str()),
                     "cuModuleGetFunction");
      !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  return loaded;
}

Result<void*> OwnKernels::function_of(const kernels::Launch& launch) {
  const std::pair key(launch.body, launch.threads > 0);
  const auto found = functions_.find(key);
  if (found != functions_.end()) return found->second;
  auto loaded = load(kernels::device_function(launch.body, launch.threads > 0));
  if (loaded) functions_.emplace(key, *loaded);
  return loaded;
}

Result<void> OwnKernels::launch(const kernels::Launch& launch, void* stream) {
  if (launch.count == 0) return {};
  const auto function = function_of(launch);
  if (!function) return tl::unexpected(function.error());
  const bool in_groups = launch.threads > 0;
  const std::int64_t blocks =
      in_groups ? launch.count : (launch.count + threads_a_block - 1) / threads_a_block;
  const auto grid = static_cast<unsigned>(std::min(blocks, most_blocks));
  const auto block = static_cast<unsigned>(in_groups ? launch.threads : threads_a_block);
  // The driver copies what these point to before it returns.
  std::vector<std::byte> values = launch.values;
  std::int64_t count = launch.count;
  void* arguments[] = {values.data(), &count};
  return done(driver_->launch(*function, grid, 1, 1, block, 1, 1, 0, stream, arguments, nullptr),
              "cuLaunchKernel");
}

}  // namespace stowage
