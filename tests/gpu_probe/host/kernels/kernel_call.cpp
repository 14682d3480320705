#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

#include "gpu_probe/kernels/rows/rows.hpp"
#include "tests/gpu_probe/kernels/device_run.hpp"

namespace stowage::test {

Result<void> try_run(Kernel kernel, const Attributes& attributes, const std::vector<Tensor*>& reads,
                     const std::vector<Tensor*>& writes) {
  std::vector<TensorArgument> read_arguments, write_arguments;
  for (Tensor* tensor : reads) read_arguments.push_back(tensor->argument());
  for (Tensor* tensor : writes) write_arguments.push_back(tensor->argument());
  return run_host_kernel({.kernel = kernel,
                          .device = Device::cpu,
                          .attributes = &attributes,
                          .reads = read_arguments,
                          .writes = write_arguments,
                          .engine = {},
                          .workspace = nullptr,
                          .workspace_bytes = {}});
}

void run(Kernel kernel, const Attributes& attributes, const std::vector<Tensor*>& reads,
         const std::vector<Tensor*>& writes) {
  if (kernels::has_row(kernel)) check_as_device({kernel, attributes, reads, writes});
  const auto done = try_run(kernel, attributes, reads, writes);
  const std::string refusal = done ? "" : done.error().front().message;
  REQUIRE(refusal == "");
}

}  // namespace stowage::test
