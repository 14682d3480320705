// Every operator's example is a model that trains, and its kernels are known.
#include "estimator/catalogue/operator_kernels.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "estimator/catalogue/operator_example.hpp"
#include "estimator/step/kernel_table.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

std::string kernels_of(std::string_view op) {
  std::string text;
  for (const OperatorKernel& kernel : operator_kernels(*find_operator(op))) {
    text += std::string(text.empty() ? "" : ", ") + std::string(to_string(kernel.time)) + " " +
            std::string(to_string(kernel.kernel));
  }
  return text;
}

}  // namespace

TEST_CASE("every operator has an example that calls it and trains") {
  for (const OperatorRow& row : operator_catalogue()) {
    CAPTURE(row.name);
    REQUIRE(!example_lines(row).empty());
    const ModelGraph model = testing::described(example_description(row));
    bool called = false;
    for (const Operator& op : model.operators) called = called || op.row == &row;
    CHECK(called);
    CHECK(!testing::lowered(model, {.kernels = KernelSet::pytorch})->nodes.empty());
  }
}

TEST_CASE("every operator calls a kernel, is a view, or runs nowhere and says why") {
  std::set<std::string_view> without_kernel, nowhere;
  for (const OperatorRow& row : operator_catalogue()) {
    CAPTURE(row.name);
    const auto kernels = operator_kernels(row);
    if (kernels.empty()) without_kernel.insert(row.name);
    for (const OperatorKernel& kernel : kernels) {
      if (!kernel_types(kernel.kernel, KernelDevice::host).empty()) continue;
      CHECK(!no_device_reason(kernel.kernel).empty());
      nowhere.insert(row.name);
    }
  }
  const std::set<std::string_view> views{"contiguous", "flatten", "identity", "parameter",
                                         "reshape"};
  CHECK((without_kernel == views));
  CHECK((nowhere == std::set<std::string_view>{"custom", "routed_experts"}));
}

TEST_CASE("an operator's kernels stand in the order of their calls") {
  CHECK(kernels_of("conv2d") ==
        "forward convolution_forward, backward convolution_backward_filter, backward channel_sum, "
        "backward convolution_backward_data");
  CHECK(kernels_of("batch_norm") ==
        "forward batch_norm_forward, backward batch_norm_backward, inference batch_norm_inference");
  CHECK(kernels_of("cross_entropy") ==
        "forward cross_entropy_forward, backward cross_entropy_backward");
  CHECK(kernels_of("dropout") == "forward dropout_forward, backward dropout_backward");
}

}  // namespace stowage
