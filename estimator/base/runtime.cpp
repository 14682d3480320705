#include "estimator/base/runtime.hpp"

#include <algorithm>

namespace stowage {

namespace {

struct RuntimeRow {
  Runtime runtime;
  std::string_view name;
  KernelSet kernels;
  Bytes granularity;
  bool is_planned;
  bool in_place;
};

constexpr std::array<RuntimeRow, runtimes.size()> rows{
    {{Runtime::ideal, "ideal", KernelSet::pytorch, Bytes(1), false, false},
     {Runtime::stowage, "stowage", KernelSet::stowage, Bytes(1), true, true},
     {Runtime::pytorch, "pytorch", KernelSet::pytorch, Bytes(512), true, false},
     {Runtime::tensorflow, "tensorflow", KernelSet::stowage, Bytes(256), false, false},
     {Runtime::theano, "theano", KernelSet::stowage, Bytes(64), false, false}}};

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

bool works_in_place(Runtime runtime) { return row_of(runtime).in_place; }

bool is_keras(Runtime runtime) {
  return runtime == Runtime::tensorflow || runtime == Runtime::theano;
}

bool is_planned(Runtime runtime) { return row_of(runtime).is_planned; }

Runtime planned_in_place_of(Runtime runtime) {
  if (is_planned(runtime)) return runtime;
  const auto found = std::ranges::find_if(rows, [&](const RuntimeRow& row) {
    return row.is_planned && row.kernels == kernel_set_of(runtime);
  });
  return found == rows.end() ? runtime : found->runtime;
}

Bytes runtime_granularity(Runtime runtime) { return row_of(runtime).granularity; }

}  // namespace stowage
