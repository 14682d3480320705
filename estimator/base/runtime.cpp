#include "estimator/base/runtime.hpp"

namespace stowage {

namespace {

struct RuntimeRow {
  Runtime runtime;
  std::string_view name;
  KernelSet kernels;
  Bytes granularity;
};

constexpr std::array<RuntimeRow, runtimes.size()> rows{
    {{Runtime::ideal, "ideal", KernelSet::pytorch, Bytes(1)},
     {Runtime::stowage, "stowage", KernelSet::stowage, Bytes(1)},
     {Runtime::pytorch, "pytorch", KernelSet::pytorch, Bytes(512)},
     {Runtime::tensorflow, "tensorflow", KernelSet::stowage, Bytes(256)}}};

const RuntimeRow& row_of(Runtime runtime) {
  for (const RuntimeRow& row : rows) {
    if (row.runtime == runtime) return row;
  }
  return rows.front();
}

}  // namespace

std::string_view to_string(Runtime runtime) { return row_of(runtime).name; }

std::optional<Runtime> find_runtime(std::string_view name) {
  for (const RuntimeRow& row : rows) {
    if (row.name == name) return row.runtime;
  }
  return std::nullopt;
}

KernelSet kernel_set_of(Runtime runtime) { return row_of(runtime).kernels; }

Bytes runtime_granularity(Runtime runtime) { return row_of(runtime).granularity; }

}  // namespace stowage
