#include "estimator/card/software_stack.hpp"

#include <doctest/doctest.h>

namespace stowage {

TEST_CASE("a version of CUDA has two numbers") {
  CHECK(parse_version("12.1") == ReleaseVersion{12, 1});
  CHECK(parse_version("11.10") == ReleaseVersion{11, 10});
  for (const char* text :
       {"", "12", "12.", ".1", "12.1.0", "x", "12.1 ", "-1.0", "0.0", "12.-1", "99999999999.0"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_version(text).has_value());
  }
  CHECK(to_string(ReleaseVersion{11, 7}) == "11.7");
  CHECK(ReleaseVersion{11, 10} > ReleaseVersion{11, 7});
}

TEST_CASE("a CUDA for each card") {
  CHECK(usual_cuda(12.0) == newest_cuda);
  CHECK(usual_cuda(7.5) == newest_cuda);
  CHECK(usual_cuda(7.0) == ReleaseVersion{12, 9});
  CHECK(usual_cuda(5.2) == ReleaseVersion{12, 9});
  CHECK(usual_cuda(3.7) == ReleaseVersion{11, 8});
  CHECK(usual_cuda(3.0) == ReleaseVersion{10, 2});
}

TEST_CASE("a PyTorch for each CUDA") {
  CHECK(usual_pytorch(newest_cuda) == SoftwareStack{}.pytorch);
  CHECK(usual_pytorch({12, 9}) == ReleaseVersion{2, 10});
  CHECK(usual_pytorch({12, 2}) == ReleaseVersion{2, 4});
  CHECK(usual_pytorch({11, 8}) == ReleaseVersion{2, 0});
  CHECK(usual_pytorch({10, 2}) == ReleaseVersion{1, 12});
}

TEST_CASE("kernels are loaded lazily from 11.7 on by PyTorch, from 12.2 on by others") {
  CHECK(usual_loading({11, 6}, Runtime::pytorch) == ModuleLoading::eager);
  CHECK(usual_loading({11, 7}, Runtime::pytorch) == ModuleLoading::lazy);
  CHECK(usual_loading({12, 1}, Runtime::tensorflow) == ModuleLoading::eager);
  CHECK(usual_loading({12, 2}, Runtime::tensorflow) == ModuleLoading::lazy);
}

}  // namespace stowage
