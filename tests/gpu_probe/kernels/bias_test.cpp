#include "gpu_probe/kernels/rows/bias.hpp"

#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {
namespace {

void run_all(const kernels::Launch& launch) { launch.run(launch.values.data(), 0, launch.count); }

}  // namespace

TEST_CASE("a bias becomes every row, and is added to its channel") {
  for (const auto arithmetic : {kernels::Arithmetic::host, kernels::Arithmetic::device}) {
    Tensor bias = tensor({3}, {1, -2, 4});
    Tensor rows = unwritten({2, 3});
    run_all(kernels::rows_of_bias(rows.argument(), bias.argument(), arithmetic));
    CHECK(rows.floats == std::vector<float>{1, -2, 4, 1, -2, 4});
    Tensor planes = tensor({2, 3, 2}, {0, 1, 0, 1, 0, 1, 10, 11, 10, 11, 10, 11});
    run_all(kernels::bias_of_channels(planes.argument(), bias.argument(), arithmetic));
    CHECK(planes.floats == std::vector<float>{1, 2, -2, -1, 4, 5, 11, 12, 8, 9, 14, 15});
  }
}

}  // namespace stowage::test
