#include "gpu_probe/kernels/rows/launch.hpp"

#include <set>

namespace stowage::kernels {
namespace {

std::set<LaunchableBody>& enlisted() {
  static std::set<LaunchableBody> bodies;
  return bodies;
}

}  // namespace

bool detail::enlist(std::string_view body, bool in_groups) {
  enlisted().insert({body, in_groups});
  return true;
}

std::vector<LaunchableBody> launchable_bodies() { return {enlisted().begin(), enlisted().end()}; }

}  // namespace stowage::kernels
