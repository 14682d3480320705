#include "gpu_probe/kernels/rows/launch.hpp"

#include <map>
#include <utility>

namespace stowage::kernels {
namespace {

// A body's name, and whether threads share an index: a body may be launched in both ways.
using Key = std::pair<std::string_view, bool>;

std::map<Key, LaunchableBody>& enlisted() {
  static std::map<Key, LaunchableBody> bodies;
  return bodies;
}

}  // namespace

bool detail::enlist(const LaunchableBody& body) {
  enlisted().emplace(Key(body.name, body.in_groups), body);
  return true;
}

std::vector<LaunchableBody> launchable_bodies() {
  std::vector<LaunchableBody> bodies;
  for (const auto& [key, body] : enlisted()) bodies.push_back(body);
  return bodies;
}

}  // namespace stowage::kernels
