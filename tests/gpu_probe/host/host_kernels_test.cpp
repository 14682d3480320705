// Which module of host kernels is loaded, and which is refused.
#include "gpu_probe/host/host_kernels.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace stowage::test {
namespace {

std::string refusal(const char* file) {
  const auto loaded = load_host_kernels(file);
  return loaded ? "" : loaded.error().front().message;
}

}  // namespace

TEST_CASE("the module that was built with the program is of its build") {
  CHECK(host_kernels_build().size() == 16);
  CHECK(host_kernels().has_value());
}

TEST_CASE("a module of another build is refused by name") {
  CHECK(refusal(STOWAGE_STALE_KERNELS) ==
        fmt::format("the host kernels in '{}' are of build 0123456789abcdef, the program is of "
                    "build {}",
                    STOWAGE_STALE_KERNELS, host_kernels_build()));
  CHECK(refusal(STOWAGE_UNSAID_KERNELS) ==
        fmt::format("the host kernels in '{}' are of build unknown, the program is of build {}",
                    STOWAGE_UNSAID_KERNELS, host_kernels_build()));
}

TEST_CASE("a library that holds no kernels is refused") {
  CHECK(refusal(STOWAGE_FAKE_DRIVER) ==
        fmt::format("'{}' holds no host kernels", STOWAGE_FAKE_DRIVER));
}

}  // namespace stowage::test
