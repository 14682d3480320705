#include "estimator/base/runtime.hpp"

namespace stowage {

std::string_view to_string(Runtime runtime) {
  switch (runtime) {
    case Runtime::ideal:
      return "ideal";
    case Runtime::stowage:
      return "stowage";
    case Runtime::pytorch:
      return "pytorch";
    case Runtime::tensorflow:
      return "tensorflow";
  }
  return "ideal";
}

std::optional<Runtime> find_runtime(std::string_view name) {
  for (const Runtime runtime : runtimes) {
    if (to_string(runtime) == name) return runtime;
  }
  return std::nullopt;
}

KernelSet kernel_set_of(Runtime runtime) {
  const bool own = runtime == Runtime::stowage || runtime == Runtime::tensorflow;
  return own ? KernelSet::stowage : KernelSet::pytorch;
}

Bytes runtime_granularity(Runtime runtime) {
  switch (runtime) {
    case Runtime::ideal:
      return Bytes(1);
    case Runtime::stowage:
      return Bytes(1);
    case Runtime::pytorch:
      return Bytes(512);
    case Runtime::tensorflow:
      return Bytes(256);
  }
  return Bytes(1);
}

}  // namespace stowage
