#include "estimator/runtime/runtime_process.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace stowage {

const RuntimeProcess& process_of(Runtime runtime) {
  static const std::array<RuntimeProcess, runtimes.size()> table{
      ideal_process(), stowage_process(), pytorch_process(), tensorflow_process(),
      theano_process()};
  const auto found = std::ranges::find(table, runtime, &RuntimeProcess::runtime);
  assert(found != table.end());
  return *found;
}

}  // namespace stowage
