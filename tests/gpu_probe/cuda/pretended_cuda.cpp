#include "tests/gpu_probe/cuda/pretended_cuda.hpp"

#include <map>
#include <stdexcept>
#include <string>

#include "gpu_probe/driver/shared_library.hpp"
#include "gpu_probe/kernels/device_source.hpp"

namespace stowage::test {
namespace {

template <class Entry>
auto& pretended(const char* file, const char* name) {
  static const Entry entry = [&] {
    Entry found = nullptr;
    if (!SharedLibrary(file).bind(name, found)) throw std::runtime_error(file);
    return found;
  }();
  return *entry();
}

constexpr int no_such_function = 500;

/// Runs the body that the function's name names, over as many indices as the launch says.
int run_body(const char* function, unsigned grid, unsigned block, void** arguments) {
  static const auto by_function = [] {
    std::map<std::string, kernels::LaunchableBody> bodies;
    for (const kernels::LaunchableBody& body : kernels::launchable_bodies()) {
      bodies.emplace(kernels::device_function(body.name, body.in_groups), body);
    }
    return bodies;
  }();
  const auto found = by_function.find(function);
  if (found == by_function.end() || grid == 0 || block == 0 || block > 1024) {
    return no_such_function;
  }
  if (found->second.in_groups && block % 32 != 0) return no_such_function;
  const auto count = *static_cast<const std::int64_t*>(arguments[1]);
  found->second.run(static_cast<const std::byte*>(arguments[0]), 0, count);
  return 0;
}

}  // namespace

FakeLanes& pretended_driver() { return pretended<FakeLanesEntry>(STOWAGE_FAKE_LANES, "fakeLanes"); }
FakeBlas& pretended_cublas() { return pretended<FakeBlasEntry>(STOWAGE_FAKE_BLAS, "fakeBlas"); }
FakeCudnn& pretended_cudnn() { return pretended<FakeCudnnEntry>(STOWAGE_FAKE_CUDNN, "fakeCudnn"); }

CudaSetup pretended_setup() {
  pretended_driver() = {};
  pretended_driver().run = run_body;
  pretended_cublas() = {};
  pretended_cudnn() = {};
  static const auto library = bind_cudnn(SharedLibrary(STOWAGE_FAKE_CUDNN));
  if (!library) throw std::runtime_error(library.error().front().message);
  return {.driver = STOWAGE_FAKE_LANES,
          .libraries = {.nvrtc = {STOWAGE_FAKE_NVRTC},
                        .cublas = {STOWAGE_FAKE_BLAS},
                        .cudnn = []() -> Result<const CudnnLibrary*> { return &*library; },
                        .cache_folder = ""}};
}

}  // namespace stowage::test
