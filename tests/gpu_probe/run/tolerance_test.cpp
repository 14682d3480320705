// The tolerance follows from the coarsest format that a step computes in.
#include "gpu_probe/run/tolerance.hpp"

#include <doctest/doctest.h>

#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {

TEST_CASE("what a GPU may differ by follows from the formats of the step") {
  const auto of = [](const char* model, Precision precision) {
    return gpu_tolerance(step_of(model, sgd_momentum(), precision));
  };
  CHECK(of(mlp, Precision::fp32) == 1e-3);
  CHECK(of(mlp, Precision::fp64) == 1e-9);
  CHECK(of(small_cnn, Precision::fp64) == 1e-9);
  CHECK(of(mlp, Precision::fp16) == 32 * 0x1p-11);
  CHECK(of(mlp, Precision::bf16) == 32 * 0x1p-8);
  CHECK(of(mlp, Precision::amp_fp16) == 32 * 0x1p-11);
  CHECK(of(mlp, Precision::amp_bf16) == 32 * 0x1p-8);
}

TEST_CASE("a convolution of float32 that may run in TF32 has TF32's tolerance") {
  LoweringSettings settings = sgd_momentum();
  CHECK(gpu_tolerance(step_of(small_cnn, settings)) == 32 * 0x1p-11);
  CHECK(gpu_tolerance(step_of(small_lstm, settings)) == 32 * 0x1p-11);
  settings.convolutions.tf32 = false;
  CHECK(gpu_tolerance(step_of(small_cnn, settings)) == 1e-3);
  CHECK(gpu_tolerance(step_of(small_lstm, settings)) == 1e-3);
}

TEST_CASE("gradients below what the format resolves are rounding alone") {
  CHECK(rounding_share(step_of(mlp, adamw())) == 1e-5);
  CHECK(rounding_share(step_of(mlp, adamw(), Precision::bf16)) == 4 * 0x1p-8);
}

}  // namespace stowage::test
