// Compares the table of kernels with the host kernels themselves.
#include "estimator/step/kernel_table.hpp"

#include <algorithm>

#include "gpu_probe/cuda/convolution_call.hpp"
#include "gpu_probe/kernels/rows/products.hpp"
#include "gpu_probe/kernels/rows/rnn_work.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"
#include "tests/gpu_probe/host/kernels/kernel_samples.hpp"

namespace stowage::test {
namespace {

bool listed(Kernel kernel, DataType type) {
  const auto types = kernel_types(kernel, KernelDevice::host);
  return std::find(types.begin(), types.end(), type) != types.end();
}

/// Whether the sample's arguments all have types of their own, such as masks of masks.
bool has_one_type(const KernelSample& sample) {
  const auto follows = [](const SampleArgument& argument) { return argument.floating; };
  return std::none_of(sample.reads.begin(), sample.reads.end(), follows) &&
         std::none_of(sample.writes.begin(), sample.writes.end(), follows);
}

}  // namespace

TEST_CASE("a kernel that is listed exists, and one that is not does not") {
  const Attributes none;
  for (int i = 0; i < kernel_count; ++i) {
    const auto kernel = static_cast<Kernel>(i);
    const std::string name(to_string(kernel));
    INFO(name);
    // A call without arguments is always refused; the words of the refusal tell whether there is a
    // kernel.
    const bool absent =
        refusal(kernel, none, {}, {}) == name + ": the host kernels have no such kernel";
    CHECK(absent == kernel_types(kernel, KernelDevice::host).empty());
    const auto samples = std::count_if(kernel_samples().begin(), kernel_samples().end(),
                                       [&](const KernelSample& s) { return s.kernel == kernel; });
    CHECK(samples == (absent ? 0 : 1));
    const bool on_cuda = kernels::has_row(kernel) || kernels::is_product(kernel) ||
                         is_convolution(kernel) || kernels::is_recurrent(kernel);
    CHECK(on_cuda == !kernel_types(kernel, KernelDevice::cuda).empty());
  }
}

TEST_CASE("kernels that are nowhere say why") {
  std::vector<std::string> nowhere;
  for (int i = 0; i < kernel_count; ++i) {
    const auto kernel = static_cast<Kernel>(i);
    if (!kernel_types(kernel, KernelDevice::host).empty()) continue;
    nowhere.push_back(std::string(to_string(kernel)) + ": " +
                      std::string(no_device_reason(kernel)));
  }
  CHECK(nowhere == std::vector<std::string>{
                       "foreach_update: PyTorch's own", "quantize_rows: bitsandbytes' own",
                       "int8_product: bitsandbytes' own", "scale_int8_product: bitsandbytes' own",
                       "custom_forward: what it computes is not stated",
                       "custom_backward: what it computes is not stated"});
}

TEST_CASE("a call in a listed type runs, one in another type is refused") {
  for (const KernelSample& sample : kernel_samples()) {
    if (has_one_type(sample)) {
      INFO(to_string(sample.kernel));
      CHECK(try_sample(sample, DataType::float32));
      continue;
    }
    for (const DataType type : all_data_types) {
      const auto done = try_sample(sample, type);
      const std::string refusal = done ? "" : done.error().front().message;
      INFO(std::string(to_string(sample.kernel)), " in ", std::string(to_string(type)), ": ",
           refusal);
      CHECK(done.has_value() == listed(sample.kernel, type));
      if (done) continue;
      // An integer behind indices counts as another index, so the argument behind it is missing.
      const bool is_missing = refusal.find("tensors where it takes") != std::string::npos;
      CHECK((is_missing || refusal.find(to_string(type)) != std::string::npos));
    }
  }
}

}  // namespace stowage::test
