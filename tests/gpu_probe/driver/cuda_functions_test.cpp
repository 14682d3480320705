#include "gpu_probe/driver/cuda_functions.hpp"

#include <doctest/doctest.h>

using namespace stowage;

TEST_CASE("a driver that has all functions of the table lacks none") {
  const CudaDriver driver(STOWAGE_FAKE_DRIVER);
  REQUIRE(driver.is_there());
  CHECK(driver.lacking_query().empty());
  CHECK(driver.lacking_call().empty());
  const bool has_loading_mode = driver->loading_mode != nullptr;
  CHECK_FALSE(has_loading_mode);  // an older driver
  int count = 0;
  CHECK(driver->device_count(&count) == 0);
  CHECK(count == 2);
}

TEST_CASE("a library that is no driver is told by the first function that it lacks") {
  const CudaDriver driver(STOWAGE_STALE_KERNELS);
  CHECK(driver.is_there());
  CHECK(driver.lacking_query() == "cuInit");
  CHECK(driver.lacking_call() == "cuDevicePrimaryCtxRetain");
}

TEST_CASE("where there is no library, the loader says why") {
  const CudaDriver driver("libno-such-driver.so.1");
  CHECK_FALSE(driver.is_there());
  CHECK(driver.absence().find("libno-such-driver.so.1") != std::string::npos);
}
