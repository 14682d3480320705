#include "estimator/model/layer_match.hpp"

#include "estimator/model/device_pin.hpp"

namespace stowage {

bool is_target(std::string_view path, std::string_view target) {
  if (has_wildcard(target)) return fits_pattern(path, target);
  if (!path.ends_with(target)) return false;
  return path.size() == target.size() || path[path.size() - target.size() - 1] == '.';
}

bool is_target_or_below(std::string_view path, std::string_view target) {
  if (is_target(path, target)) return true;
  if (has_wildcard(target)) return false;
  return path.size() > target.size() && path.starts_with(target) && path[target.size()] == '.';
}

std::string_view last_part(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

}  // namespace stowage
