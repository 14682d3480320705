#include "estimator/step/gpu_kernels.hpp"

#include <doctest/doctest.h>

namespace stowage {

namespace {

KernelNode product_of(DataType type) {
  KernelNode node{.name = "fc.forward", .kernel = Kernel::matmul};
  node.reads = {{.storage = StorageId{0}, .type = type}, {.storage = StorageId{1}, .type = type}};
  node.writes = {{.storage = StorageId{2}, .type = type}};
  return node;
}

}  // namespace

TEST_CASE("PyTorch multiplies integers on the CPU alone, and floats on both") {
  CHECK(why_no_gpu_kernel(product_of(DataType::int64), KernelSet::pytorch) ==
        "PyTorch's matrix products on CUDA take no int64");
  CHECK(why_no_gpu_kernel(product_of(DataType::float16), KernelSet::pytorch) == "");
  KernelNode sum = product_of(DataType::int64);
  sum.kernel = Kernel::add;
  CHECK(why_no_gpu_kernel(sum, KernelSet::pytorch) == "");
}

TEST_CASE("a step may say that a kernel has no GPU's") {
  KernelNode node{.name = "unique", .kernel = Kernel::foreign};
  node.foreign_kernel = Shared<std::string>("aten::unique_dim");
  CHECK(why_no_gpu_kernel(node, KernelSet::pytorch) == "");
  node.attributes.set(gpu_kernel_attribute, true);
  CHECK(why_no_gpu_kernel(node, KernelSet::pytorch) == "");
  node.attributes.set(gpu_kernel_attribute, false);
  CHECK(why_no_gpu_kernel(node, KernelSet::pytorch) ==
        "the step says that aten::unique_dim has none");
}

}  // namespace stowage
